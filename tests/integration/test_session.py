"""A Spark that stays: used by ingests, by one at a time, whoever is killed.

This file is also a command that uses it: see `main`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.clocks import clock_set
from tests.support.ingested import TINY, Store
from tests.support.words import tells
from vizpub.cli.commands.setup.session import NO_SESSION
from vizpub.ingest.spark.session import JAVA_GONE
from vizpub.ingest.spark.staying import FOLDER, session_status
from vizpub.ingest.spark.warm import UNUSED
from vizpub.model.errors import SparkFailed
from vizpub.runstore.store import StoredRun, open_run

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
IN_TIME_S = 550.0
"""Longer than anything here takes, on any machine."""
SUM = sum(range(1000))


# The command: `python test_session.py SCRATCH DOES [FILE]`


def main(scratch: str, does: str, file: str = "") -> None:
    if does == "ask":
        print(json.dumps({"refused": refusal(Path(scratch))}))
    elif does == "kill":
        print(json.dumps({"code": code_without_java(Path(scratch), file)}))
    else:
        use(Path(scratch), does, file)


def refusal(scratch: Path) -> str:
    """Why there is no session for this process."""
    from vizpub.ingest.spark.staying import SessionNotUsable, lease_session

    with pytest.raises(SessionNotUsable) as told:
        lease_session(scratch)
    return str(told.value)


def code_without_java(scratch: Path, file: str) -> int:
    """What a command that ingests ends with, in the middle of which Java is killed."""
    from pyspark import SparkContext

    from vizpub.cli.errors import report
    from vizpub.ingest.pipeline import ingest
    from vizpub.ingest.request import IngestRequest
    from vizpub.model.errors import SparkFailed

    def progress(step: str, *_: int) -> None:
        if step.startswith("periods "):
            assert SparkContext._gateway is not None
            java = SparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid()
            os.kill(java, signal.SIGKILL)

    with pytest.raises(SparkFailed) as told:
        ingest(IngestRequest((file,), "run", scratch.parent), progress)
    return report(told.value)


def use(scratch: Path, does: str, file: str) -> None:
    from vizpub.ingest.spark.warm import warm_session

    with warm_session(scratch, quick=True) as spark:
        told = {
            "sum": spark.range(1000).selectExpr("sum(id)").first()[0],
            "kept": len(spark.sparkContext._jsc.getPersistentRDDs()),
            "views": [view.name for view in spark.catalog.listTables()],
            "setting": spark.conf.get("spark.sql.session.timeZone"),
        }
        print(json.dumps(told), flush=True)
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        spark.range(10).persist().count()
        spark.range(10).createOrReplaceTempView("left_behind")
        if does == "hang":
            spark.sparkContext.parallelize([file], 1).foreach(begin_and_hang)


def begin_and_hang(file: str) -> None:
    Path(file).touch()
    time.sleep(3600)


# What looks on.


@dataclass(frozen=True)
class Session:
    """A workspace and its session; every command is a process with the same environment."""

    workspace: Path
    environment: dict[str, str]

    @property
    def scratch(self) -> Path:
        return self.workspace / ".spark"

    def vizpub(self, *words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        code = "from vizpub.cli.main import app; app(prog_name='vizpub')"
        return subprocess.run(
            [sys.executable, "-c", code, "--workspace", str(self.workspace), *words],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        from typer.testing import CliRunner  # this file is also a command

        from vizpub.cli.main import app

        words = ("--workspace", str(self.workspace), "session", "status", "--format", "json")
        told = CliRunner().invoke(app, words)
        assert told.exit_code == 0, told.stderr
        (facts,) = json.loads(told.stdout)
        return dict(facts)

    def command(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, __file__, str(self.scratch), *words],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def done(self, *words: str) -> tuple[dict[str, Any], str]:
        """What a command found and what it said."""
        with self.command(*words) as child:
            out, err = child.communicate(timeout=IN_TIME_S)
        assert child.returncode == 0, err
        return json.loads(out), err

    @contextmanager
    def hanging(self, file: Path) -> Iterator[subprocess.Popen[str]]:
        """A command in the middle of a job that never ends."""
        with self.command("hang", str(file)) as child:
            wait_until(file.exists, child)
            try:
                yield child
            finally:
                child.kill()
                child.communicate()

    def processes(self) -> list[psutil.Process]:
        """The holder, the JVM and Python's workers; none where there is no session."""
        pid = self.status()["pid"]
        if pid is None:
            return []
        holder = psutil.Process(pid)
        return [holder, *holder.children(recursive=True)]


