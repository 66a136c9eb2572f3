"""A collected run equals one ingest of the same reports, whatever happened on the way.

A random system reports to the intake; its reports are shuffled, sent twice and split at random. The
process that makes the run is made anew now and then, and stopped in the middle of appends.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.test_append import System, same_tables
from tests.support.faults import stopping
from tests.support.ingested import ingest, ingested
from tests.support.words import naming
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.folder import FolderInput
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.log.damage import leave_out_damage
from vizpub.collector.making.batch import NONE, batches_in
from vizpub.collector.making.batches import DAMAGED, BatchAppender, BatchJob
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.collector.reservation import reserve
from vizpub.ingest.pipeline import ingest_in, settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.model.errors import RunCollected, StoreBroken, UseError
from vizpub.questions.run import Run
from vizpub.reports.records import RunHeader
from vizpub.runstore.collection import RETIRED
from vizpub.runstore.manifest import LATE
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import NOT_BEGUN, remove_run, writing

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1800),
]
Record = dict[str, Any]
HEADER = RunHeader(run="lab", interval_us=1_000_000, epoch="2026-11-20T10:00:00Z")
START = 3
"""The first interval of a System."""


@dataclass
class Live:
    """A collection without HTTP, and its run."""

    spark: SparkSession
    folder: Path
    rng: random.Random
    sent: list[Record]

    def __post_init__(self) -> None:
        self.place = CollectionPlace(self.folder, "lab")
        self.place.make()
        reserve(self.place)
        self.job = BatchJob(str(self.folder), "lab")
        self.until = 0
        self.appending: BatchAppender | None = None

    def intake(self) -> Intake:
        return Intake(self.place, HEADER, ClosingRules(lateness_s=1e9, ahead=10**6), IntakeLimits())

    async def post(self, intake: Intake, records: list[Record]) -> None:
        """In requests of some size, some of them twice."""
        self.rng.shuffle(records)
        while records:
            size = self.rng.randint(1, 8)
            now, records = records[:size], records[size:]
            for _ in range(self.rng.choice([1, 1, 2])):
                done = await intake.take(json.dumps(record).encode() for record in now)
                assert not done.refused, done.refusals
            self.sent += now

    def append(self, *, afresh: bool = False) -> list[Record]:
        if afresh or self.appending is None:
            self.appending = BatchAppender(partial(ingest_in, self.spark), self.job)
        return list(self.appending.append_until(self.until))

    async def end(self, intake: Intake) -> None:
        """All that was reported is closed, and the run ends."""
        await intake.end()
        self.until = intake.closed_at
        self.append()
        assert self.appending
        self.appending.settle()
        await intake.log.aclose()

    def settle(self) -> None:
        """As `vizpub runs settle` does."""
        with writing(self.folder, "lab") as writer:
            ingest_in(self.spark, writer, settling_request(self.run))

    @property
    def run(self) -> StoredRun:
        return open_run(self.folder, "lab")

    def whole(self, records: list[Record], *, end: int | None = None) -> StoredRun:
        """One ingest of the records, each once."""
        first = {**HEADER.to_json(), "format": HEADER.format}
        last = [] if end is None else [{"format": "vizpub.end/1", "last_interval": end}]
        path = self.folder / "whole.ndjson"
        lines = dict.fromkeys(json.dumps(record) for record in [first, *records, *last])
        path.write_text("".join(f"{line}\n" for line in lines))
        return ingest(self.spark, self.folder, "whole", path).run


@pytest.fixture
def live(spark: SparkSession, tmp_path: Path) -> Callable[[int], Live]:
    return lambda seed: Live(spark, tmp_path, random.Random(seed), [])


def reports_of(seed: int, intervals: int) -> list[list[Record]]:
    """By interval, one of each peer; every field is in every report, so nothing is unknown first.

    A second report is refused with its line in its file, and a batch has other lines.
    """
    found: dict[tuple[int, str], Record] = {}
    for record in (r for told in System(seed, intervals=intervals).reports() for r in told):
        if "interval" in record:
            found.setdefault((record["interval"], record["peer"]), record)
    return [[r for (i, _), r in found.items() if i == START + n] for n in range(intervals)]


def test_collected_run_equals_one_ingest_of_its_reports(live: Callable[[int], Live]) -> None:
    """Another collector goes on, and an append that was stopped, with the same batch: more was
    closed meanwhile.
    """
    seed = 11
    print("seed", seed)
    case = live(seed)
    sent: Counter[str] = Counter()

    async def collect() -> None:
        intake = case.intake()
        for number, records in enumerate(reports_of(seed, 3)):
            await case.post(intake, records)
            if number == 1:
                await intake.log.aclose()
                intake = case.intake()
            await intake._close(START + number)
            case.until = intake.closed_at
            if number == 1:
                with stopping("read", committed=True):
                    case.append()
            else:
                for done in case.append(afresh=number == 2):
                    sent.update(done["control"]["sent"])
        await case.end(intake)

    asyncio.run(collect())
    assert case.appending
    assert case.run.manifest.ended
    whole = case.whole(case.sent, end=START + 2)
    same_tables(case.run, whole)
    for table in ("peers", "topics", "messages"):
        groups, wanted = (Run(run).metrics(table, by="client") for run in (case.run, whole))
        assert groups.to_pylist() == wanted.to_pylist()
        assert table != "peers" or {*groups["group"].to_pylist()} == {"c0", "c1"}
    rows = case.run.read("control").to_pylist()
    assert sum(row["bytes_sent"] or 0 for row in rows) > 0
    assert sent == {
        kind: sum(row["messages_sent"] or 0 for row in rows if row["kind"] == kind)
        for kind in ("graft", "ihave")
    }
    assert case.append(afresh=True) == []
    consumed, batches = case.appending.last_batch(), batches_in(case.place.batches)
    assert [batch.number for batch in batches] == [1, 2, 3, 4]
    assert consumed == batches[-1]
    assert consumed.position == case.until


@pytest.mark.long
def test_run_that_was_removed_is_made_again_of_all_batches(live: Callable[[int], Live]) -> None:
    """By a collector that is told to; what one that was killed still appends makes no run."""
    seed = 5
    print("seed", seed)
    case = live(seed)

    async def collect() -> None:
        intake = case.intake()
        for number, records in enumerate(reports_of(seed, 3)):
            await case.post(intake, records)
            await intake._close(START + number)
            case.until = intake.closed_at
            if number == 2:
                remove_run(case.folder, "lab")
                for afresh in (False, True):
                    with pytest.raises(UseError, match=naming("lab", NOT_BEGUN)):
                        case.append(afresh=afresh)
                assert case.place.is_retired
                with pytest.raises(UseError, match=naming("lab", RETIRED)):
                    reserve(case.place)
                reserve(case.place, revive=True)
            case.append(afresh=number == 2)
        await intake.log.aclose()

    asyncio.run(collect())
    same_tables(case.run, case.whole(case.sent))


@pytest.mark.long
def test_paused_collection_is_settled_and_takes_no_other_input(live: Callable[[int], Live]) -> None:
    """What came late is in its run then, and the collector goes on with that."""
    seed = 16
    print("seed", seed)
    case = live(seed)
    told = reports_of(seed, 3)

    async def collect() -> None:
        intake, late = case.intake(), told[0].pop()
        for number, records in enumerate(told):
            await case.post(intake, [*records, *([late] if number == 1 else [])])
            await intake._close(START + number)
            case.until = intake.closed_at
            if number < 2:
                case.append()
        await intake.log.aclose()

    asyncio.run(collect())
    path = case.folder / "foreign.ndjson"
    path.write_text(json.dumps({"format": "vizpub.report/1", "peer": "x", "interval": 9}))
    given = IngestRequest((str(path),), "lab", case.folder)
    for request in (given, replace(given, replace=True), replace(given, append=True)):
        with pytest.raises(RunCollected, match=naming("lab", "vizpub live collect lab --stop")):
            ingested(case.spark, request)
    with case.place.hold(), pytest.raises(RunCollected, match=naming("lab", os.getpid())):
        case.settle()
    assert case.run.manifest.notes[LATE] == 1
    case.settle()
    assert LATE not in case.run.manifest.notes
    case.append(afresh=True)
    same_tables(case.run, case.whole(case.sent))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(41, 45))
def test_any_stream_ends_in_the_tables_of_one_ingest(
    live: Callable[[int], Live], seed: int
) -> None:
    """Requests and files at once, some reports late, closings, restarts and settling at random."""
    print("seed", seed)
    case = live(seed)
    rng, told, watched = case.rng, reports_of(seed, 6), case.folder / "watched"
    watched.mkdir()

    async def collect() -> None:
        intake, held = case.intake(), list[Record]()
        for number, records in enumerate(told):
            now = [*held, *(record for record in records if rng.random() > 0.1)]
            held = [record for record in records if record not in now]
            cut = rng.randint(0, len(now))
            await case.post(intake, now[:cut])
            with (watched / f"{number % 2}.ndjson").open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in now[cut:])
            web = HttpInterface(intake, CollectionProgress(intake))
            await FolderInput(watched, intake, print, web, lambda: None).turn()
            case.sent += now[cut:]
            if rng.random() < 0.3:
                await intake.log.aclose()
                intake = case.intake()
            if rng.random() < 0.7:
                await intake._close(START + number)
                case.until = intake.closed_at
                case.append(afresh=rng.random() < 0.3)
                if rng.random() < 0.3 and case.appending:
                    case.appending.settle()
        await case.post(intake, held)
        assert intake.counts["refused"] == 0
        await case.end(intake)

    asyncio.run(collect())
    same_tables(case.run, case.whole(case.sent, end=START + 5))


@pytest.mark.long
def test_late_reports_are_counted_and_enter_by_settle(live: Callable[[int], Live]) -> None:
    """Before it, the tables are those of what came in time."""
    seed = 12
    print("seed", seed)
    case = live(seed)
    in_time: list[Record] = []

    async def collect() -> None:
        intake = case.intake()
        told = reports_of(seed, 4)
        late = [r for r in told[1] if r["peer"] == told[1][0]["peer"]]
        for number, records in enumerate(told):
            now = [record for record in records if record not in late]
            in_time.extend(now)
            await case.post(intake, list(now))
            await intake._close(START + number)
            if number == 2:
                done = await intake.take(json.dumps(r).encode() for r in late)
                assert done.late == done.accepted == len(late)
                case.sent += late
            case.until = intake.closed_at
            case.append()
        assert case.run.manifest.notes[LATE] == len(case.sent) - len(in_time)
        same_tables(case.run, case.whole(in_time))
        shutil.rmtree(case.folder / "runs/whole")
        await case.end(intake)

    asyncio.run(collect())
    same_tables(case.run, case.whole(case.sent, end=START + 3))


@pytest.mark.long
@pytest.mark.parametrize(
    ("stage", "committed"), [("read", False), ("finish", False), ("finish", True)]
)
def test_append_that_was_stopped_goes_on_with_the_same_batch(
    live: Callable[[int], Live], stage: str, committed: bool
) -> None:
    """More was closed meanwhile; nothing is missing or doubled."""
    seed = 13
    print("seed", seed)
    case = live(seed)

    async def collect() -> None:
        intake = case.intake()
        for number, records in enumerate(reports_of(seed, 3)):
            await case.post(intake, records)
            await intake._close(START + number)
            case.until = intake.closed_at
            if number == 1:
                with stopping(stage, committed=committed):
                    case.append()
            elif number == 2:
                case.append(afresh=True)
            else:
                case.append()
        await case.end(intake)

    asyncio.run(collect())
    same_tables(case.run, case.whole(case.sent, end=START + 2))
    assert [batch.number for batch in batches_in(case.place.batches)] == [1, 2, 3, 4]


def test_lost_log_is_an_error_and_no_shorter_run(live: Callable[[int], Live]) -> None:
    case = live(14)

    async def collect() -> None:
        intake = case.intake()
        await case.post(intake, reports_of(14, 1)[0])
        await intake._close(START)
        case.until = intake.closed_at
        await intake.log.aclose()

    asyncio.run(collect())
    path = log.segments(case.place.log)[0][1]
    path.write_bytes(path.read_bytes()[: case.until - 1])
    with pytest.raises(StoreBroken, match="acknowledged"):
        case.append()
    assert case.appending
    assert case.appending.last_batch() == NONE


def test_damage_that_was_passed_is_in_the_notes_of_the_run(live: Callable[[int], Live]) -> None:
    case = live(15)

    async def collect() -> None:
        intake = case.intake()
        await case.post(intake, reports_of(15, 2)[0])
        await intake._close(START)
        case.until = intake.closed_at
        await intake.log.aclose()

    asyncio.run(collect())
    path = log.segments(case.place.log)[0][1]
    content = bytearray(path.read_bytes())
    content[content.rindex(b'"peer"')] ^= 1
    path.write_bytes(content)
    (lost,) = leave_out_damage(case.place.log)
    case.append()
    assert case.run.manifest.notes[DAMAGED] == lost.end - lost.start
