"""Appending to a run: in the end it is the run that one ingest of all makes.

A random system reports; its reports are cut at two intervals and ingested bit by bit, and all
at once.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.support.faults import LARGE, stopping
from tests.support.few import few
from tests.support.ingested import Store, copied, ingest, ingested
from tests.support.words import naming
from vizpub.analytics.steps import TaskContext
from vizpub.ingest import stages
from vizpub.ingest.inputs.files import CHANGED
from vizpub.ingest.job import Job
from vizpub.ingest.measures import metrics
from vizpub.ingest.pipeline import IngestOutcome, settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources.reports.source import ARE_TOTALS
from vizpub.ingest.sources.times import BELONGS_NOT, TOO_FAR
from vizpub.ingest.spark import scale
from vizpub.ingest.spark.session import vizpub_errors
from vizpub.ingest.stages import STEPS
from vizpub.ingest.starting import ENDED
from vizpub.model.errors import InputError, InputsDiffer, NeedsSettling, StoreBroken, UseError
from vizpub.model.run import Boundary
from vizpub.questions.summary import facts_for_people
from vizpub.runstore import integrity
from vizpub.runstore.changes import PENDING, describe_unfinished
from vizpub.runstore.journal import FILE as LOG
from vizpub.runstore.manifest import FILE, read_manifest, write_manifest
from vizpub.runstore.store import StoredRun, open_run

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1200),
]

Record = dict[str, Any]
STOPS = (("read", True), ("finish", False))
EVERY = (*product(STEPS[:-1], (False, True)), ("finish", False))
"""Stages with whose commit an append is stopped, and whether that is made; the last one is made in
a test.
"""


@dataclass
class System:
    """Peers that come, go, fall silent, and pass on messages."""

    seed: int
    intervals: int = 9
    totals: bool = False
    """Counters run from the beginning."""
    patchy: float = 0.0
    """Share of the fields that a report leaves out."""
    silent: float = 0.0
    """Share of the reports that are missing."""
    peers: dict[str, Record] = field(default_factory=dict, repr=False)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int), repr=False)

    def reports(self) -> list[list[Record]]:
        """The records of each interval; a header is among the first."""
        self.rng = random.Random(self.seed)
        self.on_their_way: list[Record] = []
        found = [self._interval(interval) for interval in range(3, 3 + self.intervals)]
        counters = "total" if self.totals else "interval"
        header = {"format": "vizpub.run/1", "run": "lab", "counters": counters, "seed": self.seed}
        return [[header, *found[0]], *found[1:]]

    def _interval(self, interval: int) -> list[Record]:
        rng = self.rng
        for name in rng.sample([f"p{n}" for n in range(12, 0, -1)], 2):
            self.peers.setdefault(name, {"topics": [], "neighbors": []})
        leaving = [name for name in self.peers if rng.random() < 0.08]
        arriving: dict[str, list[Record]] = defaultdict(list)
        for copy in [copy for copy in self.on_their_way if copy["due"] <= interval]:
            self.on_their_way.remove(copy)
            arriving[copy["at"]].append({k: copy[k] for k in copy if k not in ("due", "at")})
        told = [self._report(name, interval, arriving[name]) for name in self.peers]
        for name in leaving:
            del self.peers[name]
            told.append(self._record(name, interval + 1, left=True))
        return [record for record in told if record and record["interval"] == interval] + [
            record for record in told if record and record["interval"] != interval
        ]

    def _record(self, peer: str, interval: int, **more: Any) -> Record:
        return {"format": "vizpub.report/1", "peer": peer, "interval": interval, **more}

    def _report(self, peer: str, interval: int, received: list[Record]) -> Record | None:
        rng, state = self.rng, self.peers[peer]
        others = [f"p{n}" for n in range(1, 13) if f"p{n}" != peer]
        if rng.random() < 0.5:
            state["neighbors"] = rng.sample(others, rng.randint(0, 3))
        if rng.random() < 0.3:
            state["topics"] = rng.sample(["news", "10", "9", f"t{interval}"], rng.randint(0, 2))
        sent = self._sent(peer, interval, others)
        self.counts[peer] += rng.randint(0, 9)
        n = self.counts[peer] if self.totals else rng.randint(0, 9)
        record = self._record(
            peer,
            interval,
            neighbors=list(state["neighbors"]),
            topics=list(state["topics"]),
            roles=[{"role": "seed"}] if rng.random() < 0.3 else [],
            control={"sent": {"messages": n, "bytes": 7 * n}},
            control_kinds=[
                {"kind": "graft", "topic": f"c{interval % 3}", "messages_sent": n // 2},
                {
                    "kind": "ihave",
                    "messages_sent": n - n // 2,
                    "ids_sent": 3 * n,
                    "bytes_sent": 9 * n,
                },
            ],
            attributes=[
                {"key": "client", "value": f"c{(interval + len(peer)) // 3 % 2}"},
                {"key": "load", "value": str(interval // 2)},
            ],
            sent=sent,
            received=received,
            gauges={"lookups": interval, f"of.{peer}": n / 4} if interval % 3 else {},
        )
        for name in ("neighbors", "topics", "roles", "control", "received"):
            if rng.random() < self.patchy:
                del record[name]
        if "control" not in record:
            del record["control_kinds"]
        return None if rng.random() < self.silent else record

    def _sent(self, peer: str, interval: int, others: Sequence[str]) -> list[Record]:
        rng, found = self.rng, []
        if rng.random() < 0.4:
            message, topic = f"{peer}-{interval}", rng.choice(["news", "10"])
            found.append(
                {"message": message, "topic": topic, "hops": 0, "to": rng.sample(others, 2)}
            )
            chain = [peer, *rng.sample(others, 4), peer]
            for place in range(1, len(chain)):
                copy: Record = {"message": message, "from": chain[place - 1], "at": chain[place]}
                copy["due"] = interval + rng.choice([0, 0, 1, 1, 2, 4])
                if rng.random() < 0.5:
                    copy |= {"topic": topic, "publisher": peer}
                if rng.random() < 0.3:
                    copy["hops"] = place
                copy["time_us"] = interval * 1000 + 10 * place
                self.on_their_way.append(copy)
            if rng.random() < 0.3:
                found.pop()  # nobody reports the publication
        return found


@dataclass
class Lab:
    """Ingests in the one session of the tests."""

    spark: SparkSession
    stored: Store
    folder: Path

    def write(self, name: str, records: Iterable[Record]) -> Path:
        path = self.folder / f"{name}.ndjson"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def ingest(self, run: str, *paths: Path, append: bool = False, **options: Any) -> IngestOutcome:
        return ingest(self.spark, self.folder, run, *paths, append=append, **options)

    def take(self, run: str, *paths: Path, **options: Any) -> StoredRun:
        """A run of these files, ingested now or by an earlier run of the tests."""
        return copied(self.stored(f"append-{run}", *paths, **options), self.folder, run)

    def run(self, name: str) -> StoredRun:
        return open_run(self.folder, name)


@pytest.fixture
def lab(spark: SparkSession, stored: Store, tmp_path: Path) -> Lab:
    return Lab(spark, stored, tmp_path)


def batches(system: System, cuts: Sequence[int]) -> Iterator[list[Record]]:
    """All records, by the cuts that their intervals lie between."""
    records = [record for interval in system.reports() for record in interval]
    edges = [0, *(3 + cut for cut in cuts), 10_000]
    for low, high in pairwise(edges):
        yield [r for r in records if low <= r.get("interval", 0) < high]


def same_tables(run: StoredRun, other: StoredRun) -> None:
    assert set(run.manifest.tables) == set(other.manifest.tables)
    for name in sorted(run.manifest.tables):
        assert run.rows(name) == other.rows(name), name
        found, wanted = contents(run, name), contents(other, name)
        assert found == wanted, f"{name}\n{difference(found, wanted)}"


def contents(run: StoredRun, name: str) -> list[str]:
    rows: pa.Table = run.read(name)
    shown = [{**row, "file": ""} if "file" in row else row for row in rows.to_pylist()]
    return sorted(map(repr, shown))


def difference(found: list[str], wanted: list[str]) -> str:
    more, less = set(found) - set(wanted), set(wanted) - set(found)
    return "\n".join([*(f"+ {row}" for row in sorted(more)), *(f"- {row}" for row in sorted(less))])


def same_runs(grown: StoredRun, whole: StoredRun) -> None:
    same_tables(grown, whole)
    for fact in ("clock", "epoch", "unknown", "notes", "engines", "stages", "options"):
        assert getattr(grown.manifest, fact) == getattr(whole.manifest, fact), fact
    assert totals(grown) == totals(whole)


def totals(run: StoredRun) -> Any:
    """Without the folders of the input: a run that is kept was made of files in others."""
    text = json.dumps(run.manifest.totals)
    for file in run.manifest.inputs:
        text = text.replace(file["path"], Path(file["path"]).name)
    return json.loads(text)


def parts_of(lab: Lab, *cuts: int) -> list[Path]:
    system = System(3, totals=True, patchy=0.2, silent=0.2)
    print("seed", system.seed)
    return [lab.write(f"part{n}", part) for n, part in enumerate(batches(system, cuts))]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_appended_run_equals_one_ingest_of_all(lab: Lab) -> None:
    parts = parts_of(lab, 2, 6)
    for part in parts:
        lab.ingest("grown", part, append=True, gap_tolerance=2)
    same_runs(lab.run("grown"), lab.take("whole", *parts, gap_tolerance=2))


@pytest.fixture(
    scope="module",
    params=[STOPS, pytest.param(EVERY, marks=pytest.mark.long)],
    ids=["some commits", "every commit"],
)
def stopped_once(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    stored: Store,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Lab, StoredRun, list[Path]]:
    """A run that is appended to, that run before, and the parts; it was stopped in many stages."""
    lab = Lab(spark, stored, tmp_path_factory.mktemp("stopped"))
    first, rest = parts_of(lab, 4)
    before = lab.take("grown", first, gap_tolerance=2)
    for stage, committed in request.param:
        with stopping(stage, committed=committed):
            lab.ingest("grown", rest, append=True, gap_tolerance=2)
        pending = read_manifest(before.directory, PENDING)
        assert pending.stages == STEPS[: STEPS.index(stage) + committed]
        same_tables(lab.run("grown"), before)  # readers see the old run, whole
    return lab, before, [first, rest]


@pytest.fixture
def stopped(
    stopped_once: tuple[Lab, StoredRun, list[Path]], tmp_path: Path
) -> tuple[Lab, StoredRun, list[Path]]:
    """A copy for each test."""
    lab, before, parts = stopped_once
    folder = Path(shutil.copytree(lab.folder, tmp_path / "stopped"))
    return Lab(lab.spark, lab.stored, folder), before, parts


def test_stopped_append_refuses_other_files(
    stopped: tuple[Lab, StoredRun, list[Path]],
) -> None:
    lab, before, _ = stopped
    with pytest.raises(UseError, match=naming("part1.ndjson")):
        lab.ingest("grown", lab.write("later", small([20])), append=True, gap_tolerance=2)
    same_tables(lab.run("grown"), before)


def test_append_stopped_in_many_stages_equals_one_ingest(
    stopped: tuple[Lab, StoredRun, list[Path]],
) -> None:
    lab, _, (first, rest) = stopped
    with stopping("finish", committed=True):
        lab.ingest("grown", rest, append=True, gap_tolerance=2)
    assert lab.ingest("grown", rest, append=True, gap_tolerance=2).already_complete
    same_runs(lab.run("grown"), lab.take("whole", first, rest, gap_tolerance=2))
    left = {path.name for path in lab.run("grown").directory.iterdir() if path.is_file()}
    assert left == {FILE, LOG}


def told(peer: str, interval: int, **more: Any) -> Record:
    return {"format": "vizpub.report/1", "peer": peer, "interval": interval, **more}


def small(intervals: Iterable[int], **more: Any) -> list[Record]:
    """a and b hold each other."""
    ends = (("a", "b"), ("b", "a"))
    return [told(p, i, neighbors=[q], **more) for i in intervals for p, q in ends]


@pytest.fixture(scope="module")
def lab_with_runs(
    spark: SparkSession, stored: Store, tmp_path_factory: pytest.TempPathFactory
) -> Lab:
    """Runs `small` of intervals 0 to 2, `ended` and `edges`."""
    lab = Lab(spark, stored, tmp_path_factory.mktemp("append"))
    lab.take("small", lab.write("small", small(range(3))))
    end = {"format": "vizpub.end/1", "last_interval": 1}
    lab.take("ended", lab.write("ended", [*small(range(2)), end]))
    copied(stored("tiny"), lab.folder, "edges")
    return lab


def everything(run: StoredRun) -> dict[str, int]:
    """When each file was written, but for the log, which tells of every try."""
    found = (path for path in run.directory.rglob("*") if path.is_file())
    files = (path for path in found if path.name != LOG)
    return {str(path.relative_to(run.directory)): path.stat().st_mtime_ns for path in files}


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (small([3], topics=["news"]), "topics"),
        ([*small([3]), {"format": "vizpub.run/1", "unknown": ["loss"]}], "loss"),
    ],
)
def test_append_of_input_that_does_not_follow_is_refused_without_settling(
    lab_with_runs: Lab, records: list[Record], said: str
) -> None:
    before = everything(lab_with_runs.run("small"))
    later = lab_with_runs.write("later", records)
    with pytest.raises(NeedsSettling, match=said) as refused:
        lab_with_runs.ingest("small", later, append=True, settle=False)
    assert "--no-settle" in str(refused.value)
    assert everything(lab_with_runs.run("small")) == before


AWAY = 20_000_000
"""An interval that no sound clock shows."""


@pytest.mark.parametrize("alone", few([False, True], [False]))
def test_record_of_a_wrong_clock_is_refused_from_an_append_as_from_an_ingest(
    lab_with_runs: Lab, alone: bool
) -> None:
    lab, first = lab_with_runs, lab_with_runs.folder / "small.ndjson"
    name = "odd-alone" if alone else "odd"
    copied(lab.run("small"), lab.folder, name)
    odd = [told("b", AWAY, neighbors=["a"], sent=[])]
    second = lab.write(name, odd if alone else [*small([3]), *odd, *small([4])])
    lab.ingest(name, second, append=True)
    grown = lab.run(name)
    same_runs(grown, lab.take(f"{name}-whole", first, second))
    refused = grown.read("quarantine").to_pylist()
    assert [(row["line"], row["reason"]) for row in refused] == [(1 if alone else 3, TOO_FAR)]
    assert grown.manifest.generation == 1  # it was not made anew


@pytest.mark.long
def test_record_of_the_far_past_comes_late_and_a_settled_run_refuses_it(lab: Lab) -> None:
    first = lab.write("first", small(range(AWAY, AWAY + 3)))
    odd = told("b", 5, neighbors=["a"], sent=[])
    second = lab.write("second", [*small([AWAY + 3]), odd, *small([AWAY + 4])])
    on_time = lab.write("on-time", small(range(AWAY + 3, AWAY + 5)))
    for part in (first, second):
        lab.ingest("grown", part, append=True)
    grown = lab.run("grown")
    assert grown.manifest.notes["late_records"] == 1
    same_tables(grown, lab.take("whole-on-time", first, on_time))
    settled = ingested(lab.spark, settling_request(grown)).run
    same_tables(settled, lab.take("whole-late", first, second))
    refused = settled.read("quarantine").to_pylist()
    assert [(row["line"], row["reason"]) for row in refused] == [(3, TOO_FAR)]


def test_append_that_shows_which_clock_was_wrong_makes_the_run_anew(lab: Lab) -> None:
    """Most records are where there was one, so those that were taken are the odd ones."""
    parts = [*small(range(3)), told("b", AWAY)], small(range(AWAY + 1, AWAY + 40))
    paths = [lab.write(f"part{number}", part) for number, part in enumerate(parts)]
    lab.ingest("grown", paths[0])
    with pytest.raises(NeedsSettling, match=naming("part0", BELONGS_NOT)):
        lab.ingest("grown", paths[1], append=True, settle=False)
    lab.ingest("grown", paths[1], append=True)
    found = lab.run("grown").read("quarantine").to_pylist()
    assert sorted(json.loads(row["text"])["interval"] for row in found) == [0, 0, 1, 1, 2, 2]
    same_tables(lab.run("grown"), lab.take("whole-anew", *paths))


def test_header_that_makes_counters_totals_makes_the_run_anew(lab: Lab) -> None:
    """What was taken for the traffic of an interval was that since the start."""
    rising = [told("a", i, control={"sent": {"messages": 10 * i, "bytes": i}}) for i in range(4)]
    header = {"format": "vizpub.run/1", "run": "lab", "counters": "total"}
    parts = [lab.write("rises", rising[:3]), lab.write("totals", [header, rising[3]])]
    lab.ingest("counted", parts[0])
    with pytest.raises(NeedsSettling, match=ARE_TOTALS):
        lab.ingest("counted", parts[1], append=True, settle=False)
    lab.ingest("counted", parts[1], append=True)
    sent = lab.run("counted").read("traffic")["control_messages_sent"].to_pylist()
    assert sent == [0, 10, 10, 10]


@pytest.mark.long
def test_late_records_are_left_out_and_counted_until_the_run_is_settled(
    lab_with_runs: Lab,
) -> None:
    """The appended run is an ingest of what was on time; the settled one, of everything."""
    lab, first = lab_with_runs, lab_with_runs.folder / "small.ndjson"
    lab.ingest("late", first)  # not copied: to settle it, its input must be there
    counted = [{"kind": "ihave", "messages_sent": 2, "ids_sent": 7, "bytes_sent": 90}]
    facts = {"control_kinds": counted, "attributes": [{"key": "client", "value": "c"}]}
    on_time = small([3], **facts)
    late = [told("c", 2, neighbors=["a"], **facts), told("a", 0, neighbors=[], **facts)]
    lab.ingest("late", lab.write("second", [*late, *on_time]), append=True)
    lab.ingest("late", lab.write("all-late", [told("d", 3)]), append=True)
    grown = lab.run("late")
    assert grown.manifest.notes["late_records"] == 3
    assert ("late records", 3) in facts_for_people(grown)
    same_tables(grown, lab.take("on-time", first, lab.write("on-time", on_time)))
    settled = ingested(lab.spark, settling_request(grown)).run
    assert "late_records" not in settled.manifest.notes
    files = [first, lab.folder / "second.ndjson", lab.folder / "all-late.ndjson"]
    same_tables(settled, lab.take("with-late", *files))


def test_append_of_late_input_changes_nothing_for_copies_but_what_headers_say(
    lab_with_runs: Lab,
) -> None:
    lab = lab_with_runs
    before = copied(lab.run("small"), lab.folder, "idle")
    header = {"format": "vizpub.run/1", "protocol": "gossip", "seed": 7}
    lab.ingest("idle", lab.write("told-late", [header, told("c", 0)]), append=True)
    grown = lab.run("idle")
    same_tables(grown, before)
    assert (grown.facts.protocol, grown.facts.seed) == ("gossip", 7)
    assert (grown.facts.generation, grown.facts.final) == (1, 2)
    boundary = grown.boundary_since(before.facts.tables)
    assert boundary == Boundary(3, 3, 0)
    lab.ingest("idle", lab.write("after-late", small([3])), append=True)
    assert lab.run("idle").boundary_since(before.facts.tables) == boundary


def test_end_that_comes_after_all_else_ends_the_run(lab_with_runs: Lab) -> None:
    lab, first = lab_with_runs, lab_with_runs.folder / "small.ndjson"
    copied(lab.run("small"), lab.folder, "with-end")
    end = lab.write("end", [{"format": "vizpub.end/1", "last_interval": 2}])
    lab.ingest("with-end", end, append=True)
    assert lab.run("with-end").manifest.ended
    same_runs(lab.run("with-end"), lab.take("with-end-whole", first, end))


@pytest.mark.long
@pytest.mark.parametrize("gap", [0, 2])
def test_end_that_is_appended_alone_ends_the_run(lab: Lab, gap: int) -> None:
    parts = [*batches(System(5, 6, silent=0.3), [4])]
    last = max(record.get("interval", 0) for part in parts for record in part)
    parts.append([{"format": "vizpub.end/1", "run": "lab", "last_interval": last}])
    files = [lab.write(f"to-end{n}", part) for n, part in enumerate(parts)]
    for file in files:
        lab.ingest("with-end", file, append=True, gap_tolerance=gap)
    assert lab.run("with-end").manifest.ended
    same_runs(lab.run("with-end"), lab.take("with-end-and-gaps", *files, gap_tolerance=gap))


@pytest.mark.long
def test_field_that_first_appears_later_makes_the_run_anew(lab_with_runs: Lab) -> None:
    lab, first = lab_with_runs, lab_with_runs.folder / "small.ndjson"
    lab.ingest("more", first)  # not copied: its input is read again
    later = lab.write("with-topics", small([3], topics=["news"]))
    lab.ingest("more", later, append=True)
    same_runs(lab.run("more"), lab.take("more-whole", first, later))
    lab.ingest("more", lab.write("sixth", small([5])), append=True, gap_tolerance=2)
    files = [first, later, lab.folder / "sixth.ndjson"]
    same_runs(lab.run("more"), lab.take("more-gap", *files, gap_tolerance=2))


def test_interest_in_the_interval_in_which_a_subscription_ends_stays_unknown(lab: Lab) -> None:
    """Also where that interval is the first whose messages an append measures again: of the message
    that b gets as it unsubscribes, a copy comes later.
    """
    more: dict[tuple[str, int], Record] = {
        ("a", 1): {"sent": [{"message": "m", "topic": "news", "hops": 0, "to": ["b"]}]},
        ("b", 1): {"topics": [], "received": [{"message": "m", "topic": "news", "from": "a"}]},
        ("b", 2): {"topics": []},
        ("c", 2): {"received": [{"message": "m", "topic": "news", "from": "b"}]},
    }
    first, later = (
        lab.write(f"ends{intervals.start}", [
            told(p, i, **{"topics": ["news"], "sent": [], "received": [], **more.get((p, i), {})})
            for i in intervals for p in "abc"
        ])
        for intervals in (range(2), range(2, 3))
    )  # fmt: skip
    lab.ingest("ends", first)
    lab.ingest("ends", later, append=True)
    whole = lab.take("ends-whole", first, later)
    assert whole.read("receptions")["subscribed"].to_pylist() == [None, True]
    for name in ("receptions", "metrics/messages"):
        assert contents(lab.run("ends"), name) == contents(whole, name)


@pytest.mark.long
def test_message_that_is_final_takes_no_more_arrivals(lab_with_runs: Lab) -> None:
    """With a window of 2, when interval 5 is appended messages up to interval 2 are final."""
    lab = lab_with_runs

    def interval(number: int, *came: str) -> list[Record]:
        sent = [{"message": f"m{number}", "topic": "news", "hops": 0, "to": ["b"]}]
        received = [{"message": message, "topic": "news", "from": "a"} for message in came]
        counted = {"messages": 1, "bytes": 1}
        each = {"publication": {"sent": counted, "received": counted}, "topics": ["news"]}
        return [
            told("a", number, neighbors=["b"], sent=sent, received=[], **each),
            told("b", number, neighbors=["a"], sent=[], received=received, **each),
        ]

    parts = [[], ["m0"], ["m1"], [], ["m3"], ["m2", "m3", "m4"]]
    files = [lab.write(f"w{n}", interval(n, *came)) for n, came in enumerate(parts)]
    begun = lab.write("begun", [r for n in range(4) for r in interval(n, *parts[n])])
    for file in (begun, *files[4:]):
        lab.ingest("window", file, append=True, message_window=2)
    grown = lab.run("window")
    assert (grown.manifest.final, grown.manifest.settled) == (5, 3)
    assert grown.manifest.notes["late_messages"] == 1
    on_time = lab.write("on-time-5", interval(5, "m3", "m4"))
    same_tables(grown, lab.take("window-whole", begun, files[4], on_time, message_window=2))
    settled = ingested(lab.spark, settling_request(grown)).run
    same_tables(settled, lab.take("window-all", begun, *files[4:], message_window=2))


@pytest.mark.long
def test_message_that_an_early_arrival_numbered_keeps_later_ones_provisional(lab: Lab) -> None:
    """With a window of 2: what is said to be final of messages is what appends leave alone."""

    def interval(number: int, sent: str, *came: str) -> list[Record]:
        copies = [{"message": sent, "topic": "news", "hops": 0, "to": ["b"]}] if sent else []
        received = [{"message": message, "topic": "news", "from": "a"} for message in came]
        each = {"neighbors": [], "topics": ["news"]}
        return [
            told("a", number, sent=copies, received=[], **each),
            told("b", number, sent=[], received=received, **each),
        ]

    parts = [
        [*interval(0, "", "a0"), *interval(1, "m1", "m1")],
        [*interval(2, "m2", "m2"), *interval(3, "a0")],  # published after an arrival
        interval(4, "m4", "m1"),
        interval(5, "", "m2"),
        interval(6, "", "m4", "m1"),
    ]
    seen: list[tuple[int, dict[str, Any]]] = []
    for number, part in enumerate(parts):
        lab.ingest("early", lab.write(f"early{number}", part), append=True, message_window=2)
        run = lab.run("early")
        measured = {row["message"]: row for row in run.read("metrics/messages").to_pylist()}
        now = {
            row["name"]: (row["interval"], measured[row["message"]])
            for row in run.read("publications").to_pylist()
        }
        for settled, before in seen:
            kept = {name: told for name, told in before.items() if told[0] <= settled}
            assert {name: now[name] for name in kept} == kept
        seen.append((run.manifest.settled if number else -1, now))
    assert [settled for settled, _ in seen] == [-1, 0, 0, 3, 4]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 2, 3))]
)
def test_run_fed_bit_by_bit_equals_one_ingest_of_all(lab: Lab, seed: int) -> None:
    """Any cut into appends, with repeated reports and bridged gaps; parts are merged meanwhile."""
    rng = random.Random(seed)
    system = System(seed, 14, totals=seed % 2 == 1, patchy=0.2, silent=0.2)
    cuts = sorted(rng.sample(range(1, 14), 8))
    print("seed", seed, "cuts", cuts)
    files = [lab.write(f"s{seed}-{n}", part) for n, part in enumerate(batches(system, cuts))]
    for file in files:
        lab.ingest("fed", file, append=True, gap_tolerance=seed)
    grown = lab.run("fed")
    assert max(len(entry.parts) for entry in grown.manifest.tables.values()) < len(files)
    same_runs(grown, lab.take(f"fed-{seed}", *files, gap_tolerance=seed))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("ended", ENDED),
        ("edges", "'edges'"),
    ],
)
def test_append_to_a_run_that_cannot_grow_is_refused(
    lab_with_runs: Lab, run: str, said: str
) -> None:
    lab = lab_with_runs
    later = lab.folder / "later.csv" if run == "edges" else lab.write("later", small([5]))
    if run == "edges":
        later.write_text("interval,src,dst\n1,a,b\n")
    with pytest.raises(UseError, match=said):
        lab.ingest(run, later, append=True)


def test_append_with_other_options_is_refused_by_name(lab_with_runs: Lab) -> None:
    later = lab_with_runs.write("later", small([3]))
    with pytest.raises(NeedsSettling, match=naming("--gap-tolerance", "0 then, 2 now")):
        lab_with_runs.ingest("small", later, append=True, settle=False, gap_tolerance=2)
    with pytest.raises(InputsDiffer, match=naming("1 gone", "--append")):
        lab_with_runs.ingest("small", later)


def test_append_together_with_replace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=naming("--append", "--replace")):
        IngestRequest((), "lab", tmp_path, append=True, replace=True)


def test_append_to_an_unfinished_run_is_refused(lab_with_runs: Lab) -> None:
    lab = lab_with_runs
    half = replace(lab.run("small").manifest, name="half", state="ingesting")
    (lab.folder / "runs/half").mkdir()
    write_manifest(lab.folder / "runs/half", half)
    with pytest.raises(InputsDiffer, match="1 gone"):
        lab.ingest("half", lab.write("later", small([3])), append=True)


def test_append_without_new_input_is_already_complete(lab_with_runs: Lab) -> None:
    outcome = lab_with_runs.ingest("small", lab_with_runs.folder / "small.ndjson", append=True)
    assert outcome.already_complete


def test_late_input_that_grows_while_it_is_read_is_refused(
    lab_with_runs: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it gets into the tables, but the run would list it with another content."""
    lab, read = lab_with_runs, stages.READ
    late = lab.write("grows-late", [told("c", 0)])
    before = everything(lab.run("small"))

    def grow_and_read(job: Job) -> None:
        with late.open("a") as file:
            file.write(json.dumps(told("d", 0)) + "\n")
        read.work(job)

    monkeypatch.setattr(stages, "READ", replace(read, work=grow_and_read))
    with pytest.raises(InputError, match=naming("grows-late.ndjson", CHANGED)):
        lab.ingest("small", late, append=True)
    assert everything(lab.run("small")) == before


