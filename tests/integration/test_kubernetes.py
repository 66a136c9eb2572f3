"""docker/kubernetes.yaml: what Kubernetes knows of it, and its ingest as processes here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from py4j.java_collections import JavaList, JavaMap
from py4j.java_gateway import JavaObject

from tests.integration.test_cluster import QUICK, check_same, java_home
from tests.integration.test_store_commands import write_reports
from tests.support.ingested import ingest
from tests.support.kubernetes import Kubernetes, serving
from tests.support.object_store import BUCKET, Machine, S3Server, check_objects, in_s3
from tests.support.project import ROOT
from vizpub.runstore.store import open_run
from vizpub.runstore.stores.s3 import S3Objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

MANIFEST = (ROOT / "docker/kubernetes.yaml").read_text("utf-8")
ENTRY_POINT = ROOT / "docker/application/entrypoint.sh"
FABRIC8 = "io.fabric8.kubernetes"
SMALL = f"""
spark.executor.instances 2
spark.executor.cores 1
spark.executor.memory 640m
spark.executor.memoryOverhead 64m
spark.executor.extraJavaOptions {QUICK}
spark.kubernetes.executor.enableApiWatcher false
spark.kubernetes.executor.apiPollingInterval 1s
"""
"""What fits on this machine, and asks for states instead of a stream of them."""


def settings(manifest: str = MANIFEST) -> dict[str, str]:
    (one,) = (of for of in yaml.safe_load_all(manifest) if of["kind"] == "ConfigMap")
    lines = (line.split(maxsplit=1) for line in one["data"]["spark-defaults.conf"].splitlines())
    return {words[0]: words[1] for words in lines if words[0] != "#"}


def unknown(value: Any) -> Iterator[str]:
    """The fields in models of Kubernetes' objects that those do not have."""
    if isinstance(value, JavaList | JavaMap):
        for one in value.values() if isinstance(value, JavaMap) else value:
            yield from unknown(one)
    elif isinstance(value, JavaObject) and value.getClass().getName().startswith(FABRIC8):
        kind = value.getClass()
        for name in {method.getName() for method in kind.getMethods() if is_getter(method)}:
            found = getattr(value, name)()
            if name == "getAdditionalProperties":
                yield from (f"{kind.getSimpleName()}.{field}" for field in found)
            else:
                yield from unknown(found)


def is_getter(method: Any) -> bool:
    return method.getName().startswith("get") and not method.getParameterCount()


def test_manifest_has_only_fields_that_kubernetes_knows(spark: SparkSession) -> None:
    """By the models that Spark's client has, which are made from Kubernetes' own schema."""
    serialization = getattr(spark._jvm, f"{FABRIC8}.client.utils.Serialization")
    for text in (MANIFEST, MANIFEST.replace("backoffLimit", "backOffLimit")):
        objects = serialization.unmarshal(text)
        fields = [*unknown(objects)]
        assert fields == ([] if text is MANIFEST else ["JobSpec.backOffLimit"])


def test_settings_in_the_manifest_are_sparks(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm
    of_kubernetes = getattr(jvm, "org.apache.spark.deploy.k8s.Config")
    prefixes = (
        of_kubernetes.KUBERNETES_EXECUTOR_VOLUMES_PREFIX(),
        of_kubernetes.KUBERNETES_EXECUTOR_SECRET_KEY_REF_PREFIX(),
    )
    for name in settings():
        entry = getattr(jvm, "org.apache.spark.internal.config.ConfigEntry").findEntry(name)
        assert entry is not None or name.startswith(prefixes), name


@in_s3
@pytest.mark.long
def test_ingest_of_the_manifest_equals_that_of_one_machine(
    spark: SparkSession, server: S3Server, machine: Machine, url: str, tmp_path: Path
) -> None:
    """Its pods run the entry point of the image, with what the manifest gives them, and ask
    Kubernetes for nothing that its role does not allow.
    """
    reports = write_reports(tmp_path, range(6))
    S3Objects(BUCKET, "input", server.endpoint).put(reports.name, reports)
    host = server.endpoint.removeprefix("http://")
    at = Kubernetes(
        tmp_path / "pods",
        ["bash", str(ENTRY_POINT)],
        {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "JAVA_HOME": java_home(),
            "AWS_ENDPOINT_URL": server.endpoint,
        },
        {"vizpub-s3": {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "a secret"}},
    )
    conf = tmp_path / "conf"
    for folder in (at.folder, conf):
        folder.mkdir()
    with serving(at) as api:
        manifest = MANIFEST
        for old, new in (
            ("s3://bucket/study", url),
            ("s3://bucket/reports?region=us-east-1",
             f"s3://{BUCKET}/input/{reports.name}?endpoint_override={host}&scheme=http"),
            ("https://kubernetes.default.svc", api),
            ("/etc/spark", str(conf)),
        ):  # fmt: skip
            assert old in manifest
            manifest = manifest.replace(old, new)
        kinds = {one["kind"]: one for one in yaml.safe_load_all(manifest)}
        defaults = kinds["ConfigMap"]["data"]["spark-defaults.conf"]
        (conf / "spark-defaults.conf").write_text(defaults + SMALL)
        pod = kinds["Job"]["spec"]["template"]["spec"]
        at.objects["pods", "driver"] = {
            "kind": "Pod", "apiVersion": "v1", "spec": pod,
            "metadata": {"name": "driver", "namespace": "default", "uid": "1"},
        }  # fmt: skip
        code = at.start("driver", pod["containers"][0]).wait()
        logs = {path: path.read_text() for path in at.folder.glob("*/log")}
    assert code == 0, logs
    (rule,) = kinds["Role"]["rules"]
    assert {verb for verb, _ in at.asked} <= {*rule["verbs"]}
    assert {resource for _, resource in at.asked} <= {*rule["resources"]}
    assert len(logs) == 3, "the pod of the Job, and two executors"
    run = open_run(machine("elsewhere"), "monday")
    check_same(ingest(spark, tmp_path, "lab", reports).run, run)
    check_objects(run)
