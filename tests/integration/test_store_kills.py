"""Commands that are killed at random moments, with all that they started, while they write into a
store. Readers see the run as it was or as it is; the same command again makes the run that nobody
disturbed, and leaves nothing else there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_append import same_tables
from tests.integration.test_store_commands import write_reports
from tests.support.faults import LARGE
from tests.support.ingested import ingest
from tests.support.object_store import Machine, check_objects
from tests.support.project import ROOT
from vizpub.ingest.spark import scale
from vizpub.model.errors import RunNotComplete, UnknownName
from vizpub.runstore.store import StoredRun, open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(3000)]

STAGES = ("read", "names", "periods", "messages", "metrics", "finish")
PROGRAM = """
from vizpub.cli.main import app
from vizpub.ingest.spark import scale
scale.SMALL_INPUT = {small}
app()
"""
"""The command line, for which an input of more bytes is committed stage by stage."""


def start(small: int, *words: str) -> subprocess.Popen[str]:
    """A command with a group of its own, to which all belongs that it starts."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(small=small), *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_in(stage: str, after_s: float, small: int, *words: str) -> None:
    """Kill a command so many seconds after a stage began, unless it has ended before."""
    with start(small, *words) as child:
        assert child.stderr
        for line in child.stderr:
            if line.startswith(stage):
                time.sleep(after_s)
                break
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def stored(machine: Machine) -> StoredRun | None:
    """What a machine without any copies sees."""
    with suppress(UnknownName, RunNotComplete):
        return open_run(machine("elsewhere"), "lab")
    return None


@pytest.mark.parametrize("seed", range(3))
def test_killed_commands_leave_the_run_that_nobody_disturbed(
    spark: SparkSession, tmp_path: Path, machine: Machine, url: str, seed: int
) -> None:
    print("seed", seed)
    dice, small = Random(seed), LARGE if seed % 2 else scale.SMALL_INPUT
    paths = [write_reports(tmp_path, days) for days in (range(3), range(3, 6))]
    wholes = list[StoredRun]()
    """The run of so many files, as nobody disturbed it, by its generation."""
    for number, path in enumerate(paths):
        append = ("--append",) if number else ()
        words = ("--workspace", url, "ingest", str(path), "--run", "lab", "--no-load", *append)
        wholes.append(ingest(spark, tmp_path / f"{number}", "lab", *paths[: number + 1]).run)
        for stage in (dice.choice(STAGES), "finish", "finish"):
            machine("here")
            kill_in(stage, dice.uniform(0, 2), small, *words)
            if run := stored(machine):
                same_tables(run, wholes[run.manifest.generation])
        machine("here")
        with start(small, *words) as child:
            _, told = child.communicate()
        assert child.returncode == 0, told
        run = open_run(machine("elsewhere"), "lab")
        same_tables(run, wholes[number])
        check_objects(run)