def test_append_measures_and_writes_only_new_intervals(
    lab_with_runs: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is settled is measured or written again; a folder is named as a whole."""
    measured: list[tuple[int, int]] = []
    lab = lab_with_runs
    before = copied(lab.run("small"), lab.folder, "grows")
    old = everything(before)
    names = {name: [path.name for path in before.files(name)] for name in before.manifest.tables}
    rows = {name: before.read(name) for name in ("links", "presence")}
    growing = lab.folder / "growing"
    growing.mkdir()
    shutil.copy(lab.folder / "small.ndjson", growing)
    lab.write("growing/more", [*small([3, 4]), told("c", 4)])
    monkeypatch.setattr(scale, "SMALL_INPUT", LARGE)
    monkeypatch.setattr(metrics, "cut_blocks", _noting(metrics.cut_blocks, measured))
    lab.ingest("grows", growing, append=True)
    grown = lab.run("grows")
    assert measured == [(3, 4)]
    assert grown.facts.clock == replace(before.facts.clock, last=4)
    assert grown.facts.generation == 1
    assert grown.boundary_since(before.manifest.identity) == Boundary(3, 3, 0)
    now = everything(grown)
    kept = [name for name in old if name in now and name != "run.json"]
    assert all(old[name] == now[name] for name in kept)
    for name in ("metrics/peers", "metrics/overlay", "traffic"):
        if grown.has(name):
            assert {*names[name]} <= {path.name for path in grown.files(name)}, name
    for name, of in rows.items():  # what ends before the boundary is as it was
        settled = pc.field("valid_to") < 3
        assert grown.read(name).filter(settled) == of.filter(settled)
        older = grown.manifest.tables[name].older
        assert sum(part.rows for part in older) == len(of.filter(settled)), name


@pytest.mark.parametrize(("of", "name"), [("tables", "presence"), ("carry", "records")])
def test_flipped_page_of_a_large_file_ends_an_append_and_changes_nothing(
    lab_with_runs: Lab, monkeypatch: pytest.MonkeyPatch, of: str, name: str
) -> None:
    """Of large files only the end is looked at before; it is found in reading."""
    monkeypatch.setattr(integrity, "SMALL_FILE", 0)
    lab = lab_with_runs
    run = copied(lab.run("small"), lab.folder, f"flipped-{name}")
    entry = getattr(run.manifest, of)[name]
    (file,) = (run.directory / entry.directory).iterdir()
    told = integrity.describe_file(file)
    entries = {**getattr(run.manifest, of), name: replace(entry, files=(told,))}
    write_manifest(run.directory, replace(run.manifest, **{of: entries}))
    assert told.pages_end
    whole, last = file.read_bytes(), told.pages_end - 1
    file.write_bytes(whole[:last] + bytes([whole[last] ^ 64]) + whole[last + 1 :])
    later = lab.write(f"after-{name}", small([3]))
    with pytest.raises(StoreBroken, match=file.name), vizpub_errors(lab.folder):
        lab.ingest(run.name, lab.folder / "small.ndjson", later, append=True)
    file.write_bytes(whole)
    same_tables(lab.run(run.name), lab.run("small"))


def _noting(cut: Any, measured: list[tuple[int, int]]) -> Any:
    def noting(whole: TaskContext, *rest: int) -> Any:
        measured.append((whole.since, whole.last))
        return cut(whole, *rest)

    return noting


@pytest.mark.parametrize("stops", [STOPS, pytest.param(EVERY, marks=pytest.mark.long)])
def test_run_whose_settling_was_stopped_is_told_alike_by_every_command(
    lab: Lab, vizpub_here: Vizpub, stops: Sequence[tuple[str, bool]]
) -> None:
    """The prediction, which readers make, is made meanwhile, and the settling goes on behind it."""
    lab.ingest("made", lab.write("all", small(range(3))))
    before = lab.run("made")
    tables = {name: contents(before, name) for name in before.manifest.tables}

    def ask(*words: str) -> str:
        found = vizpub_here("--workspace", str(lab.folder), *words)
        assert found.returncode == 0, (words, found.stderr)
        return found.stdout + found.stderr

    for done, (stage, committed) in enumerate(stops, 1):
        with stopping(stage, committed=committed):
            ingested(lab.spark, settling_request(lab.run("made")))
        told = describe_unfinished(lab.run("made"))
        assert told
        asked = ("--gamma", f"{done / 99}", "--sigma", "0.5")
        ask("metrics", "made", "percolation", *asked)
        begun = read_manifest(before.directory, PENDING)
        assert begun.stages == STEPS[: STEPS.index(stage) + committed]
        assert told == describe_unfinished(lab.run("made"))
        assert told in ask("runs", "list")
        shown = json.loads(ask("runs", "show", "made", "--format", "json"))
        assert (shown[0]["state"], shown[0]["unfinished"]) == ("complete", told)
        assert dict(facts_for_people(lab.run("made")))["state"] == f"complete; {told}"
        ask("metrics", "made", "overlay")
        ask("runs", "check", "made")
    settled = ingested(lab.spark, settling_request(lab.run("made"))).run
    assert describe_unfinished(settled) == ""
    assert {name: contents(settled, name) for name in settled.manifest.tables} == tables
    assert dict(facts_for_people(settled))["state"] == "complete"
