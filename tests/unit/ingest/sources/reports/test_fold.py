"""Reports folded by texts of SQL, against a fold in plain Python (tests.support.plain_fold)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from tests.support.few import few
from tests.support.plain_fold import PlainFold
from vizpub.ingest.inputs.reader import InputRow, RowKind, as_batches
from vizpub.ingest.sources.reports import fold as folding
from vizpub.ingest.sources.reports.facts import ReportTally
from vizpub.ingest.sources.reports.fold import ReportFold
from vizpub.ingest.tasks.fold import RowFold
from vizpub.model.columns import CONTROL_COLUMNS
from vizpub.reports.files import problems

FILES = ("a", "b")
INT64 = 2**63 - 1
NAMES = ("p", "q", "r", '{"peer":"p"}', 'a"b', "ü\\", "overlay", "null", "7")
"""Some look like what other things are written as."""

COUNTS = ("control", "control_kinds", "publication", "duplicates", "rpcs_sent", "rpcs_received")

Record = dict[str, Any]


class Folded:
    """What a fold makes of rows."""

    def __init__(self, fold: RowFold, rows: list[InputRow], at_once: int) -> None:
        made: dict[str, list[Any]] = {}
        batches = (
            b
            for start in range(0, len(rows), at_once)
            for b in as_batches(rows[start : start + at_once])
        )
        for name, batch in fold(batches):
            made.setdefault(name, []).extend(batch.to_pylist())
        self.names = _together(made.pop("names", []))
        for row in made.get("records", []):
            row["record"] = json.dumps(_pruned(json.loads(row["record"])), sort_keys=True)
        self.tables = {name: Counter(map(repr, rows)) for name, rows in made.items() if rows}
        self.summary = json.loads(fold.summary())


def _together(names: list[Record]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    found: dict[tuple[str, ...], list[Record]] = {}
    for row in names:
        found.setdefault((row["table"], row["kind"], row["column"], row["name"]), []).append(row)
    ends = {"interval": min, "valid_from": min, "tick": min, "valid_to": max}
    return {
        key: tuple(
            end((r[c] for r in rows if r[c] is not None), default=None) for c, end in ends.items()
        )
        for key, rows in found.items()
    }


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {name: _pruned(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one is not None and one != {}}
    return [*map(_pruned, value)] if isinstance(value, list) else value


def some(rng: Random, value: Any) -> Any:
    """The value, or nothing."""
    return value if rng.random() < 0.6 else None


def neighbour(rng: Random) -> Any:
    if rng.random() < 0.4:
        return rng.choice(NAMES)
    entry = {"peer": rng.choice(NAMES), "layer": some(rng, rng.choice(["overlay", "mesh"]))}
    return {**entry, "topic": some(rng, rng.choice("st"))}


def counters(rng: Random) -> Record:
    def way() -> Record | None:
        most = rng.choice([2, 2, 2, INT64])
        return some(rng, {name: some(rng, rng.randint(0, most)) for name in ("messages", "bytes")})

    return {"sent": way(), "received": way()}


def kind(rng: Random) -> Record:
    most = rng.choice([2, 2, 2, INT64])
    counts = {name: some(rng, rng.randint(0, most)) for name in CONTROL_COLUMNS}
    return {"kind": rng.choice(NAMES), "topic": some(rng, rng.choice("st")), **counts}


def copies(rng: Random, more: str) -> list[Record]:
    def one() -> Record:
        return {
            "message": rng.choice("mno"),
            "topic": some(rng, "t"),
            "publisher": some(rng, rng.choice(NAMES)),
            "hops": some(rng, rng.choice([0, 0, 3])),
            "time_us": some(rng, rng.randint(0, INT64)),
            "bytes": rng.choice([0, 5, 5, INT64]) if rng.random() < 0.9 else None,
            **({"to": some(rng, rng.sample(NAMES, 2))} if more == "to" else {}),
            **({"from": some(rng, "q"), "subscribed": some(rng, True)} if more == "from" else {}),
        }

    return [one() for _ in range(rng.choice([0, 0, 1, 3]))]


def report(rng: Random, peer: str, interval: int, seq: int | None) -> Record:
    sent = some(rng, copies(rng, "to"))
    received = some(rng, copies(rng, "from"))
    record = {
        "format": "vizpub.report/1",
        "run": some(rng, "x"),
        "peer": peer,
        "interval": interval,
        "seq": seq,
        "neighbors": some(rng, [neighbour(rng) for _ in range(rng.randrange(5))]),
        "topics": some(rng, rng.choices("stu", k=rng.randrange(3))),
        "roles": some(rng, rng.choice([[], [{"role": "r"}], [{"role": "r", "topic": "t"}]])),
        "attributes": some(
            rng,
            [{"key": rng.choice("kl"), "value": rng.choice("vw")} for _ in range(rng.randrange(3))],
        ),
        "control": some(rng, counters(rng)),
        "control_kinds": some(rng, [kind(rng) for _ in range(rng.randrange(4))]),
        "publication": rng.choice([None, None, counters(rng), listed(sent, received)]),
        "duplicates": some(rng, rng.randrange(4)),
        "rpcs_sent": some(rng, rng.randrange(9)),
        "rpcs_received": some(rng, rng.randrange(9)),
        "gauges": some(
            rng, {"a": rng.random(), "b.c": rng.choice([0, -1, 2**53 + 1, 10**30, 1e-9, 1e300])}
        ),
        "sent": sent,
        "received": received,
        "left": rng.choice([None, None, None, False, True]),
    }
    return {name: value for name, value in record.items() if value is not None}


def listed(sent: list[Record] | None, received: list[Record] | None) -> Record:
    """Counters that agree with the number of arrivals, or nearly so."""
    return {"received": {"messages": len(received or [])}, "sent": {"messages": len(sent or [])}}


def rows(rng: Random, peers: int, before: bool, totals: bool) -> Iterator[InputRow]:
    yield InputRow(RowKind.TALLY, record=json.dumps(ReportTally(nameless=3).plain).encode())
    yield InputRow(RowKind.REFUSED, file=1, line=9, reason="no 'peer'", record=b"{\xff}")
    yield InputRow(RowKind.DAMAGED, file=1, reason="cut")
    for peer in sorted([*NAMES, *(f"p{n}" for n in range(peers))][:peers]):
        yield from sorted(_of_peer(rng, peer, before, totals), key=lambda row: row[2:6])


def _of_peer(rng: Random, peer: str, before: bool, totals: bool) -> Iterator[InputRow]:
    if before and rng.random() < 0.7:
        at = rng.randrange(4)
        record = report(rng, peer, at, None)
        kept = ("neighbors", "topics", "roles", "left", *(COUNTS if totals else ()))
        record = {name: record.get(name) for name in ("format", "peer", "interval", *kept)}
        yield InputRow(RowKind.BEFORE, peer, at, 0, 0, 0, None, _text(record))
    for line, at in enumerate(
        sorted(rng.choices(range(rng.choice([6, 20, 40_000])), k=rng.randrange(9))), 1
    ):
        first = report(rng, peer, at, rng.choice([None, 1, 2]))
        for copy in range(rng.choice([1, 1, 1, 2, 3])):
            other = report(rng, peer, at, rng.choice([None, 1, 2]))
            record = first if copy == 0 or rng.random() < 0.5 else other
            rank = -1 - record["seq"] if "seq" in record else 0
            yield InputRow(RowKind.RECORD, peer, at, rank, copy % 2, line, None, _text(record))


def _text(record: Record) -> bytes:
    return msgspec.json.encode({name: value for name, value in record.items() if value is not None})


SEEDS = few(range(400), [0, 1, 2, 4])


@pytest.mark.parametrize("seed", SEEDS)
def test_texts_fold_as_plain_python_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    totals, gap, before = rng.random() < 0.4, rng.choice([0, 0, 1, 3]), rng.random() < 0.5
    given = [*rows(rng, rng.choice([1, 4, 30]), before, totals)]
    records = [json.loads(row.record) for row in given if row.kind >= RowKind.BEFORE]
    assert not any(map(problems, records))
    counts = Folded(PlainFold(FILES, gap, totals=totals), given, 50).summary["counted"]
    plain, by_texts = (
        of(FILES, gap, ReportTally.of(counts).outliers(), totals=totals)
        for of in (PlainFold, ReportFold)
    )
    plain.final = by_texts.final = 3 if before else None
    monkeypatch.setattr(folding, "_MOST_ROWS", rng.choice([1, 7, 1 << 16]))
    expected, found = Folded(plain, given, 50), Folded(by_texts, given, rng.choice([1, 9, 50]))
    assert found.tables == expected.tables
    assert found.names == expected.names
    assert found.summary == expected.summary


@pytest.mark.parametrize("totals", [False, True])
def test_states_before_the_last_and_those_of_silent_peers_change_nothing(totals: bool) -> None:
    def row(kind: RowKind, peer: str, at: int) -> InputRow:
        record = report(rng, peer, at, None) | {"neighbors": [f"n{at}"]}
        return InputRow(kind, peer, at, 0, 0, at, None, _text(record))

    rng = Random(7)
    before, new = RowKind.BEFORE, RowKind.RECORD
    given = [row(before, "p", 1), row(before, "p", 3), row(new, "p", 4), row(new, "p", 5)]
    given += [row(new, "q", 2), row(before, "q", 3), row(before, "r", 3), row(new, "s", 4)]
    fold = ReportFold(FILES, 1, totals=totals)
    fold.final = 3
    found = Folded(fold, given, 50)
    fewer = Folded(fold, [row for row in given if row.peer in "ps" and row.time > 2], 50)
    assert found.tables == fewer.tables
    assert found.names == fewer.names
    assert sum(found.tables["records"].values()) == 2
