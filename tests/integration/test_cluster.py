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
from typing import Any

import pyarrow as pa
import pyspark
import pytest

from tests.integration.test_experiments import TEXT
from tests.integration.test_simulate import check_seeds
from tests.integration.test_store_commands import write_reports
from tests.support.ingested import TRACES, Store
from tests.support.installed import install_into
from tests.support.object_store import Machine, S3Server, Server, check_objects
from tests.support.project import ROOT
from tests.support.words import tells
from vizpub.machine.jvm.java import find_java, spark_java_home
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.place import folder_of, store_of

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]

SPARK = Path(pyspark.__file__).parent / "bin"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FIND = "import importlib.util as i, sys; print(*filter(i.find_spec, sys.argv[1:]))"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "a secret of tests"}
EVENTS, LINKS = "gossipsub-4", "cluster-links"
"""Runs, by name."""


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
    """A Python that finds what is installed, but not our package."""
    packages = folder / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name != "vizpub":
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
    compiled, cache = folder.parent / "cache", folder / "cache"
    compiled.mkdir(exist_ok=True)
    cache.mkdir(parents=True)
    (cache / "numba").symlink_to(compiled)
    log = folder / "log"
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "VIZPUB_CACHE": str(cache),
        **CREDENTIALS,
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
        # To compile plans takes three processes longer than all the work that is in them.
        "spark.sql.codegen.wholeStage false\nspark.sql.codegen.factoryMode NO_CODEGEN\n"
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
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster's runs are."""
    return tmp_path_factory.mktemp("there")


@dataclass(frozen=True)
class Made:
    """A run made on the cluster, and what the workers had compiled then."""

    run: StoredRun
    compiled: dict[Path, int]


@pytest.fixture(scope="module")
def by_master(cluster: Cluster, workspace: Path) -> Made:
    """Events with topics and publications, by `--master`."""
    paths = [os.path.relpath(path, ROOT) for path in TRACES[EVENTS]]
    words = ["--workspace", str(workspace), "ingest", "--no-load", "--run", EVENTS, *paths]
    call([sys.executable, "-m", "vizpub.cli", *words, "--master", cluster.url], cluster)
    return Made(open_run(workspace, EVENTS), cluster.compiled)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    links = tmp_path_factory.mktemp("links") / "links.csv"
    lives = (f"{a},{a * 7 % 30},{a % 3},{a % 3 + a % 4 + 1}\n" for a in range(1, 60))
    links.write_text("src,dst,valid_from,valid_to\n" + "".join(lives))
    return links


@pytest.fixture(scope="module")
def by_submit(cluster: Cluster, workspace: Path, by_master: Made, links: Path) -> Made:
    """A list of links, by spark-submit, after the other."""
    words = ["--workspace", str(workspace), "ingest", "--no-load", "--run", LINKS, str(links)]
    submit = [str(SPARK / "spark-submit"), "--driver-java-options", QUICK]
    call(
        [*submit, "--master", cluster.url, str(ROOT / "vizpub" / "cli" / "__main__.py"), *words],
        cluster,
    )
    return Made(open_run(workspace, LINKS), cluster.compiled)


@pytest.fixture(scope="module")
def by_wheel(
    cluster: Cluster, workspace: Path, links: Path, tmp_path_factory: pytest.TempPathFactory
) -> StoredRun:
    """The list of links again, by what our wheel installs."""
    installed = tmp_path_factory.mktemp("installed")
    install_into(installed, ROOT)
    words = ["--workspace", str(workspace), "ingest", "--no-load", "--run", "by-wheel", str(links)]
    program = [sys.executable, "-m", "vizpub.cli", *words, "--master", cluster.url]
    call(program, cluster, cwd=installed, PYTHONPATH=str(installed))
    return open_run(workspace, "by-wheel")


def call(command: list[str], cluster: Cluster, cwd: Path = ROOT, **variables: str) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=cluster.environment() | variables,
        capture_output=True,
        text=True,
        check=False,
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


