"""What is swept of a workspace, and what is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.permissions import as_a_user
from tests.support.tables import EMPTY, everything
from vizpub.graphstore.server.server import LocalServer
from vizpub.machine.locks import OF_SPARK, own_folder
from vizpub.runstore.leftovers import SCRATCH, sweep
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

ROOT = Path(__file__).parents[3]
_WORK = """
import sys, time
from pathlib import Path
from vizpub.graphstore.server.server import LocalServer
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.writer import writing
from vizpub.machine.locks import OF_SPARK, own_folder
workspace = Path(sys.argv[1])
with (
    own_folder(workspace / SCRATCH, OF_SPARK) as work,
    LocalServer(workspace / "neo4j").staging_folder() as staging,
    writing(workspace, "begun") as writer,
):
    (work / "blockmgr").mkdir()
    for folder in (work / "blockmgr", staging):
        (folder / "block").write_bytes(bytes(9))
    writer.directory.mkdir()
    (writer.directory / "run.json.new").write_text("{")
    print("working", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def worker(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that has something of everything in the workspace."""
    child = subprocess.Popen(
        [sys.executable, "-c", _WORK, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "working\n"
    return child


def end(child: subprocess.Popen[str], how: signal.Signals) -> None:
    child.send_signal(how)
    child.communicate(timeout=30)


def test_files_of_a_living_process_stay(worker: subprocess.Popen[str], tmp_path: Path) -> None:
    before = everything(tmp_path)
    try:
        sweep(tmp_path)
        assert everything(tmp_path) == before
        assert len(before) == 6  # three files, three locks
    finally:
        end(worker, signal.SIGKILL)


def test_files_of_a_killed_process_are_swept_by_the_next_command(
    worker: subprocess.Popen[str], run: StoredRun, tmp_path: Path
) -> None:
    from vizpub.cli.main import app

    end(worker, signal.SIGKILL)
    assert CliRunner().invoke(app, ["--workspace", str(tmp_path), "runs", "tables"]).exit_code == 0
    assert everything(tmp_path) == {f"runs/monday/{name}" for name in everything(run.directory)}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["monday"]
    assert [path.name for path in (tmp_path / SCRATCH).iterdir()] == []


def test_own_folder_sweeps_others_that_nobody_holds(
    worker: subprocess.Popen[str], tmp_path: Path
) -> None:
    end(worker, signal.SIGKILL)
    with (
        own_folder(tmp_path / SCRATCH, OF_SPARK) as work,
        own_folder(tmp_path / SCRATCH, OF_SPARK) as other,
        LocalServer(tmp_path / "neo4j").staging_folder() as staging,
    ):
        assert {path for path in (tmp_path / SCRATCH).iterdir() if path.is_dir()} == {work, other}
        assert [path for path in (tmp_path / "neo4j").iterdir() if path.is_dir()] == [staging]


def test_directory_with_anything_but_a_beginning_stays(tmp_path: Path) -> None:
    with writing(tmp_path, "half") as writer:
        writer.begin(EMPTY)
    for name in ("mine/notes.txt", "removed/links/0/a.parquet", ".hidden/x"):
        path = tmp_path / "runs" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    (tmp_path / "runs/empty").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/run.json.new").write_text("{")
    (tmp_path / "runs/elsewhere").symlink_to(tmp_path / "precious")
    sweep(tmp_path)
    assert (tmp_path / "precious/run.json.new").exists()
    assert not (tmp_path / "runs/empty").exists()
    assert everything(tmp_path / "runs") >= {"half/run.json", "mine/notes.txt", ".hidden/x"}
    assert (tmp_path / "runs/removed/links/0/a.parquet").exists()
    half = open_run(tmp_path, "half", complete=False).manifest
    assert half == replace(EMPTY, name="half")


def test_run_of_another_user_is_in_nobodys_way(run: StoredRun, tmp_path: Path) -> None:
    """Of a directory that is closed to this user, nobody may even ask what is in it."""
    run.directory.chmod(0)
    with as_a_user():
        sweep(tmp_path)
        with pytest.raises(PermissionError):
            (run.directory / "run.json").stat()
    run.directory.chmod(0o700)
    assert open_run(tmp_path, "monday").read("links").num_rows == 100


def test_workspace_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
