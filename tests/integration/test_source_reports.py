"""Reports → observed tables: each sentence of the contract, and a naive reference."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.staged import Staged, Taken, staged
from tests.support.words import naming, unknown
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.base import RunDescription, SourceOptions
from vizpub.ingest.sources.reports.facts import DIFFERS
from vizpub.ingest.sources.reports.facts import NO_REPORT as NOTHING_READ
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import TRAFFIC_COLUMNS
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.run import DUPLICATES

Record = dict[str, Any]
SEED = 20_14


def report(peer: str, interval: int, **fields: Any) -> Record:
    if "source" in fields:
        fields["from"] = fields.pop("source")
    return {"format": "vizpub.report/1", "peer": peer, "interval": interval, **fields}


def header(**fields: Any) -> Record:
    return {"format": "vizpub.run/1", **fields}


def end(last_interval: int) -> Record:
    return {"format": "vizpub.end/1", "last_interval": last_interval}


Content = Sequence[Record | str] | bytes
CASES: dict[str, tuple[Content, ...]] = {}
"""The files of each case, in a run of its own."""


def case(name: str, *files: Content) -> str:
    CASES[name] = tuple(
        file if isinstance(file, bytes) else [of_run(name, record) for record in file]
        for file in files
    )
    return name


def of_run(run: str, record: Record | str) -> Record | str:
    return record if isinstance(record, str) else {**record, "run": run}


def written(folder: Path, number: int, content: Content) -> InputFile:
    if isinstance(content, bytes):
        path = folder / f"{number}.ndjson.gz"
        path.write_bytes(content)
    else:
        path = folder / f"{number}.ndjson"
        lines = [line if isinstance(line, str) else json.dumps(line) for line in content]
        path.write_text("\n".join(lines) + "\n")
    return InputFile(str(path), "ndjson", path.stat().st_size, "")


class Desk:
    """Writes files and takes them through the source."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, 0

    def stage(self, *files: Content, **options: Any) -> Staged:
        self.runs += 1
        here = self.folder / str(self.runs)
        here.mkdir()
        inputs = [written(here, number, content) for number, content in enumerate(files)]
        return staged(Reports(), inputs, SourceOptions(**options))

    def take(self, *files: Content, **options: Any) -> Taken:
        found = self.stage(*files, **options)
        return Taken(Reports(), found, SourceOptions(**options))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


