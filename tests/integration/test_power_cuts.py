"""Power cuts in ingests by Spark: the same command goes on to the run that nobody disturbed.

All operations without Spark are in tests/unit/runstore/test_durable.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.crashes import Disk, Operation, Recorder
from tests.support.faults import LARGE
from tests.support.ingested import ingest
from vizpub.ingest.spark import scale
from vizpub.runstore.integrity import damages
from vizpub.runstore.store import StoredRun, open_run, runs

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

RUN = "cut"
CUTS = 6


@dataclass(frozen=True)
class Ingests:
    """A run that was made of one file, and appended to by another."""

    spark: SparkSession
    inputs: tuple[Path, Path]

    def __call__(self, workspace: Path, *, append: bool) -> StoredRun:
        files = self.inputs if append else self.inputs[:1]
        return ingest(self.spark, workspace, RUN, *files, append=append).run


@pytest.fixture(scope="module")
def ingests(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingests:
    folder = tmp_path_factory.mktemp("inputs")
    first, second = (folder / f"{name}.ndjson" for name in ("first", "second"))
    for path, intervals in ((first, range(3)), (second, range(3, 5))):
        told = (
            {"format": "vizpub.report/1", "peer": p, "interval": i, "neighbors": [q]}
            for i in intervals
            for p, q in (("a", "b"), ("b", "c"), ("c", "a"))
        )
        path.write_text("".join(json.dumps(record) + "\n" for record in told))
    return Ingests(spark, (first, second))


@dataclass(frozen=True)
class Recorded:
    """What an ingest and an append did, stage by stage, and what came of it."""

    operations: list[Operation]
    appending: int
    """The first operation of the append."""
    first: dict[str, list[str]]
    last: dict[str, list[str]]


def contents(run: StoredRun) -> dict[str, list[str]]:
    return {name: sorted(map(repr, run.read(name).to_pylist())) for name in run.manifest.tables}


@pytest.fixture(scope="module")
def recorded(ingests: Ingests, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    recorder, found = Recorder(folder), list[Any]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale, "SMALL_INPUT", LARGE)
        for append in (False, True):
            found.append(len(recorder.operations))
            with recorder.recording():
                found.append(contents(ingests(folder / "ws", append=append)))
        _, first, appending, last = found
        yield Recorded(recorder.operations, appending, first, last)


def cuts(recorded: Recorded, seed: int) -> list[int]:
    """Operations at which the power goes, in both halves."""
    rng, middle = random.Random(seed), recorded.appending
    halves = (range(1, middle), range(middle + 1, len(recorded.operations)))
    return [place for half in halves for place in sorted(rng.sample(half, CUTS // 2))]


def test_ingest_after_a_power_cut_equals_the_undisturbed_one(
    ingests: Ingests, recorded: Recorded, tmp_path: Path
) -> None:
    seed = 21
    print("seed", seed)
    rng, disk, places = random.Random(seed), Disk(), cuts(recorded, seed)
    for place, operation in enumerate(recorded.operations, start=1):
        disk.do(operation)
        if place not in places:
            continue
        workspace = tmp_path / str(place) / "ws"
        workspace.parent.mkdir()
        disk.cut(workspace.parent, rng, share=0.5)
        append = place > recorded.appending
        if append:
            (before,) = runs(workspace)
            assert isinstance(before, StoredRun)
            assert contents(before) in (recorded.first, recorded.last)
        ingests(workspace, append=append)
        run = open_run(workspace, RUN)
        assert contents(run) == (recorded.last if append else recorded.first)
        assert not any(damages(run.directory, run.manifest))
