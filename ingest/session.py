"""The one place that starts a SparkSession.

Everything comes from configuration and environment, so `spark-submit`, a standalone
cluster and a laptop run the same code; what is set here are defaults for the laptop,
and each gives way to what the user configured.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from model.java import find_java, spark_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
_QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
"""A third off the start of a short run (measured); a long one wants the full compiler."""


@contextmanager
def spark_session(
    scratch: Path, *, master: str | None = None, quick: bool = False
) -> Iterator[SparkSession]:
    """A session for the length of the block; `scratch` holds its temporary files.

    `quick` trades peak speed for a quick start. Raises: JavaMissing.
    """
    from pyspark.sql import SparkSession

    scratch.mkdir(parents=True, exist_ok=True)
    _prepare_environment()
    builder = SparkSession.builder.appName("vizpub")
    for key, value in _defaults(scratch, master, quick).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _prepare_environment() -> None:
    # Workers would otherwise take whatever `python3` comes first on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["JAVA_HOME"] = str(spark_java_home(find_java()))


def _defaults(scratch: Path, master: str | None, quick: bool) -> dict[str, str]:
    cores = os.cpu_count() or 2
    master = master or os.environ.get("SPARK_MASTER") or f"local[{cores}]"
    conf = {
        "spark.master": master,
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": " ".join([_LOGGING, *(_QUICK_JVM if quick else ())]),
    }
    if master.startswith("local"):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf["spark.driver.memory"] = os.environ.get("VIZPUB_SPARK_MEMORY", "2g")
    return conf
