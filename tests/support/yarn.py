"""A real YARN from the locked jars, at this machine's loopback: a resource manager and one node,
whose containers are processes of this machine. Its files are in an HDFS.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from tests.support.broker import free_ports
from vizpub.machine.jvm.artifacts import jars

_SERVER = "org.apache.hadoop.yarn.server"
_MANAGERS = ("address", "scheduler.address", "resource-tracker.address", "admin.address")


def _xml(settings: Mapping[str, str]) -> str:
    properties = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{''.join(properties)}</configuration>"


def _settings(folder: Path) -> dict[str, str]:
    of_manager, of_node = "yarn.resourcemanager", "yarn.nodemanager"
    ports = free_ports(len(_MANAGERS))
    return {
        **{
            f"{of_manager}.{name}": f"127.0.0.1:{port}"
            for name, port in zip(_MANAGERS, ports, strict=True)
        },
        f"{of_manager}.webapp.address": "127.0.0.1:0",
        f"{of_manager}.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "256",
        **{
            f"{of_node}.{name}": "127.0.0.1:0"
            for name in ("address", "localizer.address", "webapp.address")
        },
        f"{of_node}.hostname": "127.0.0.1",
        f"{of_node}.local-dirs": str(folder / "local"),
        f"{of_node}.log-dirs": str(folder / "logs"),
        f"{of_node}.resource.memory-mb": "4096",
        f"{of_node}.vmem-check-enabled": "false",
    }


def class_path() -> list[Path]:
    """The jars of the daemons. Raises: ArtifactsMissing."""
    # The resource manager makes certificates, by a library that Neo4j has, too. Hadoop's client,
    # which the cluster's own jar needs, and a log are Spark's.
    ours = [jar for jar in jars("hdfs") if "minicluster" in jar.name]
    ours += [jar for jar in jars("neo4j") if jar.name.startswith("bc")]
    return [*ours, Path(pyspark.__file__).parent / "jars" / "*"]


@contextmanager
def running(folder: Path, path: list[Path], hdfs: str, java_home: str) -> Iterator[Path]:
    """A YARN for the length of the block, of jars at `path`, with its files in `hdfs`; yields the
    folder for HADOOP_CONF_DIR. In the end all that runs in its folder dies.
    """
    (conf := folder / "conf").mkdir(parents=True)
    (conf / "core-site.xml").write_text(_xml({"fs.defaultFS": hdfs}))
    (conf / "yarn-site.xml").write_text(_xml(_settings(folder)))
    daemons = []
    try:
        for name in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
            with (folder / f"{name}.txt").open("wb") as said:
                daemon = subprocess.Popen(
                    [*_java(java_home), ":".join(map(str, [conf, *path])), f"{_SERVER}.{name}"],
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], "JAVA_HOME": java_home},
                    stdout=said,
                    stderr=said,
                )
            daemons.append(daemon)
        yield conf
    finally:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()).is_relative_to(folder):
                    process.kill()
        for daemon in daemons:
            daemon.wait()


def _java(home: str) -> list[str]:
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return [f"{home}/bin/java", *options, "-cp"]