def test_workers_have_no_vizpub(cluster: Cluster) -> None:
    """And find pyspark and all else."""
    tried = subprocess.run(
        [cluster.python, "-c", FIND, "pyspark", "vizpub"],
        cwd=cluster.folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert tried.stdout.split() == ["pyspark"]


def check_same(one: StoredRun, other: StoredRun) -> None:
    assert one.manifest.tables.keys() == other.manifest.tables.keys()
    assert files(one) == files(other)
    for fact in ("options", "clock", "unknown", "notes", "engines", "stages"):
        assert getattr(one.manifest, fact) == getattr(other.manifest, fact), fact
    for table in one.manifest.tables:
        assert bits(one, table).equals(bits(other, table)), table


def files(run: StoredRun) -> list[dict[str, Any]]:
    """What the run was made from, wherever that lay."""
    names = (Path(file["path"].partition("?")[0]).name for file in run.manifest.inputs)
    return [{**file, "path": name} for file, name in zip(run.manifest.inputs, names, strict=True)]


def test_run_by_master_option_equals_that_of_one_machine(by_master: Made, stored: Store) -> None:
    assert by_master.compiled
    check_same(stored(EVENTS), by_master.run)


@pytest.mark.long
def test_run_by_spark_submit_equals_that_of_one_machine(
    by_master: Made, by_submit: Made, stored: Store, links: Path
) -> None:
    assert by_submit.compiled == by_master.compiled, "compiled once for all sessions"
    check_same(stored(LINKS, links), by_submit.run)


def test_run_by_the_wheel_equals_that_of_one_machine(
    by_wheel: StoredRun, stored: Store, links: Path
) -> None:
    check_same(stored(LINKS, links), by_wheel)


class TestStore:
    """Driver and workers share a store, and nothing else: each has a cache of its own."""

    @pytest.fixture
    def reports(self, server: Server, machine: Machine, tmp_path: Path) -> list[str]:
        """Input in the store, in two files that continue each other."""
        machine("elsewhere")
        store = store_of(folder_of(f"{server.top()}/input"))
        assert store
        for path in (write_reports(tmp_path, range(3)), write_reports(tmp_path, range(3, 6))):
            store.put(path.name, path)
        options = ""
        if isinstance(server, S3Server):
            host = server.endpoint.removeprefix("http://")
            options = f"?endpoint_override={host}&scheme=http"
        return [f"{store.url}/{name}.ndjson{options}" for name in (0, 3)]

    def test_run_and_append_equal_those_of_one_machine(
        self, cluster: Cluster, machine: Machine, url: str, reports: list[str], tmp_path: Path
    ) -> None:
        for place, more in ((url, ["--master", cluster.url]), (str(tmp_path / "one"), [])):
            for path, append in zip(reports, ([], ["--append"]), strict=True):
                words = ["--workspace", place, "ingest", "--no-load", "--run", "lab", path]
                program = [sys.executable, "-m", "vizpub.cli", *words, *append, *more]
                call(program, cluster, VIZPUB_CACHE=str(tmp_path / "driver"))
        run = open_run(machine("elsewhere"), "lab")
        check_same(open_run(tmp_path / "one", "lab"), run)
        check_objects(run)
        folder = Path("stores") / run.directory.parents[1].name
        assert [*cluster.folder.rglob(f"{folder}/**/*.parquet")], "tasks wrote on their machines"


def test_scratch_files_are_removed_after_the_run(by_master: Made, workspace: Path) -> None:
    left = [path for path in (workspace / ".spark").rglob("*") if path.is_file()]
    assert left == []
    assert list(workspace.rglob(".probe*")) == []


def vizpub(cluster: Cluster, folder: Path, *words: str) -> str:
    """What a command told of what it did on the cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "vizpub.cli", *words, "--master", cluster.url],
        cwd=folder,
        env={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.long
def test_simulations_spread_over_the_cluster_are_those_of_their_seeds(
    cluster: Cluster, tmp_path: Path
) -> None:
    world = ("--peers", "20", "--intervals", "8", "--publications", "every:4", "--seed", "3")
    words = ("lab", "simulate", "poldercast", *world, "--runs", "2", "--out", "both")
    vizpub(cluster, tmp_path, *words)
    check_seeds("poldercast", tmp_path)


@pytest.mark.long
def test_experiment_on_the_cluster_meets_the_claims_met_here(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "rings.toml").write_text(TEXT, "utf-8")
    told = vizpub(cluster, tmp_path, "lab", "experiment", "run", "rings.toml", "--out", "out")
    tells(told, "2 of 3")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="a path that is another in each process")
def test_workspace_that_is_not_shared_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    words = ["--workspace", "/proc/self/cwd/ws", "ingest", "a.csv", "--run", "r", "--no-load"]
    (tmp_path / "a.csv").write_text("interval,src,dst\n0,a,b\n")
    refused = subprocess.run(
        [sys.executable, "-m", "vizpub.cli", *words, "--master", cluster.url],
        cwd=tmp_path,
        env={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2, refused.stderr
    tells(refused.stderr, "/proc/self/cwd/ws/.spark", "spark://", "No such file or directory")
