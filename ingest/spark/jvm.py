"""The driver's Java process, started directly where nothing of Spark is configured.

PySpark starts it through two shell scripts and another Java, which works out the command from
what the user configured. Where that is nothing the command is always the same: it is worked out
once, kept in the cache, and run at once from then on, with the classes it will load
(vizpub.machine.jvm.class_data), while this process still imports PySpark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from vizpub.ingest.spark import worker_daemon
from vizpub.machine.environment import environment
from vizpub.machine.files import replacing
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.machine.jvm.class_data import ClassData, kind_of
from vizpub.machine.jvm.java import Java

if TYPE_CHECKING:
    from pyspark import SparkConf

_MAIN = "org.apache.spark.deploy.SparkSubmit"
_LAUNCHER = "org.apache.spark.launcher.Main"
_CONFIGURED_BY = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_PREPEND_CLASSES"),
    *("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DRIVER_MEMORY", "SPARK_TESTING"),
    *("SPARK_REMOTE", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"),
)
"""Variables that change the command of Spark's scripts, or show that Spark is running."""
_NOT_WANTED = "--add-modules=jdk.incubator.vector"
"""See vizpub.machine.jvm.java: not needed, not everywhere, and warned about."""
_START = """
    trap "" INT QUIT
    "$0" -m "$1" --ahead "$2" $$ </dev/null >/dev/null 2>&1 &
    shift 2
    exec "$@"
"""
"""Starts Java, and before it the process that Python workers will be forked from
(vizpub.ingest.spark.worker_daemon), whose parent Java becomes. Both ignore the terminal's signals,
which are for this process; it ends Java itself.
"""
_CONNECTION = "gateway"
_POLL_S = 0.01


@dataclass(frozen=True)
class Jvm:
    """A Java process that is starting as PySpark's gateway."""

    process: subprocess.Popen[bytes]
    folder: TemporaryDirectory[str]
    """Folder of the file to which it will write its port and secret."""
    class_data: ClassData

    def connect(self, conf: SparkConf) -> bool:
        """Make it PySpark's gateway. Return False if it has ended, so that PySpark starts its
        own.
        """
        try:
            from pyspark import SparkContext

            connection_file = Path(self.folder.name, _CONNECTION)
            while not connection_file.exists():
                if self.process.poll() is not None:
                    self.class_data.forget()  # in case that it was the reason
                    return False
                time.sleep(_POLL_S)
            with connection_file.open("rb") as file:
                port = int.from_bytes(file.read(4))
                secret = file.read(int.from_bytes(file.read(4))).decode("utf-8")
        except BaseException:
            self.process.kill()  # where it cannot say where it listens it would listen for ever
            raise
        finally:
            self.folder.cleanup()
        with environment(gateway_variables(port, secret)):
            SparkContext._ensure_initialized(conf=conf)
        # It ends with its standard input, which closes with this process.
        SparkContext._gateway.proc = self.process  # type: ignore[union-attr]
        return True


def start_jvm(java: Java, conf: Mapping[str, str]) -> Jvm | None:
    """Start the Java process of a local session with those settings.

    Return None if Spark is configured by the user, runs in this process already, or if the cache is
    not writable: PySpark then starts its own.
    """
    spec = find_spec("pyspark")
    if not spec or not spec.submodule_search_locations or is_running():
        return None
    if any(name in os.environ for name in _CONFIGURED_BY):
        return None
    # Resolved: environments that are linked to one another share what is kept for their jars.
    spark = Path(spec.submodule_search_locations[0]).resolve()
    if (spark / "conf").exists():
        return None
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    try:
        folder = cache_path() / "spark" / kind_of(java, settings, (spark / "jars").iterdir())
        cached = folder / "command"
        text = cached.read_text("utf-8", "surrogateescape") if cached.exists() else ""
        command = text.split("\0")
        if _MAIN not in command:  # a power cut may leave an empty file
            folder.mkdir(parents=True, exist_ok=True)
            command = _ask_launcher(java, spark, [_MAIN, *settings, "pyspark-shell"])
            with replacing(cached) as new:
                new.write_text("\0".join(command), "utf-8", "surrogateescape")
        own_folder, folder_of_daemon = TemporaryDirectory(), mkdtemp()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    main = command.index(_MAIN)
    class_data = ClassData(folder, tuple(command[:main]))
    flags = class_data.flags()
    command[main:main] = flags
    connection_file, waiting = f"{own_folder.name}/{_CONNECTION}", f"{folder_of_daemon}/socket"
    process = subprocess.Popen(
        ["/bin/sh", "-c", _START, sys.executable, worker_daemon.__name__, waiting, *command],
        stdin=subprocess.PIPE,
        env=_spark_environment(spark)
        | {"_PYSPARK_DRIVER_CONN_INFO_PATH": connection_file, worker_daemon.AHEAD: waiting},
    )
    class_data.make_after(process.pid, flags, at_exit=True)
    return Jvm(process, own_folder, class_data)


def is_running() -> bool:
    """Return True if this process has a Java of PySpark's."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None


def _ask_launcher(java: Java, spark: Path, words: list[str]) -> list[str]:
    launcher = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{spark}/jars/*", _LAUNCHER]
    output = subprocess.run(
        [java.executable, *launcher, *words],
        env={**_spark_environment(spark), "JAVA_HOME": str(java.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    ).stdout
    # Behind whatever else it has to say, a line of a zero, and every word ended by one.
    _, _, command = output.decode("utf-8", "surrogateescape").partition("\0\n")
    answer = [word for word in command.split("\0")[:-1] if word != _NOT_WANTED]
    if _MAIN not in answer:
        raise ValueError(output)
    return answer


def _spark_environment(spark: Path) -> dict[str, str]:
    """Return the environment that Spark's scripts would give."""
    (core,) = (spark / "jars").glob("spark-core_*.jar")
    return {
        **os.environ,
        "SPARK_HOME": str(spark),
        "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0],
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",  # Python workers have to agree on what a string hashes to
    }


def gateway_variables(port: int, secret: str) -> dict[str, str]:
    """Return the environment variables that tell PySpark of a JVM that it is to use."""
    return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
