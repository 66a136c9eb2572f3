"""An ingest by `--master yarn` from HDFS into HDFS. Its containers share nothing else with us."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest

from tests.integration.test_cluster import (
    QUICK,
    Cluster,
    call,
    check_same,
    java_home,
    python_without_us,
)
from tests.integration.test_store_commands import write_reports
from tests.support import yarn
from tests.support.object_store import Machine, Server, check_objects, in_hdfs
from vizpub.runstore.store import open_run
from vizpub.runstore.stores.place import folder_of, store_of

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(3000)]

SETTINGS = {
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
    "spark.yarn.am.memory": "256m",
    "spark.yarn.am.extraJavaOptions": QUICK,
    "spark.executor.instances": "2",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "256m",
    "spark.executor.extraJavaOptions": QUICK,
}


@in_hdfs
def test_ingest_by_yarn_equals_that_of_one_machine(
    server: Server, machine: Machine, url: str, tmp_path: Path
) -> None:
    path = yarn.class_path()  # of the user's own cache
    machine("elsewhere")
    store = store_of(folder_of(f"{server.top()}/input"))
    assert store
    reports = write_reports(tmp_path, range(6))
    store.put(reports.name, reports)
    cluster = Cluster("yarn", tmp_path, python_without_us(tmp_path))
    cache = tmp_path / "cache"
    lines = {**SETTINGS, "spark.executorEnv.VIZPUB_CACHE": str(cache)}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in lines.items())
    )
    here = {"VIZPUB_CACHE": str(tmp_path / "driver")}
    with yarn.running(tmp_path / "yarn", path, server.top(), java_home()) as conf:
        for place, more, variables in (
            (url, ["--master", "yarn"], {"HADOOP_CONF_DIR": str(conf)}),
            (str(tmp_path / "one"), [], {}),
        ):
            words = ["--workspace", place, "ingest", "--no-load", "--run", "lab", *more]
            words.append(f"{store.url}/{reports.name}")
            call([sys.executable, "-m", "vizpub.cli", *words], cluster, **here, **variables)
    run = open_run(machine("elsewhere"), "lab")
    check_same(open_run(tmp_path / "one", "lab"), run)
    check_objects(run)
    assert [*cache.rglob("stores/**/*.parquet")], "containers wrote on their machine"
