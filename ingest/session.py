"""The one place that starts a SparkSession.

Everything comes from configuration and environment, so `spark-submit`, a standalone
cluster and a laptop run the same code; what is set here are defaults for the laptop, and
each gives way to what the user configured. Only the driver's own JVM is started as said here
(its memory by VIZPUB_SPARK_MEMORY), unless spark-submit started it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import DiskFull, SparkFailed
from model.java import find_java, spark_java_home

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_NO_SPACE = os.strerror(ENOSPC)
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
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    _prepare_environment()
    # What the JVM itself is started with; under spark-submit it runs already.
    start = SparkConf(loadDefaults=False).setAll(list(_of_the_jvm(quick).items()))
    SparkContext._ensure_initialized(conf=start)
    conf = SparkConf()  # from here on it knows what the user configured
    if master or os.environ.get("SPARK_MASTER"):
        conf.setMaster(master or os.environ["SPARK_MASTER"])
    for key, value in _defaults(conf, scratch).items():
        conf.setIfMissing(key, value)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def failures_told(workspace: Path) -> Iterator[None]:
    """Failures of Spark and of the disk as errors of ours. Raises: SparkFailed, DiskFull."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        if _NO_SPACE in str(error):
            raise DiskFull(str(workspace)) from error
        causes = re.findall(r"^Caused by: (.+)", str(error), re.MULTILINE)
        raise SparkFailed((causes or str(error).splitlines() or ["no message"])[-1]) from error
    except OSError as error:
        if error.errno == ENOSPC:
            raise DiskFull(str(workspace)) from error
        raise


def _prepare_environment() -> None:
    # Workers would otherwise take whatever `python3` comes first on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["JAVA_HOME"] = str(spark_java_home(find_java()))


def _of_the_jvm(quick: bool) -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": " ".join([_LOGGING, *(_QUICK_JVM if quick else ())]),
        "spark.driver.memory": os.environ.get("VIZPUB_SPARK_MEMORY", "2g"),
        # Spark takes a Python program for a shell, and would draw a bar of its own.
        "spark.ui.showConsoleProgress": "false",
    }


def _defaults(conf: SparkConf, scratch: Path) -> dict[str, str]:
    """What holds where the user said nothing."""
    cores = os.cpu_count() or 2
    master = conf.get("spark.master", None) or f"local[{cores}]"
    defaults = {
        "spark.app.name": "vizpub",
        "spark.master": master,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.log.structuredLogging.enabled": "false",
    }
    if master.startswith("local"):
        scratch.mkdir(parents=True, exist_ok=True)
        defaults |= {
            # Many small partitions cost a small run more than anything else.
            "spark.sql.shuffle.partitions": str(2 * cores),
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return defaults
