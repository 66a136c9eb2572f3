"""A standalone cluster on this machine, which shares nothing with us but the workspace.

Its workers run in other directories, without our environment, and with a Python that has all
packages but ours. What it makes is compared with what this machine makes, bit by bit.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from ingest.shipping import PACKAGES
from ingest.store import StoredRun, open_run
from model.java import find_java, spark_java_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent / "bin"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
RUNS = ("reports", "links")
LOCAL = """
import sys
from pathlib import Path
from ingest.pipeline import IngestRequest, ingest

workspace, *inputs = sys.argv[1:]
for name, paths in zip(("reports", "links"), inputs, strict=True):
    ingest(IngestRequest(tuple(paths.split()), name, Path(workspace), master="local[2]"))
"""


@dataclass(frozen=True)
class Cluster:
    url: str
    folder: Path
    python: Path

    @property
    def compiled(self) -> dict[Path, int]:
        """What numba keeps on the workers' machine, and when it was written."""
        files = (self.folder / "cache").rglob("*.nb[ic]")
        return {path: path.stat().st_mtime_ns for path in files}

    def environment(self) -> dict[str, str]:
        """Of a driver."""
        return {
            **os.environ,
            "JAVA_HOME": java_home(),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }


def java_home() -> str:
    return str(spark_java_home(find_java()))


def python_without_us(folder: Path) -> Path:
    """A Python that finds what is installed, but none of our packages."""
    packages = folder / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name not in PACKAGES:
            (packages / entry.name).symlink_to(entry)
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    return python


@contextmanager
def daemon(folder: Path, *words: str) -> Iterator[Path]:
    """A process of Spark's in a folder of its own, and its log; in the end all it started dies."""
    folder.mkdir()
    log = folder / "log"
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "VIZPUB_CACHE": str(folder.parent / "cache"),
    }
    command = [SPARK / "spark-class", f"org.apache.spark.deploy.{words[0]}", *words[1:]]
    where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with (
        log.open("w") as out,
        subprocess.Popen(
            [*command[:2], *where, *command[2:]],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield log
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def logged(log: Path, pattern: str) -> str:
    """What a daemon tells, when it has told it."""
    deadline = time.monotonic() + 120
    while not (found := re.search(pattern, log.read_text())):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        f"spark.executor.memory 640m\nspark.executor.extraJavaOptions {QUICK}\n"
        # What has no scheme would be looked for elsewhere.
        "spark.hadoop.fs.defaultFS hdfs://127.0.0.1:1\n"
    )
    with ExitStack() as running:
        master = running.enter_context(daemon(folder / "master", "master.Master"))
        url = logged(master, r"spark://127\.0\.0\.1:\d+")
        size = ["--cores", "1", "--memory", "1g"]
        for name in ("one", "other"):
            work = ["--work-dir", str(folder / name / "work")]
            log = running.enter_context(daemon(folder / name, "worker.Worker", *size, *work, url))
            logged(log, "Successfully registered with master")
        yield Cluster(url, folder, python_without_us(folder))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Reports with topics and publications, and a list of links."""
    reports = sorted((ROOT / "examples" / "gossipsub").glob("*.ndjson.gz"))[:4]
    links = tmp_path_factory.mktemp("links") / "links.csv"
    lives = (f"{a},{a * 7 % 30},{a % 3},{a % 3 + a % 4 + 1}\n" for a in range(1, 60))
    links.write_text("src,dst,vf,vt\n" + "".join(lives))
    return {"reports": [os.path.relpath(path, ROOT) for path in reports], "links": [str(links)]}


@dataclass(frozen=True)
class Made:
    """Workspaces with the same runs."""

    here: Path
    there: Path


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, inputs: dict[str, list[str]]
) -> Made:
    """What this machine makes, and meanwhile the cluster, by both ways to use it."""
    workspaces = Made(tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there"))
    words = [str(workspaces.here), *(" ".join(inputs[name]) for name in RUNS)]
    with subprocess.Popen([sys.executable, "-c", LOCAL, *words], cwd=ROOT) as local:
        ingest = ["--workspace", str(workspaces.there), "ingest", "--no-load", "--run"]
        command = [sys.executable, "-m", "cli", *ingest, "reports", *inputs["reports"]]
        call([*command, "--master", cluster.url], cluster)
        compiled = cluster.compiled
        submit = [str(SPARK / "spark-submit"), "--driver-java-options", QUICK]
        submit += ["--master", cluster.url, str(ROOT / "cli" / "__main__.py")]
        call([*submit, *ingest, "links", *inputs["links"]], cluster)
        assert compiled
        assert cluster.compiled == compiled, "compiled once for all sessions"
        assert local.wait() == 0
    return workspaces


def call(command: list[str], cluster: Cluster) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env=cluster.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def bits(run: StoredRun, name: str) -> pa.Table:
    """A table in one order, its numbers as they are stored."""
    rows = run.read(name)
    columns = {
        column: rows[column].combine_chunks().view(pa.int64())
        if pa.types.is_floating(rows[column].type)
        else rows[column]
        for column in rows.column_names
    }
    return pa.table(columns).sort_by([(column, "ascending") for column in columns])


def test_the_workers_have_no_package_of_ours(cluster: Cluster) -> None:
    for package in PACKAGES:
        tried = subprocess.run(
            [cluster.python, "-c", f"import pyspark, {package}"],
            cwd=cluster.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"No module named '{package}'" in tried.stderr


@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_that_of_one_machine(made: Made, name: str) -> None:
    one, other = open_run(made.here, name), open_run(made.there, name)
    assert one.manifest.tables.keys() == other.manifest.tables.keys()
    for fact in ("inputs", "options", "clock", "unknown", "notes", "engines", "stages"):
        assert getattr(one.manifest, fact) == getattr(other.manifest, fact), fact
    for table in one.manifest.tables:
        assert bits(one, table).equals(bits(other, table)), table


def test_nothing_is_left_beside_the_runs(made: Made) -> None:
    left = [path for path in (made.there / ".spark").rglob("*") if path.is_file()]
    assert left == []
    assert list(made.there.rglob(".probe*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="a path that is another in each process")
def test_a_workspace_that_is_not_shared_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    words = ["--workspace", "/proc/self/cwd/ws", "ingest", "a.csv", "--run", "r", "--no-load"]
    (tmp_path / "a.csv").write_text("interval,src,dst\n0,a,b\n")
    refused = subprocess.run(
        [sys.executable, "-m", "cli", *words, "--master", cluster.url],
        cwd=tmp_path,
        env={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2, refused.stderr
    assert "/proc/self/cwd/ws/.spark is not shared with the executors of spark://" in refused.stderr
    assert "No such file or directory" in refused.stderr
    assert "put the workspace where all machines mount the same storage" in refused.stderr
