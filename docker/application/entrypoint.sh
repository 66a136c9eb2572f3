#!/bin/bash
# `vizpub …`, or `spark-master`, or `spark-worker spark://MASTER:7077`.
#
#   NEO4J_AUTH_FILE=FILE    `neo4j/PASSWORD`, as the Neo4j image takes it
set -euo pipefail

spark() { exec spark-class "org.apache.spark.deploy.$1" --host "$(hostname -i)" "${@:2}"; }

case ${1:-} in
spark-master) spark master.Master --port 7077 --webui-port 8080 "${@:2}" ;;
spark-worker) spark worker.Worker --webui-port 8081 "${@:2}" ;;
esac

if [ -n "${NEO4J_AUTH_FILE:-}" ]; then
    NEO4J_PASSWORD_FILE=$(umask 077 && mktemp)
    export NEO4J_PASSWORD_FILE
    sed 's,^[^/]*/,,' "$NEO4J_AUTH_FILE" >"$NEO4J_PASSWORD_FILE"
fi
exec vizpub "$@"
