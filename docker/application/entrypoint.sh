#!/bin/bash
# `vizpub …`, or `spark-master`, or `spark-worker spark://MASTER:7077`, or `executor`, as Kubernetes
# starts it for Spark, which sets the variables SPARK_….
#
#   NEO4J_AUTH_FILE=FILE    `neo4j/PASSWORD`, as the Neo4j image takes it
set -euo pipefail

spark() { exec spark-class "org.apache.spark.deploy.$1" --host "$(hostname -i)" "${@:2}"; }

executor() {
    local options=() name n jars
    for ((n = 0; ; n++)); do
        name=SPARK_JAVA_OPT_$n
        [ -n "${!name+set}" ] || break
        options+=("${!name}")
    done
    jars=$(python3 -c 'import pyspark; print(pyspark.__path__[0])')/jars
    exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_CONF_DIR:$jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --app-id "$SPARK_APPLICATION_ID" \
        --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
}

case ${1:-} in
spark-master) spark master.Master --port 7077 --webui-port 8080 "${@:2}" ;;
spark-worker) spark worker.Worker --webui-port 8081 "${@:2}" ;;
executor) executor ;;
esac

if [ -n "${NEO4J_AUTH_FILE:-}" ]; then
    NEO4J_PASSWORD_FILE=$(umask 077 && mktemp)
    export NEO4J_PASSWORD_FILE
    sed 's,^[^/]*/,,' "$NEO4J_AUTH_FILE" >"$NEO4J_PASSWORD_FILE"
fi
exec vizpub "$@"
