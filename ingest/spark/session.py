"""The one place that starts a SparkSession.

Everything comes from configuration and environment, so `spark-submit`, a standalone
cluster and a laptop run the same code; what is set here are defaults, and each gives way to
what the user configured. Only the driver's own JVM is started as said here (its memory by
VIZPUB_SPARK_MEMORY), unless spark-submit started it. Executors on other machines are sent our
packages, but not the paths of Java and Python or the addresses of this machine.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vizpub.analytics.options import PLAIN_PLANS
from vizpub.ingest.spark.cluster import (
    check_shared,
    check_store,
    count_cores,
    is_local,
    ship_package,
)
from vizpub.ingest.spark.gateway import mend_gateway
from vizpub.ingest.spark.jvm import is_running, start_jvm
from vizpub.machine.environment import environment
from vizpub.machine.jvm.java import find_java, spark_java_home
from vizpub.machine.locks import OF_SPARK, own_folder
from vizpub.model.errors import (
    FULL,
    DiskFull,
    OwnMetricFailed,
    ServiceError,
    SparkFailed,
    StoreBroken,
    UseError,
)
from vizpub.model.progress import announce_wait
from vizpub.runstore.integrity import OTHER_BYTES, OTHER_PAGE
from vizpub.runstore.stores.place import store_of

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_NO_SPACE = tuple(map(os.strerror, FULL))
_STOPPED = "methods on a stopped SparkContext"
_WORKER_GONE = re.compile(
    "Python worker exited unexpectedly|reading the port number from .* stdout"
)
"""A worker, or the process that it would have been forked from."""
_CUT_OFF = re.compile(
    r"An error occurred while calling [\w.]+|(?:[a-z]\w*\.)*[a-z]\w* does not exist in the JVM"
)
"""The whole message of py4j where a reply is cut off; a complete reply continues after the first,
and finds each package.
"""
JAVA_GONE = (
    "its Java process has ended, for example because memory ran out; run the same command again"
)
_OWN_FAILED = re.compile(r"OwnMetricFailed: own metric '(\w+)' failed in (\w+ \S+): (.+)")
"""The last line of a traceback from a worker."""
_STORE_FAILED = re.compile(r"^vizpub\.model\.errors\.ServiceError: (.+)$", re.MULTILINE)
_STORED_BROKEN = re.compile(r"^vizpub\.model\.errors\.StoreBroken: (.+?): (.+)$", re.MULTILINE)
"""What tasks say of files in a store."""
_NO_SIGNALS = "-Xrs"
"""Java ignores signals of the terminal, which this process handles; it would print its threads."""
_QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
"""A third off the start of a short run (measured); a long one wants the full compiler."""
_PARTITIONS = "spark.sql.shuffle.partitions"
_PER_CORE = 2
"""Partitions of a shuffle: many small ones cost a small run more than anything else."""
_EVERY_CORE = "local[*]"
"""Spark's default master."""
_MASTER_S = 60.0
"""Seconds after which Spark gives up a master that does not answer."""
_ATTEMPTS = 2
"""Attempts at a task: a Python worker may be killed, for want of memory or by mistake."""
LOCATORS = (
    "vizpub.machine.compiled.PackedLocator",
    *("UserProvidedCacheLocator", "InTreeCacheLocator", "UserWideCacheLocator"),
)
"""Cache locators of numba on executors: vizpub's before numba's own."""


