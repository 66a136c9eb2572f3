"""What a command needs goes away in the middle: it says so, and the same command again does all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.integration.test_append import same_tables
from tests.integration.test_ends import TRAP, kill_java
from tests.support.ingested import ingest
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.store import open_run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PEERS, INTERVALS = 12, 6


def reports(intervals: Iterable[int]) -> str:
    told = (
        {
            "format": "vizpub.report/1",
            "peer": f"p{peer}",
            "interval": interval,
            "neighbors": [f"p{(5 * peer + interval + place) % PEERS}" for place in range(3)],
            "topics": ["news"],
        }
        for interval in intervals
        for peer in range(PEERS)
    )
    return "".join(f"{json.dumps(one)}\n" for one in told)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The second one has reports that come late, too."""
    folder = tmp_path_factory.mktemp("inputs")
    paths = [folder / "first.ndjson", folder / "second.ndjson"]
    paths[0].write_text(reports(range(INTERVALS)))
    paths[1].write_text(reports(range(INTERVALS, 2 * INTERVALS)) + reports([2]))
    return paths


def commands(inputs: list[Path]) -> dict[str, list[str]]:
    first, second = map(str, inputs)
    return {
        "ingest": ["ingest", first, "--run", "lab", "--no-load"],
        "append": ["ingest", second, "--run", "lab", "--append", "--no-load"],
        "settle": ["runs", "settle", "lab", "--no-load"],
    }


def vizpub(
    workspace: Path,
    words: list[str],
    at: str = "",
    end: Callable[[psutil.Process], object] = id,
    **variables: str,
) -> tuple[int, str]:
    """The exit code and what it told; something is done to it once it tells of that step."""
    command = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        told = ""
        for line in child.stderr:
            told += line
            if at and line.startswith(at):
                end(psutil.Process(child.pid))
    print(child.returncode, told)
    return child.returncode, told


def check_said(code: int, told: str, cause: str) -> None:
    """It failed with an error in words, which has the cause."""
    assert code in (1, 3), told
    (error,) = (line for line in told.splitlines() if line.startswith("error: "))
    assert cause in error
    for word in ("Traceback", "unexpected", "\tat ", "Exception"):
        assert word not in told


@pytest.mark.long
def test_append_whose_java_is_killed_can_be_repeated(
    spark: SparkSession, tmp_path: Path, inputs: list[Path]
) -> None:
    ingest(spark, tmp_path, "lab", inputs[0])
    check_said(*vizpub(tmp_path, commands(inputs)["append"], "read (", kill_java), "Java")
    grown = ingest(spark, tmp_path, "lab", inputs[1], append=True).run
    same_tables(grown, ingest(spark, tmp_path, "whole", *inputs).run)


@pytest.mark.long
@pytest.mark.parametrize(
    "stages", [("read", "read", "read"), ("names", "periods", "metrics")], ids=["read", "later"]
)
def test_command_whose_java_is_killed_can_be_repeated(
    spark: SparkSession, tmp_path: Path, inputs: list[Path], stages: tuple[str, ...]
) -> None:
    for words, stage in zip(commands(inputs).values(), stages, strict=True):
        check_said(*vizpub(tmp_path, words, f"{stage} (", kill_java), "Java")
        assert vizpub(tmp_path, words)[0] == 0
    same_tables(open_run(tmp_path, "lab"), ingest(spark, tmp_path, "whole", *inputs).run)


@pytest.mark.long
def test_ingest_whose_workers_all_die_can_be_repeated(
    spark: SparkSession, tmp_path: Path, inputs: list[Path]
) -> None:
    words = commands(inputs)["ingest"]
    (tmp_path / "sitecustomize.py").write_text(TRAP)
    paths = os.pathsep.join(map(str, (tmp_path, ROOT)))
    sprung = tmp_path / "sprung" / "{pid}"
    sprung.parent.mkdir()
    trapped = {"PYTHONPATH": paths, "SPRUNG": str(sprung)}
    check_said(*vizpub(tmp_path, words, **trapped), "Python worker")
    assert len([*sprung.parent.iterdir()]) > 1
    assert vizpub(tmp_path, words)[0] == 0
    same_tables(open_run(tmp_path, "lab"), ingest(spark, tmp_path, "whole", inputs[0]).run)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[], object]]:
    """At the folder; yields what gives it room. Skips where there is none: that takes root."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "vizpub-full", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here: that takes root")
    larger = ["mount", "-o", "remount,size=96m", str(folder)]
    try:
        yield lambda: subprocess.run(larger, check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.parametrize(("below", "size"), [(SCRATCH, "4k"), ("", "16k"), ("", "64k")])
def test_ingest_whose_disk_is_full_can_be_repeated(
    spark: SparkSession, inputs: list[Path], below: str, size: str
) -> None:
    """Where there is room again. An ingest that happens to need no scratch file succeeds."""
    with TemporaryDirectory(prefix="vizpub-full-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        words = commands(inputs)["ingest"]
        with small_disk(workspace / below, size) as make_room:
            code, told = vizpub(workspace, words)
            if code or not below:
                check_said(code, told, "no space left")
                make_room()
                assert vizpub(workspace, words)[0] == 0
            same_tables(open_run(workspace, "lab"), ingest(spark, workspace, "one", inputs[0]).run)
