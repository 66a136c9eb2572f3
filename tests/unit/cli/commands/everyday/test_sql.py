"""`vizpub sql`, as a user calls it, on a run that is known by heart."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner, Result

from tests.support.few import few
from tests.support.words import unfinished, unknown
from vizpub.cli.main import app
from vizpub.questions.run import Run

QUERY = "SELECT interval, network_size FROM metrics.overlay ORDER BY interval"
Call = Callable[..., Result]


@pytest.fixture
def call(workspace: Path) -> Call:
    def run(*words: str, given: str = "") -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), "sql", *words], input=given)

    return run


def rows(result: Result) -> list[tuple[int, ...]]:
    assert result.exit_code == 0, result.output
    return [tuple(map(int, row.values())) for row in csv.DictReader(io.StringIO(result.stdout))]


def test_query_by_word_file_and_stdin_gives_the_metrics(
    workspace: Path, tmp_path: Path, call: Call
) -> None:
    sizes = Run.open(workspace, "monday").metrics("overlay", ["network_size"]).to_pylist()
    meant = [(row["interval"], row["network_size"]) for row in sizes]
    file = tmp_path / "sizes.sql"
    file.write_text(QUERY)
    assert rows(call("monday", QUERY, "-f", "csv")) == meant
    assert rows(call("monday", str(file), "-f", "csv")) == meant
    assert rows(call("monday", "-", "-f", "csv", given=QUERY)) == meant
    assert rows(call("monday", QUERY, "-f", "csv", "--limit", "2")) == meant[:2]


def test_sums_are_numbers(call: Call) -> None:
    """DuckDB sums whole numbers as decimals."""
    total = "SELECT sum(x) AS whole, 1.50 AS part, NULL::DECIMAL(9, 2) AS none FROM range(5) t(x)"
    (row,) = json.loads(call("monday", total, "-f", "json").stdout)
    assert row == {"whole": 10, "part": 1.5, "none": None}
    large = call("monday", "SELECT 2000 + sum(x) AS whole FROM range(5) t(x)")
    assert large.stdout.splitlines()[-1].strip() == "2,010"


def test_tables_are_listed_where_no_query_is_given(call: Call) -> None:
    found = call("monday", "-f", "csv").stdout.splitlines()
    assert "metrics.overlay" in {line.split(",")[0] for line in found}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("monday", "SELECT degre FROM metrics.peers"), "degree"),
        (("monday", "missing.sql"), "missing.sql"),
        (("mondy", QUERY), unknown("run", "mondy", "monday")),
        (("half", QUERY), unfinished("half", "ingesting")),
    ],
)
def test_mistake_is_told_in_words(call: Call, words: tuple[str, ...], said: str) -> None:
    result = call(*words)
    assert result.exit_code == (1 if words[0] == "half" else 2)
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("how", few([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_query_that_is_ended_says_so(workspace: Path, tmp_path: Path, how: int) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    endless = "SELECT count(*) FROM range(1_000_000_000_000)"
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "vizpub.cli",
            "--workspace",
            str(workspace),
            "sql",
            "monday",
            endless,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as child:
        process = psutil.Process(child.pid)
        while not any(scratch.iterdir()):
            time.sleep(0.05)
        before = process.cpu_times().user
        while process.cpu_times().user < before + 1:  # DuckDB works by then
            time.sleep(0.05)
        child.send_signal(how)
        told = child.communicate(timeout=60)[1]
    words = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
    assert (child.returncode, told) == (128 + how, words[signal.Signals(how)] + "\n")
    assert not any(scratch.iterdir())