@contextmanager
def spark_session(
    scratch: Path, *, master: str | None = None, quick: bool = False
) -> Iterator[SparkSession]:
    """Start a session for the block; `scratch` holds its temporary files, in a folder that is
    removed with this process, or by a later session.

    `quick` trades peak speed for a quick start. Raises: JavaMissing; UseError if executors on other
    machines do not see the same files in the scratch, and so in the workspace around it.
    """
    scratch = scratch.absolute()  # executors work in other directories
    master = master or os.environ.get("SPARK_MASTER")
    _ensure_jvm(master, _jvm_settings(quick))
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf()  # from here on it knows what the user configured
    if master:
        conf.setMaster(master)
    elif conf.get("spark.master", _EVERY_CORE) == _EVERY_CORE:
        conf.setMaster(f"local[*,{_ATTEMPTS}]")
    folder = _own_temporary_folder(scratch.absolute())
    for key, value in _default_settings(conf, folder).items():
        conf.setIfMissing(key, value)
    if conf.get("spark.app.name") == "pyspark-shell":  # as PySpark starts its JVM
        conf.setAppName("vizpub")
    _choose_python(conf)
    chosen = conf.get("spark.master")
    answer = announce_wait(f"the Spark master {chosen}", _MASTER_S)
    with nullcontext() if is_local(chosen) else answer:
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    mend_gateway(spark.sparkContext)
    for key, value in PLAIN_PLANS.items():
        spark.conf.set(key, value)
    try:
        with _prepared_executors(spark, conf, scratch, folder):
            yield spark
    finally:
        spark.stop()


@cache
def _own_temporary_folder(scratch: Path) -> Path:
    """Return the folder of this process's temporary files: Java keeps the first one it is given."""
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    return until_the_end.enter_context(own_folder(scratch, OF_SPARK))


@cache
def _path_without_comma(folder: Path) -> Path:
    """Return a path to the folder for a setting in which commas end paths."""
    if "," not in str(folder):
        return folder
    near = TemporaryDirectory(prefix="vizpub-")
    atexit.register(near.cleanup)
    link = Path(near.name, "work")
    link.symlink_to(folder)
    return link


def _ensure_jvm(master: str | None, settings: dict[str, str]) -> None:
    """Start a JVM with those settings, unless one is running."""
    # A configuration of the user's may name a cluster, too.
    configured = "SPARK_CONF_DIR" in os.environ or "SPARK_HOME" in os.environ
    if is_local(master) and not (master is None and configured):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_running():
        return
    java, logging = find_java(), Path(__file__).with_name("log4j2.properties").absolute().as_uri()
    # No flag of Java's: what start_jvm keeps for a command would hold for this folder only.
    with environment({"LOG4J_CONFIGURATION_FILE": logging}):
        jvm = start_jvm(java, settings) if is_local(master) else None
        from pyspark import SparkConf, SparkContext  # while Java starts

        import_module("pandas")  # PySpark does before it makes a frame

        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        if not (jvm and jvm.connect(conf)):
            os.environ["JAVA_HOME"] = str(spark_java_home(java))
            SparkContext._ensure_initialized(conf=conf)


@contextmanager
def _prepared_executors(
    spark: SparkSession, conf: SparkConf, scratch: Path, folder: Path
) -> Iterator[None]:
    """Prepare executors on other machines, if there are any."""
    if is_local(spark.sparkContext.master):
        yield
        return
    with ship_package(spark.sparkContext, folder):
        with announce_wait(f"executors of {spark.sparkContext.master}"):
            tasks = count_cores(spark.sparkContext)
        if store := store_of(scratch.parent):
            check_store(spark.sparkContext, store, tasks)
        else:
            check_shared(spark.sparkContext, scratch, tasks)
        if not conf.contains(_PARTITIONS):
            spark.conf.set(_PARTITIONS, str(_PER_CORE * tasks))
        yield


