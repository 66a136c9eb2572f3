"""Readers of a run's files while it grows: what they were told once they are told again.

They are a process of their own, which asks in a loop: this file is also its program, see `main`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.integration.test_growth import PEERS, interval
from tests.support.ingested import ingest, ingested
from vizpub.cli.main import app
from vizpub.ingest.pipeline import settling_request
from vizpub.model.metrics import OF_MESSAGES
from vizpub.model.tables import table
from vizpub.questions.run import Run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(7200),
]

ROOT = Path(__file__).parents[2]
RUN, WINDOW, FIRST = "fed", 3, PEERS
"""The run, its window of messages, and how many intervals it begins with: in these each peer has
published, for the roles in a GEXF are those of the whole run."""
ANSWERS, SAID, STOP = "answers.json", "said", "stop"
"""Files of a reader: what it was told, what it says of a deviation, and that it is to end."""
TABLES = ("overlay", "peers", "topics")
HELD = 12
"""Openings of the run that a reader goes on to read from."""


def questions(final: int, settled: int) -> Iterator[tuple[str, ...]]:
    """About times up to two intervals."""
    at, sql = str(final), "SELECT src, dst, valid_from FROM links WHERE valid_from <= {0} AND "
    asked: list[tuple[str, ...]] = [
        *(("metrics", RUN, of, "--to", at, "--columns", of_links(of)) for of in TABLES),
        ("overlay", RUN, "--at", at),
        ("topic", RUN, "news", "--at", at),
        ("path", RUN, "p1", "p5", "--at", at),
        ("sql", RUN, (sql + "valid_to > {0} ORDER BY ALL").format(at)),
    ]
    if settled >= 0:
        asked += [("metrics", RUN, of, "--to", str(settled)) for of in (*TABLES, "messages")]
        asked.append(("message", RUN, f"m{settled}"))
    yield from ((*words, "--format", "csv") for words in asked)
    yield "export", "gexf", RUN, "--from", at, "--to", at
    if settled >= 0:
        yield "export", "gexf", RUN, "--message", f"m{settled}"


def of_links(name: str) -> str:
    """The columns of a metrics table that no message changes."""
    meant = table(f"metrics/{name}")
    return ",".join(c for c in meant.names if c not in {*meant.key, *OF_MESSAGES})


def told(workspace: Path, *words: str) -> str:
    """What a command prints, or how it ends."""
    done = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
    return done.stdout if done.exit_code == 0 else f"exit {done.exit_code}: {done.stderr}"


# The program that reads: `python test_fed_readers.py WORKSPACE`


def main(workspace: Path) -> None:
    """Ask until the end; a deviation ends it with exit code 1."""
    asked: dict[tuple[str, ...], str] = {}
    held = deque[tuple[Run, pa.Table]](maxlen=HELD)
    rng, rounds, frontiers = random.Random(0), 0, (-1, -1)
    while not (workspace / STOP).exists() or rounds < len(asked):
        (shown,) = json.loads(told(workspace, "runs", "show", RUN, "--format", "json"))
        final, settled = shown["final"], shown["settled"]
        if final is None:  # nothing was appended yet, or it was settled
            final, settled = FIRST - 1, FIRST - 1 - WINDOW
        if (final, settled) > frontiers:
            frontiers = final, settled
            asked |= {words: told(workspace, *words) for words in questions(final, settled)}
            run = Run.open(workspace, RUN)
            held.append((run, run.table("links")))
        words = rng.choice([*asked])
        if (now := told(workspace, *words)) != asked[words]:
            sys.exit(f"{words}\n{asked[words]}\nand then\n{now}")
        run, links = rng.choice(held)
        if not run.table("links").equals(links):
            sys.exit("a run that was opened earlier has other links")
        rounds += 1
        report = {"rounds": rounds, "asked": list(asked.items())}
        (workspace / "half").write_text(json.dumps(report))
        (workspace / "half").replace(workspace / ANSWERS)


@contextmanager
def reading(workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A reader that has begun."""
    command = [sys.executable, __file__, str(workspace)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        (workspace / SAID).open("w") as said,
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=said) as reader,
    ):
        try:
            while reader.poll() is None and not (workspace / ANSWERS).exists():
                time.sleep(0.05)
            yield reader
        finally:
            (workspace / STOP).touch()


@pytest.mark.long
@pytest.mark.parametrize("appends", [3, 60])
def test_reader_is_told_the_same_while_a_run_grows_and_is_settled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appends: int
) -> None:
    """And in the end what a run of one ingest tells. In the middle the run is made anew."""
    monkeypatch.setattr("vizpub.runstore.leftovers.KEPT_SECONDS", 600)
    workspace, whole, last = tmp_path / "ws", tmp_path / "whole", FIRST + appends
    files = [tmp_path / f"{number}.ndjson" for number in range(FIRST - 1, last)]
    for place, file in enumerate(files):
        numbers = range(FIRST) if place == 0 else [FIRST - 1 + place]
        records = (record for number in numbers for record in interval(number))
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    ingest(spark, workspace, RUN, files[0], append=True, message_window=WINDOW)
    with reading(workspace) as reader:
        for place, file in enumerate(files[1:], start=1):
            ingest(spark, workspace, RUN, file, append=True, message_window=WINDOW)
            if place == (appends + 1) // 2:
                ingested(spark, settling_request(Run.open(workspace, RUN).stored))
            assert reader.poll() is None, (workspace / SAID).read_text()
    assert reader.returncode == 0, (workspace / SAID).read_text()
    report = json.loads((workspace / ANSWERS).read_text())
    print(report["rounds"], "answers")
    assert report["rounds"] > appends
    ingest(spark, whole, RUN, *files, message_window=WINDOW)
    for words, answer in report["asked"]:
        assert told(whole, *words) == answer, words


if __name__ == "__main__":
    main(Path(sys.argv[1]))