def wait_until(true: Callable[[], bool], unless: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + IN_TIME_S
    while not true():
        assert time.monotonic() < deadline
        assert unless is None or unless.poll() is None, unless.communicate()
        time.sleep(0.02)


def all_end(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, IN_TIME_S)[1]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def started(workspace: Path, *options: str) -> Iterator[Session]:
    session = Session(workspace, environment())
    done = session.vizpub("session", "start", *options)
    assert done.returncode == 0, done.stderr
    try:
        yield session
    finally:
        processes = session.processes()
        assert session.vizpub("session", "stop").returncode == 0
        assert all_end(processes)


@pytest.fixture(scope="module")
def of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with started(tmp_path_factory.mktemp("session") / "wörk") as session:
        yield session


@pytest.fixture
def session(of_module: Session) -> Session:
    """Started again where a test before has ended it."""
    if of_module.status()["state"] == "absent":
        assert of_module.vizpub("session", "start").returncode == 0
    return of_module


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.csv"
    shutil.copy(TINY, path)
    return path


def contents(run: StoredRun, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.read(name).to_pylist()
    return sorted(found, key=repr)


def test_ingest_in_a_session_equals_one_without(
    session: Session, tiny: Path, stored: Store
) -> None:
    before = session.status()["commands"]
    # From another directory than that in which it was started.
    done = session.vizpub("ingest", tiny.name, "--run", "in-it", "--no-load", cwd=tiny.parent)
    assert (done.returncode, UNUSED in done.stderr) == (0, False), done.stderr
    assert session.status()["commands"] == before + 1

    run, other = open_run(session.workspace, "in-it"), stored("tiny")
    assert set(run.manifest.tables) == set(other.manifest.tables)
    for name in other.manifest.tables:
        assert contents(run, name) == contents(other, name), name
    for fact in ("source", "clock", "epoch", "unknown", "notes", "engines", "stages"):
        assert getattr(run.manifest, fact) == getattr(other.manifest, fact)


def test_second_start_finds_the_first_session(session: Session) -> None:
    pid = session.status()["pid"]
    again = session.vizpub("session", "start")
    assert (again.returncode, again.stdout) == (0, "")
    tells(again.stderr, f"process {pid}")
    assert session.status()["pid"] == pid


@pytest.mark.long
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_session_is_the_same_after_the_clock_was_set(session: Session, seconds: float) -> None:
    before = session_status(session.scratch)
    with clock_set(seconds):
        there = session_status(session.scratch)
    assert (there.state, there.pid, there.since) == ("running", before.pid, before.since)
    assert there.pid == session.status()["pid"]
    assert (there.idle_s or 0) < 3000


CLEAN = {"sum": SUM, "kept": 0, "views": [], "setting": "UTC"}


@pytest.mark.long
def test_commands_find_nothing_of_one_another(session: Session) -> None:
    assert [session.done("leave")[0] for _ in range(2)] == [CLEAN, CLEAN]


@pytest.mark.long
def test_command_beside_a_busy_session_starts_its_own_spark(
    session: Session, tmp_path: Path
) -> None:
    with session.hanging(tmp_path / "begun") as child:
        status = session.status()
        assert (status["state"], status["used_by"]) == ("in use", child.pid)
        found, said = session.done("leave")
        assert found["sum"] == SUM
        tells(said, UNUSED, f"process {child.pid}")
        assert session.status()["commands"] == status["commands"]


@pytest.mark.long
def test_killed_command_leaves_the_session_usable(session: Session, tmp_path: Path) -> None:
    """Until then it is nobody else's. The next one finds nothing of it."""
    pid = session.status()["pid"]
    with session.hanging(tmp_path / "begun") as child:
        status, (refused, _) = session.status(), session.done("ask")
        assert (status["state"], status["used_by"]) == ("in use", child.pid)
        tells(refused["refused"], f"process {child.pid}")
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: session.status()["state"] == "running")
    found, said = session.done("leave")
    assert (found, UNUSED in said) == (CLEAN, False)
    assert session.status()["pid"] == pid


def test_session_folder_is_private_and_java_listens_locally(session: Session) -> None:
    folder = session.scratch / FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.iterdir()} <= {"socket", "log", "lock"}
    assert (folder / "log").read_text() == ""
    java = psutil.Process(session.status()["java"])
    listening = [c for c in java.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} == {"127.0.0.1"}