@contextmanager
def vizpub_errors(workspace: Path) -> Iterator[None]:
    """Raise failures of Spark, the disk and stored files as errors of vizpub.

    Raises: SparkFailed, DiskFull, StoreBroken, OwnMetricFailed.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    # This includes broken pipes; that of standard output is handled where it is written.
    unreachable = (ConnectionError, Py4JNetworkError)
    try:
        yield
    except (*unreachable, Py4JError, PySparkException) as error:
        if ended := _find_interrupt(error):
            raise ended from None
        if failure := _OWN_FAILED.search(str(error)):
            raise OwnMetricFailed(*failure.groups()) from None
        if failure := _STORE_FAILED.search(str(error)):
            raise ServiceError(failure[1]) from None
        if failure := _STORED_BROKEN.search(str(error)):
            raise StoreBroken(*failure.groups()) from None
        if any(words in str(error) for words in _NO_SPACE):
            raise DiskFull(str(workspace)) from error
        if OTHER_PAGE in str(error):
            file = re.search(r"reading file (?:file:/*)?(/?\S+\.parquet)", str(error))
            path = f"/{file[1].lstrip('/')}" if file else str(workspace)
            raise StoreBroken(path, OTHER_BYTES) from error
        gone = isinstance(error, unreachable) or _CUT_OFF.fullmatch(str(error))
        raise SparkFailed(JAVA_GONE if gone else why_failed(str(error))) from error
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(workspace)) from error
        raise


def _find_interrupt(error: BaseException) -> BaseException | None:
    """Return the interrupt in the context of an error, if it caused the error; otherwise null."""
    above = error.__context__
    return above if above is None or not isinstance(above, Exception) else _find_interrupt(above)


def why_failed(text: str) -> str:
    """Return the line of an error message with the cause: in Java, or at a traceback's end."""
    if _WORKER_GONE.search(text):
        return "a Python worker has ended, for example because memory ran out"
    if _STOPPED in text:
        return "its master does not answer, or has stopped the application"
    cause = re.split(r"^(?:Caused by)?: ", text, flags=re.MULTILINE)[-1].split("\n\tat ")[0]
    traceback = re.split(r"Traceback \(most recent call last\):|Traceback …", cause)[1:]
    lines = re.findall(r"^\S.*", (traceback or [cause])[-1], re.MULTILINE)
    return str(lines[0] if lines else "no message")


def _choose_python(conf: SparkConf) -> None:
    """Choose the Python of workers. On this machine it is this one, whatever PYSPARK_PYTHON says:
    another one may have another version, or other packages.
    """
    if is_local(conf.get("spark.master")):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        conf.setIfMissing("spark.python.daemon.module", "vizpub.ingest.spark.worker_daemon")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python") or "python3")


def _jvm_settings(quick: bool) -> dict[str, str]:
    """The settings of the driver's JVM. Raises: UseError."""
    java = [_NO_SIGNALS, *(_QUICK_JVM if quick else ())]
    memory = os.environ.get("VIZPUB_SPARK_MEMORY") or "2g"
    if not re.fullmatch(r"[1-9]\d*[kmgt]b?", memory, re.IGNORECASE | re.ASCII):
        raise UseError(f"VIZPUB_SPARK_MEMORY={memory} is not a size; write for example 4g or 512m")
    return {
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.driver.memory": memory,
        # Spark takes a Python program for a shell, and would draw a bar of its own.
        "spark.ui.showConsoleProgress": "false",
    }


def _default_settings(conf: SparkConf, folder: Path) -> dict[str, str]:
    """Return defaults for settings that the user may have configured."""
    cpus = os.cpu_count() or 2
    defaults = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A record may have 64 MB, and 10,000 of them go to Python at once.
        "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
        # Reports the Python call site of every column to Java: three calls out of four.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Passed to some workers only, and each kind of worker gets its own daemon.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.ui.enabled": "false",
        # Spark's store of what was done, also without its pages: a session may last for days.
        "spark.ui.retainedJobs": "400",
        "spark.ui.retainedStages": "800",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.log.structuredLogging.enabled": "false",
    }
    if not is_local(conf.get("spark.master")):
        return defaults | {"spark.executorEnv.NUMBA_CACHE_LOCATOR_CLASSES": ",".join(LOCATORS)}
    return defaults | {
        _PARTITIONS: str(_PER_CORE * cpus),
        "spark.local.dir": str(_path_without_comma(folder)),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