class Book:
    """CASES, taken through the source by name."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def take(self, case: str, **options: Any) -> Taken:
        return self.desk.take(*CASES[case], **options)

    def counted(self, *cases: str) -> RunCounts:
        """What is counted of the files of the cases."""
        return self.desk.stage(*(file for case in cases for file in CASES[case])).counted


@pytest.fixture
def book(desk: Desk) -> Book:
    return Book(desk)


def describe(counted: RunCounts, options: SourceOptions) -> RunDescription:
    return Reports().describe(counted, options)


EXAMPLE = (
    header(
        run="poldercast-1",
        protocol="poldercast",
        parameters={"fanout": 2},
        seed=1,
        interval_us=1_000_000,
        epoch="2026-11-20T10:00:00Z",
        unknown=["control.bytes"],
    ),
    report(
        "17",
        42,
        run="poldercast-1",
        seq=43,
        neighbors=["3", {"peer": "99", "layer": "rings", "topic": "7"}],
        topics=["7", "12"],
        roles=[{"role": "rendezvous", "topic": "7"}, {"role": "seed"}],
        control={
            "sent": {"messages": 12, "bytes": 4023},
            "received": {"messages": 9, "bytes": 3980},
        },
        publication={
            "sent": {"messages": 2, "bytes": 1024},
            "received": {"messages": 1, "bytes": 512},
        },
        duplicates=0,
        rpcs_sent=11,
        rpcs_received=8,
        sent=[
            {
                "message": "m1",
                "topic": "7",
                "publisher": "17",
                "to": ["3", "99"],
                "hops": 0,
                "time_us": 42000100,
                "bytes": 512,
            }
        ],
        received=[
            {
                "message": "m0",
                "topic": "7",
                "publisher": "5",
                "from": "99",
                "hops": 3,
                "time_us": 42000050,
                "bytes": 512,
                "subscribed": True,
            }
        ],
    ),
)
"""A header and a report with every field."""


EXAMPLE_CASE = case("the example", list(EXAMPLE))


def test_example_of_the_contract_gives_its_tables(book: Book) -> None:
    found = book.take(EXAMPLE_CASE)
    assert found.told == RunDescription(
        clock=Clock(1, 1_000_000, 42, 42),
        protocol="poldercast",
        parameters={"fanout": 2},
        seed=1,
        epoch="2026-11-20T10:00:00Z",
        unknown=("control.bytes",),
    )
    assert found.rows("peers") == {("17",)}
    assert found.rows("presence") == {("17", 42, OPEN)}
    assert found.rows("links") == {
        ("17", "3", "overlay", None, 42, OPEN),
        ("17", "99", "rings", "7", 42, OPEN),
    }
    assert found.rows("subscriptions") == {("17", "7", 42, OPEN), ("17", "12", 42, OPEN)}
    assert found.rows("roles") == {
        ("17", "rendezvous", "7", 42, OPEN),
        ("17", "seed", None, 42, OPEN),
    }
    more = ("duplicates", "rpcs_sent", "rpcs_received")
    columns = ("peer", "interval", *TRAFFIC_COLUMNS, *more)
    assert found.rows("traffic", *columns) == {
        ("17", 42, 12, 9, 4023, 3980, 2, 1, 1024, 512, 0, 11, 8)
    }
    assert found.rows("publications") == {("m1", "7", "17", 42, 42000100, 42, 512)}
    assert found.rows("receptions") == {
        ("m0", "7", "5", "17", "99", 42000050, 42, 42, 0, None, 3, True)
    }
    assert found.rows("rejections") == set()
    assert found.staged.quarantine == []


NEIGHBORS_ALONE = case(
    "neighbours alone", [report("a", 3, neighbors=[]), report("b", 4, neighbors=["a"])]
)


def test_fields_that_no_report_has_are_unknown(book: Book) -> None:
    found = book.take(NEIGHBORS_ALONE)
    assert found.seen.links is not None
    assert found.rows("links") == {("b", "a", "overlay", None, 4, OPEN)}
    assert found.rows("presence") == {("a", 3, 4), ("b", 4, OPEN)}
    tables = ("subscriptions", "roles", "traffic", "publications", "receptions", "rejections")
    for table in (*tables, "unreported"):
        assert getattr(found.seen, table) is None
    assert set(found.told.unknown) == {
        "topics",
        "roles",
        "control.messages",
        "control.bytes",
        "publication.messages",
        "publication.bytes",
        "duplicates",
        "rpcs",
        "sent",
        "received",
    }
    assert found.told.clock == Clock(1, None, 3, 4)


COPY: Record = {"message": "m", "topic": "t"}
DISSEMINATION_ALONE = case(
    "dissemination alone",
    [
        report("a", 0, sent=[{**COPY, "hops": 0, "to": ["b", "c"]}], received=[]),
        report("b", 1, received=[{**COPY, "from": "a", "hops": 1}, {**COPY, "from": "c"}]),
        # Not a publication: sent on, and named as somebody else's.
        report("b", 2, sent=[{**COPY, "hops": 1}, {**COPY, "publisher": "a"}]),
        report("c", 2, sent=[{"message": "n", "publisher": "c"}]),
    ],
)


def test_dissemination_without_neighbors_gives_message_tables(book: Book) -> None:
    found = book.take(DISSEMINATION_ALONE)
    assert found.seen.links is None
    assert found.rows("publications") == {
        ("m", "t", "a", 0, None, 0, None),
        ("n", None, "c", 2, None, 2, None),
    }
    assert found.rows("receptions") == {
        ("m", "t", None, "b", "a", None, 1, 1, 0, None, 1, None),
        ("m", "t", None, "b", "c", None, 1, 1, 1, None, None, None),
    }
    sent_and_received = {(row[0], row[1], row[6], row[7]) for row in found.rows("traffic")}
    assert sent_and_received == {
        ("a", 0, 2, 0),
        ("b", 1, None, 2),
        ("b", 2, None, None),
        ("c", 2, None, None),
    }
    assert found.told.notes["reports without received"] == 2


PUBLICATIONS_ALONE = case(
    "publications alone", [report("a", 0, sent=[{"message": "m", "hops": 0}]), report("b", 0)]
)


def test_publications_without_received_leave_receptions_unknown(book: Book) -> None:
    found = book.take(PUBLICATIONS_ALONE)
    assert found.rows("publications") == {("m", None, "a", 0, None, 0, None)}
    assert found.rows("rejections") == set()
    assert found.seen.receptions is None
    assert found.seen.unreported is None


TOLD: Record = {"topics": ["t"], "received": []}
LEFT_OPEN: list[Record] = [
    *(report("all", interval, **TOLD) for interval in range(4)),
    report("late", 0, received=[]),
    report("late", 1, topics=[]),
    report("late", 2, received=[]),
    report("away", 0, **TOLD),
    report("away", 2, received=[]),
    report("never", 0),
    report("never", 3, received=[], left=True),
]
STRUCTURE = [{k: v for k, v in record.items() if k != "received"} for record in LEFT_OPEN]
OPEN_CASES = (
    case("left open", LEFT_OPEN),
    case("left open, structure", STRUCTURE),
    case("nothing left open", [report("a", 0, **TOLD), report("b", 3, **TOLD)]),
)


def test_fields_left_out_by_single_reports_are_unreported(book: Book) -> None:
    some, structure, nothing = OPEN_CASES
    assert book.take(some).rows("unreported") == {
        ("late", 0, False, True),
        ("late", 1, True, False),
        ("away", 2, False, True),
        ("never", 0, True, True),
    }
    assert book.take(some, gap_tolerance=2).rows("unreported") == {
        ("late", 0, False, True),
        ("late", 1, True, False),
        ("away", 1, True, False),
        *(("never", interval, True, True) for interval in range(3)),
    }
    assert book.take(structure).rows("unreported") == {
        ("late", 0, False, True),
        ("away", 2, False, True),
        ("never", 0, False, True),
    }
    assert book.take(nothing).seen.unreported is None


BYE = {"sent": [{"message": "bye", "hops": 0, "to": []}]}
LEAVING = [
    report("stays", 0, topics=["t"]),
    report("stays", 1, topics=["t"]),
    report("stays", 2, topics=["t"]),
    report("leaves", 0, topics=["t"]),
    report("leaves", 1, topics=["t"], left=True, **BYE),
    report("stops", 1, topics=["t"]),
]
LEAVING_CASES = case("leaving", LEAVING), case("leaving, ended", [*LEAVING, end(5)])


def test_presence_ends_by_leaving_silence_or_end_record(book: Book) -> None:
    found, marked = map(book.take, LEAVING_CASES)
    assert found.rows("presence") == {("stays", 0, OPEN), ("leaves", 0, 1), ("stops", 1, 2)}
    assert found.rows("subscriptions") == {
        ("stays", "t", 0, OPEN),
        ("leaves", "t", 0, 1),
        ("stops", "t", 1, 2),
    }
    assert found.rows("publications") == {("bye", None, "leaves", 1, None, 1, None)}
    assert not found.told.ended
    assert marked.told.ended
    assert marked.told.clock == Clock(1, None, 0, 5)
    assert marked.rows("presence") == {("stays", 0, 3), ("leaves", 0, 1), ("stops", 1, 2)}


def counted(interval: int, messages: int | None, duplicates: int) -> Record:
    control = {} if messages is None else {"control": {"sent": {"messages": messages}}}
    return report("a", interval, duplicates=duplicates, **control)


COUNTED = [
    *(counted(2, 5, 1), counted(3, 9, 1), counted(4, None, 4), counted(5, 10, 2)),
    counted(6, 3, 2),  # the process was restarted
]
COUNTED_CASES = tuple(
    case(f"counters: {kind}", [header(counters=kind), *COUNTED]) for kind in ("total", "delta")
)


RPC_TOTALS = [(2, 7), (3, 12), (4, 1)]
RPCS = case(
    "rpcs", [header(counters="total"), *(report("a", i, rpcs_sent=n) for i, n in RPC_TOTALS)]
)


def test_rpcs_alone_are_traffic_and_total_counters_too(book: Book) -> None:
    found = book.take(RPCS)
    assert "rpcs" not in found.told.unknown
    assert {(row[1], row[11], row[12]) for row in found.rows("traffic")} == {
        (2, 7, None),
        (3, 5, None),
        (4, 1, None),
    }


def test_total_counters_become_differences(book: Book) -> None:
    found, plain = map(book.take, COUNTED_CASES)
    assert {(row[1], row[2], row[10]) for row in found.rows("traffic")} == {
        (2, 5, 1),
        (3, 4, 0),
        (4, None, 3),
        (5, 1, 2),
        (6, 3, 0),
    }
    assert {(row[1], row[2]) for row in plain.rows("traffic")} == {
        (2, 5),
        (3, 9),
        (4, None),
        (5, 10),
        (6, 3),
    }


EVENTS = [{"message": "m", "bytes": 10}, {"message": "m", "bytes": 5}]
PUBLICATION_COUNTERS = case(
    "publication counters",
    [
        report("a", 0, received=EVENTS),
        report("b", 0, received=EVENTS, publication={"received": {"messages": 2}}),
        report("c", 0, received=EVENTS, publication={"received": {"messages": 7}}),
        report("d", 0, sent=[{"message": "n", "to": ["a", "b", "c"], "bytes": 2**62}]),
        report("e", 0, received=[], publication={"received": {"messages": 8}}),
        report(
            "f",
            0,
            sent=[{"message": "n", "to": ["a"], "bytes": 100}],
            publication={"sent": {"messages": 5}},
        ),
        report("g", 0, received=EVENTS, publication={"received": {"bytes": 15}}),
        report("h", 0, received=EVENTS, publication={"received": {"bytes": 16}}),
        report("i", 0, received=EVENTS, sent=[], publication={"sent": {"messages": 3}}),
        report("j", 0, received=EVENTS, publication={"received": {"messages": 3}}, duplicates=1),
        report("k", 0, received=EVENTS, publication={"received": {"messages": 2}}, duplicates=2),
        report("l", 0, received=EVENTS, duplicates=3),
        report("m", 0, received=EVENTS, publication={"received": {"messages": 9}}, duplicates=1),
    ],
)


FIRSTS_ALONE = case(
    "lists of first arrivals", [header(unknown=[DUPLICATES]), *CASES[PUBLICATION_COUNTERS][0]]
)


ROUTED = case("complete lists", [header(lists="complete"), *CASES[PUBLICATION_COUNTERS][0]])


def test_publication_counters_win_over_events(book: Book) -> None:
    found = book.take(PUBLICATION_COUNTERS)
    published = {row[0]: row[6:10] for row in found.rows("traffic")}
    assert published == {
        "a": (None, 2, None, 15),
        "b": (None, 2, None, 15),
        # The list lacks messages: their bytes are not those of all.
        "c": (None, 7, None, None),
        "d": (3, None, None, None),  # more bytes than can be counted are unknown
        "e": (None, 8, None, None),
        "f": (5, None, None, None),
        "g": (None, 2, None, 15),
        "h": (None, None, None, 16),
        "i": (3, 2, None, 15),
        "j": (None, 3, None, None),
        "k": (None, 2, None, 15),
        "l": (None, 2, None, 15),
        "m": (None, 9, None, None),
    }
    assert found.told.notes[DIFFERS] == 8


def test_lists_that_lack_counted_arrivals_are_unreported(book: Book) -> None:
    found = book.take(PUBLICATION_COUNTERS)
    assert found.rows("unreported") == {(peer, 0, True, False) for peer in "cdefjlm"}


def test_lists_of_first_arrivals_may_lack_counted_duplicates(book: Book) -> None:
    found = book.take(FIRSTS_ALONE)
    assert found.rows("unreported") == {(peer, 0, True, False) for peer in "dfm"}
    assert found.told.notes[DIFFERS] == 7


def test_lists_that_are_said_to_be_complete_are_taken_for_it(book: Book) -> None:
    found = book.take(ROUTED)
    assert found.rows("unreported") == {(peer, 0, True, False) for peer in "df"}
    assert DIFFERS not in found.told.notes


BAD = [
    ("nonsense", "not JSON"),
    ('{"format": "vizpub.report/1", "peer": "b", "interval": 0} {}', "not JSON"),
    ("[]", "not an object"),
    ('{"peer": "b"}', "no 'format'"),
    ('{"format": "vizpub.report/9"}', "unknown format 'vizpub.report/9'"),
    (json.dumps(report("b", 1.5)), "'interval' is not an integer"),  # type: ignore[arg-type]
    (json.dumps({**report("b", 0), "peer": None}), "no 'peer'"),
    (json.dumps(report("b", -1)), "'interval' is negative"),
    (json.dumps(report("b\n", 0)), "'peer' has a control character"),
    (json.dumps(report("b", 0, topics=[1])), "'topics[]' is not a string"),
    (
        json.dumps(report("b", 0, control={"sent": {"bytes": -1}}, seq=-1)),
        "'seq' is negative; 'control.sent.bytes' is negative",
    ),
    (json.dumps(header(counters="sum")), "'counters' is not delta or total"),
]


def test_bad_lines_are_quarantined_and_the_rest_is_ingested(desk: Desk) -> None:
    lines: list[Record | str] = []
    for number, (bad, _) in enumerate(BAD):
        lines += [bad, "", report("a", number, neighbors=["b"])]
    odd = [
        report('ü\\"{', 0, topics=['{"peer": 1}', "é"], neighbors=['{"x']),
        report("null", 0, seq=None, topics=None, neighbors=[{"peer": "a", "layer": None}]),
    ]
    found = desk.take(lines, odd)
    assert found.staged.quarantine == sorted(
        ("0.ndjson", 3 * number + 1, reason, bad) for number, (bad, reason) in enumerate(BAD)
    )
    assert found.rows("presence") == {("a", 0, OPEN), ('ü\\"{', 0, 1), ("null", 0, 1)}
    assert found.rows("links") == {
        ("a", "b", "overlay", None, 0, OPEN),
        ('ü\\"{', '{"x', "overlay", None, 0, 1),
        ("null", "a", "overlay", None, 0, 1),
    }
    assert found.rows("subscriptions") == {('ü\\"{', '{"peer": 1}', 0, 1), ('ü\\"{', "é", 0, 1)}


PACKED_LINES = b"".join(
    json.dumps(
        report("a", n, seq=random.Random(SEED + n).randrange(10**9), run="truncated")
    ).encode()
    + b"\n"
    for n in range(500)
)
TRUNCATED = case("truncated", gzip.compress(PACKED_LINES)[:-1500])


def test_truncated_gzip_gives_its_readable_part(book: Book) -> None:
    found = book.take(TRUNCATED)
    ((_, _, last),) = found.rows("presence")
    assert last == OPEN
    assert 50 < found.told.clock.last < 499
    ((_, line, reason, text),) = found.staged.quarantine
    assert (line, reason) == (found.told.clock.last + 2, "cut off where the file is damaged")
    assert PACKED_LINES.split(b"\n")[line - 1].startswith(text.encode())
    assert [*found.staged.damaged.values()] == ["truncated gzip"]


def test_repeated_report_is_superseded_dropped_or_quarantined(desk: Desk) -> None:
    first = [
        report("seq", 0, seq=1, topics=["old"]),
        report("seq", 0, seq=2, topics=["new"]),
        report("none", 0, topics=["old"]),
        report("none", 0, topics=["new"], seq=0),
        report("same", 0, topics=["t"]),
        report("same", 0, topics=["t"]),
        report("odd", 0, topics=["first"]),
        report("odd", 1, topics=["first"]),
    ]
    second = [report("odd", 0, topics=["second"]), report("same", 0, topics=["t"])]
    found = desk.take(first, second)
    assert found.rows("subscriptions") == {
        ("seq", "new", 0, 1),
        ("none", "new", 0, 1),
        ("same", "t", 0, 1),
        ("odd", "first", 0, OPEN),
    }
    assert found.staged.quarantine == [("1.ndjson", 1, "conflicting report", json.dumps(second[0]))]
    notes = found.told.notes
    assert (notes["superseded_records"], notes["repeated_records"]) == (2, 2)


DIFFERING: list[tuple[Record, Record]] = [
    ({"neighbors": []}, {"topics": []}),
    ({"sent": [{**COPY, "topic": "x"}]}, {"sent": [{**COPY, "publisher": "x"}]}),
    ({"control": {"sent": {"bytes": 5}}}, {"control": {"sent": {"messages": 5}}}),
]
PAIRS = [[report(str(n), 0, **said) for said in pair] for n, pair in enumerate(DIFFERING)]
ALIKE = [
    report("same", 0, topics=None, neighbors=["a"]),
    report("same", 0, neighbors=[{"peer": "a", "layer": "overlay"}]),
]
ABSENT = case("absent and empty", [record for pair in PAIRS for record in pair], ALIKE)


def test_absent_and_empty_fields_conflict(book: Book) -> None:
    found = book.take(ABSENT)
    second = {json.dumps(of_run(ABSENT, pair[1])) for pair in PAIRS}
    assert {row[3] for row in found.staged.quarantine} == second
    notes = {name: n for name, n in found.told.notes.items() if name.endswith("_records")}
    assert notes == {"repeated_records": 1, "conflicting_records": 3}


UNKNOWN_FIELDS = case(
    "unknown fields",
    [
        report("a", 0, colour="red", sent=[{"message": "m", "size": 1}] * 2),
        report("a", 1, colour={"deep": [1]}),
    ],
)


def test_unknown_fields_are_counted_once_a_record(book: Book) -> None:
    found = book.take(UNKNOWN_FIELDS)
    notes = {name: n for name, n in found.told.notes.items() if name.startswith("unknown")}
    assert notes == {"unknown field colour": 2, "unknown field sent[].size": 1}
    assert found.staged.quarantine == []


SEVERAL = (
    case("a", [header(interval_us=1_000_000), report("1", 0, neighbors=[])]),
    case("b", [header(interval_us=2_000_000), report("1", 0), report("2", 7)]),
)


def test_input_of_several_runs_is_refused_with_their_names(book: Book) -> None:
    counted = book.counted(*SEVERAL)
    with pytest.raises(UseError, match=naming("a (1", "b (2", "--input-run a")):
        describe(counted, SourceOptions())
    with pytest.raises(UnknownName, match=naming(unknown("run", "c", "a", "b"))):
        describe(counted, SourceOptions(only="c"))


def test_only_option_picks_one_run_of_several(desk: Desk) -> None:
    chosen = desk.take(
        [header(run="a", interval_us=1_000_000), report("1", 0, neighbors=[])],
        [header(run="b", interval_us=2_000_000), report("1", 0), report("2", 7, run="b")],
        only="b",
    )
    assert chosen.told.clock == Clock(1, 2_000_000, 0, 7)
    assert chosen.rows("presence") == {("1", 0, 1), ("2", 7, OPEN)}


def test_records_without_a_run_join_the_only_one(desk: Desk) -> None:
    found = desk.take(
        [header(run="x", protocol="ring", interval_us=500)],
        [report("a", 0, run="x", topics=["t"]), report("b", 0, run="x")],
        [report("a", 0, topics=["t"]), report("b", 0, topics=["u"]), end(1)],
    )
    assert (found.told.protocol, found.told.clock) == ("ring", Clock(1, 500, 0, 1))
    assert found.told.ended
    assert found.told.notes["repeated_records"] == 1
    assert [reason for _, _, reason, _ in found.staged.quarantine] == ["conflicting report"]
    assert {row[:2] for row in found.rows("presence")} == {("a", 0), ("b", 0)}
    assert len(found.rows("presence")) == len(found.staged.tables["traffic"]) == 2


def test_records_without_a_run_among_several_are_left_out(desk: Desk) -> None:
    files = (
        [report("1", 0, run="a"), report("1", 0), report("2", 0), end(7)],
        [header(run="b"), report("1", 5)],
        [header(run="empty")],
    )
    chosen = desk.take(*files, only="b")
    assert chosen.rows("presence") == {("1", 5, 6)}
    assert chosen.told.clock == Clock(1, None, 5, 7)
    assert chosen.told.notes["reports left out because they name no run"] == 2
    with pytest.raises(UseError, match=naming("a (1", "b (1", "empty (0", "--input-run a")):
        describe(chosen.staged.counted, SourceOptions())
    with pytest.raises(InputError, match=naming("'empty'", "header")):
        describe(chosen.staged.counted, SourceOptions(only="empty"))


HEADERS_OF_MANY_FILES = case(
    "headers of many files",
    *([header(colour=n, interval_us=5), report("a", n), end(n)] for n in range(20)),
)


def test_headers_of_many_files_agree_but_for_unknown_fields(book: Book) -> None:
    found = book.take(HEADERS_OF_MANY_FILES)
    assert found.told.clock == Clock(1, 5, 0, 19)
    assert found.told.notes["unknown field colour"] == 20


TIMED = [header(interval_us=1_000_000), report("a", 0)]
OF_A_LENGTH = case("an interval's length", TIMED)
AT_ODDS = case("headers at odds", TIMED, [header(interval_us=5), header(interval_us=1_000_000)])
NONSENSE = case("nonsense", ["nonsense"])
NO_REPORT = case("no report", [header(), end(3)])
FAR_APART = case("far apart", [report("a", 0), report("a", 2_000_000_000)])


def test_interval_length_comes_from_the_header(book: Book) -> None:
    counted = book.counted(OF_A_LENGTH)
    with pytest.raises(UseError, match=naming("1000000 µs", "2000000", "--interval")):
        describe(counted, SourceOptions(2_000_000))
    assert describe(counted, SourceOptions(1_000_000)).clock == Clock(1, 1_000_000)
    assert describe(counted, SourceOptions()).clock == Clock(1, 1_000_000)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (AT_ODDS, naming("'interval_us'", "5 and 1000000")),
        (NONSENSE, naming(NOTHING_READ, "not JSON (1)")),
        (NO_REPORT, naming(NOTHING_READ, "headers")),
        (FAR_APART, naming("2,000,000,001", "line 1", "line 2", "10,000,000")),
    ],
)
def test_unusable_input_is_refused_with_the_reason(book: Book, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        describe(book.counted(name), SourceOptions())


def test_report_file_is_recognised_by_its_records() -> None:
    def line(record: Record) -> bytes:
        return json.dumps(record).encode() + b"\n"

    source = Reports()
    assert source.recognises("x", line(header())) == "ndjson"
    some = line(report("a", 0)) + line(report("a", 1))
    assert source.recognises("x", b"damaged\n\n" + some + b'{"form') == "ndjson"
    assert source.recognises("x", b"Reports are lines as\n\n" + line(header())) is None
    assert source.recognises("x", line({"type": 3, "peerID": "abc"})) is None
    assert source.recognises("x", b"msg,node,prev_node,t_us\n") is None
    assert source.recognises("x", b"\x00\xff\x1f") is None


PEERS, TOPICS, INTERVALS = [str(n) for n in range(40)], ["s", "t", "u"], 14


def random_reports(rng: random.Random) -> list[Record]:
    """Reports with gaps, leavings, fields left out, and slowly changing state."""
    records = []
    for peer in PEERS:
        neighbors, topics = set(rng.sample(PEERS, 3)), set(rng.sample(TOPICS, 1))
        for interval in range(INTERVALS):
            neighbors = {n for n in neighbors if rng.random() < 0.8} | set(rng.sample(PEERS, 1))
            topics ^= {rng.choice(TOPICS)} if rng.random() < 0.3 else set()
            if rng.random() < 0.25:
                continue
            state = {"neighbors": sorted(neighbors), "topics": sorted(topics)}
            told = {name: value for name, value in state.items() if rng.random() < 0.85}
            if rng.random() < 0.08:
                told["left"] = True  # type: ignore[assignment]
            records.append(report(peer, interval, **told))
    rng.shuffle(records)
    return records


def naive(records: list[Record], field: str | None, gap: int) -> set[tuple[str, str, int]]:
    """(peer, item, interval) of what holds at the end of each interval; item '' for presence."""
    held = set()
    for peer in PEERS:
        mine = {r["interval"]: r for r in records if r["peer"] == peer}
        before: int | None = None
        state: set[str] = set()
        for now in sorted(mine):
            here = not mine[now].get("left", False)
            was_here = before is not None and not mine[before].get("left", False)
            bridged = before is not None and was_here and now - before - 1 <= gap
            told = mine[now].get(field) if field else [""]
            if not here:
                new: set[str] = set()
            elif told is not None:
                new = set(told)
            else:
                new = state if bridged else set()
            if bridged and before is not None:
                both = state if field is None else state & new
                held |= {(peer, item, i) for i in range(before + 1, now) for item in both}
            held |= {(peer, item, now) for item in new}
            before, state = now, new
    return held


def snapshots(spans: set[tuple[Any, ...]]) -> set[tuple[str, str, int]]:
    """The same from spans (peer, item…, valid_from, valid_to)."""
    return {
        (span[0], span[1] if len(span) > 3 else "", interval)
        for span in spans
        for interval in range(span[-2], min(span[-1], INTERVALS))
    }


RANDOM = {gap: random_reports(random.Random(SEED + gap)) for gap in (0, 2)}
RANDOM_CASES = {
    gap: case(f"random, {gap}", records[::2], records[1::2]) for gap, records in RANDOM.items()
}


@pytest.mark.parametrize("gap", RANDOM)
def test_state_over_time_equals_a_naive_reading(book: Book, gap: int) -> None:
    print("seed", SEED + gap)
    records = RANDOM[gap]
    found = book.take(RANDOM_CASES[gap], gap_tolerance=gap)
    links = {(row[0], row[1], row[4], row[5]) for row in found.rows("links")}
    assert snapshots(found.rows("presence")) == naive(records, None, gap)
    assert snapshots(found.rows("subscriptions")) == naive(records, "topics", gap)
    assert snapshots(links) == naive(records, "neighbors", gap)
    assert len(links) < sum(len(r.get("neighbors", ())) for r in records)
    silent = sum("neighbors" not in r and not r.get("left") for r in records)
    assert found.told.notes["reports without neighbors"] == silent


NAMED_ONLY = case("named only", [report("a", 0, neighbors=["b", "c"]), report("b", 0)])


def test_reporters_only_leaves_out_peers_named_by_others(book: Book) -> None:
    found = book.take(NAMED_ONLY, reporters_only=True)
    assert {row[1] for row in found.rows("links")} == {"b"}