@pytest.mark.long
def test_java_ends_with_a_killed_holder(session: Session) -> None:
    processes = session.processes()
    processes[0].kill()
    assert all_end(processes)
    assert (session.scratch / FOLDER / "socket").exists()
    assert session.status()["state"] == "absent"
    stopped = session.vizpub("session", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    tells(stopped.stderr, NO_SESSION)


@pytest.mark.long
def test_session_replaces_a_killed_one_and_ends_with_java(tmp_path: Path) -> None:
    with started(tmp_path / "ws") as first:
        processes = first.processes()
        processes[0].kill()
        assert all_end(processes)
        with started(tmp_path / "ws") as second:
            assert second.status()["pid"] != processes[0].pid
            processes = second.processes()
            psutil.Process(second.status()["java"]).kill()
            assert all_end(processes)
            assert not (second.scratch / FOLDER / "socket").exists()


@pytest.mark.long
def test_idle_session_ends(tmp_path: Path) -> None:
    with started(tmp_path / "ws", "--idle", "0.1") as session, suppress(psutil.NoSuchProcess):
        assert all_end(session.processes())


@pytest.mark.long
def test_session_ends_with_its_folder(tmp_path: Path) -> None:
    with started(tmp_path / "ws") as session:
        processes = session.processes()
        shutil.rmtree(session.scratch)
        assert all_end(processes)


@pytest.mark.long
def test_session_with_other_settings_is_reported_and_replaced(tmp_path: Path) -> None:
    with started(tmp_path / "ws") as session:
        before = session.processes()
        other = replace(session, environment={**session.environment, "VIZPUB_SPARK_MEMORY": "1g"})
        found, said = other.done("leave")
        assert found["sum"] == SUM
        tells(said, UNUSED, "$VIZPUB_SPARK_MEMORY", "vizpub session start")
        assert other.vizpub("session", "start").returncode == 0
        assert all_end(before)
        assert UNUSED not in other.done("leave")[1]


def check_resumed(session: Session, tiny: Path) -> None:
    """An ingest whose Java is killed says so, and the same command goes on."""
    found, said = session.done("kill", str(tiny))
    assert found["code"] == 3
    tells(said, f"error: {SparkFailed(JAVA_GONE)}".splitlines()[0])
    assert not open_run(session.workspace, "run", complete=False).manifest.complete
    again = session.vizpub("ingest", str(tiny), "--run", "run", "--no-load")
    assert again.returncode == 0, again.stderr
    assert open_run(session.workspace, "run").manifest.complete


@pytest.mark.long
def test_ingest_whose_java_is_killed_resumes_when_repeated(tmp_path: Path, tiny: Path) -> None:
    check_resumed(Session(tmp_path / "ws", environment()), tiny)


@pytest.mark.long
def test_ingest_resumes_when_the_java_of_its_session_is_killed(tmp_path: Path, tiny: Path) -> None:
    with started(tmp_path / "ws") as session:
        processes = session.processes()
        check_resumed(session, tiny)
        assert all_end(processes)


if __name__ == "__main__":
    main(*sys.argv[1:])
