"""Checksums that are kept of tables, whose parts come, go, join and are made anew."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from tests.support.few import few
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import NODE_STEPS, NodeStep
from vizpub.graphstore.verify.checksums import PRIMES, Checksums
from vizpub.graphstore.verify.kept_checksums import (
    KeptChecksums,
    checksums_of_grown_tables,
)
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import Boundary
from vizpub.model.tables import table

TOPICS, PEERS = 3, 9
Row = dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """Tables of parts; what is read of a part is noted."""

    rows_of: dict[str, dict[str, list[Row]]]
    """By table and part."""
    read: list[str] = field(default_factory=list)

    def parts(self, name: str) -> list[str]:
        return [*self.rows_of.get(name, {})]

    def part_rows(self, name: str, part: str) -> Iterable[pa.RecordBatch]:
        self.read.append(f"{name}/{part}")
        yield _batch(name, self.rows_of[name][part])

    def row_groups(self, name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        for part, rows in self.rows_of.get(name, {}).items():
            yield f"{part}/0", _batch(name, rows)

    def rows_from(self, name: str, column: str, least: int) -> Iterable[pa.RecordBatch]:
        raise NotImplementedError

    def rows(self, name: str) -> int:
        return sum(map(len, self.rows_of.get(name, {}).values()))

    def boundary_since(self, tables: str) -> Boundary | None:
        raise NotImplementedError

    def is_current(self) -> bool:
        raise NotImplementedError


def _batch(name: str, rows: list[Row]) -> pa.RecordBatch:
    schema = table(name).arrow
    return pa.RecordBatch.from_pylist([{f: r.get(f) for f in schema.names} for r in rows], schema)


def begun() -> Parts:
    peers = [{"peer": i, "name": f"p{i}", "is_reporter": True} for i in range(PEERS)]
    topics = [{"topic": i, "name": f"t{i}"} for i in range(TOPICS)]
    return Parts({"peers": {"a": peers}, "topics": {"a": topics}})


def made(rng: random.Random, end: int) -> dict[str, list[Row]]:
    """New rows of tables that have a period, or a message."""

    def period() -> Row:
        start = rng.randrange(end)
        return {"valid_from": start, "valid_to": rng.choice([OPEN, start + rng.randint(1, 9)])}

    def of_message() -> Row:
        return {"message": rng.randrange(99), "peer": rng.randrange(PEERS)}

    links = [
        {"src": rng.randrange(PEERS), "dst": rng.randrange(PEERS), "layer": rng.choice("xyz"),
         "topic": rng.choice([None, 0, 2]), **period()}
        for _ in range(rng.randrange(6))
    ]  # fmt: skip
    receptions = [
        {**of_message(), "previous_hop": rng.choice([None, 4]), "interval": 0, "tick": 0,
         "first": rng.random() < 0.5, "hop": rng.choice([None, 3])}
        for _ in range(rng.randrange(6))
    ]  # fmt: skip
    metrics = [{"message": m, "hit_ratio": rng.random()} for m in range(rng.randrange(4))]
    missed = [of_message() for _ in range(rng.randrange(4))]
    return {"links": links, "receptions": receptions, "metrics/messages": metrics, "missed": missed}


COLUMN = {"links": "valid_to"}


def appended(parts: Parts, rng: random.Random, name: str, end: int) -> Parts:
    """A generation later: parts lose rows, parts are joined, a part comes."""
    rows = {table: dict(of) for table, of in parts.rows_of.items()}
    for table_, new in made(rng, end).items():
        column = COLUMN.get(table_, "message")
        below = rng.randrange(end + 9) if column == "valid_to" else rng.randrange(110)
        there = rows.setdefault(table_, {})
        for part, of in [*there.items()]:
            left = [row for row in of if row[column] < below]
            if len(left) < len(of):
                del there[part]
                there[f"{part}-{name}"] = left
        if rng.random() < 0.3 and len(there) > 1:
            old = [*there][:2]
            joined = [row for part in old for row in there.pop(part)]
            rows[table_] = there = {f"{name}j": joined, **there}
        there[name] = new
    return Parts(rows)


def checksums(parts: Parts, before: KeptChecksums | None, intervals: int) -> KeptChecksums:
    clock = Clock(last=intervals - 1)
    partitions = Partitions(clock, 8)
    tables = TableReader(parts, clock, checked=False)
    census = tables.census(partitions)
    found = checksums_of_grown_tables(before, tables, "r", census, {"Hub": [1]})
    assert found is not None
    return found


@pytest.mark.parametrize("seed", few(range(30), range(2)))
def test_checksums_that_grew_are_those_of_the_whole_tables(seed: int) -> None:
    print("seed", seed)
    rng, parts, before = random.Random(seed), begun(), None
    for generation in range(12):
        end = 10 + 3 * generation
        parts = appended(parts, rng, f"g{generation}", end)
        if rng.random() < 0.3:  # a generation that no copy holds
            continue
        found = checksums(parts, before, end)
        assert found == checksums(parts, None, end), generation
        before = KeptChecksums.of({"checksums": found.text})
        assert before == found


def test_growth_reads_only_parts_that_are_new() -> None:
    rng = random.Random(5)
    parts = appended(begun(), rng, "old", 20)
    while any(not of for table_, of in parts.rows_of.items()) or len(parts.rows_of["links"]) < 3:
        parts = appended(parts, rng, f"old{len(parts.rows_of['links'])}", 20)
    before = checksums(parts, None, 20)
    parts.read.clear()
    assert checksums(parts, before, 20) == before
    assert parts.read == []
    rows = {**parts.rows_of, "missed": {**parts.rows_of["missed"], "new": []}}
    checksums(Parts(rows, parts.read), before, 20)
    assert parts.read == ["missed/new"]


def test_checksums_that_cannot_be_read_are_none() -> None:
    for text in ("", "{}", "[]", "x", 7, None):
        assert KeptChecksums.of({"checksums": text}) is None
    assert KeptChecksums.of({}) is None


@pytest.mark.parametrize("step", NODE_STEPS, ids=lambda step: step.statement)
def test_sums_of_nodes_are_those_of_nodes_with_properties(step: NodeStep) -> None:
    ids = [2**30, 7, 9, 11, 13]
    columns: dict[str, pa.Array] = {
        "key": pa.array([f"r/{node}" for node in ids]),
        "run": pa.array(["r"] * 5, pa.string()),
        "size": pa.array([5, None, None, -8, 6], pa.int64()),
        "topic": pa.array(["ab", None, "c", None, None], pa.string()),
        "complete": pa.array([True, None, None, False, None], pa.bool_()),
        "delay": pa.array([-1.5, None, 2.0**42, 0.1, None], pa.float64()),
    }
    if not step.creates:  # it adds to nodes of which it names the key alone
        del columns["run"]
    nodes, rows = pa.RecordBatch.from_pydict(columns), {step.key: pa.array(ids, pa.int32())}
    sums = Checksums(Partitions(Clock(last=9)))
    for start in (0, 2, 4):
        of = [pa.RecordBatch.from_pydict(rows), nodes]
        sums.add_nodes(step, *(b.slice(start, 2) for b in of), "p")
    high, low = divmod(int(Fraction(0.1) * 2**60), 2**40)
    described = [  # of the number of properties, the id, and each property as two integers
        [4, 2**30, 5, 0, 2, 2, 1, 1, -3 * 2**19, 3],
        [2, 9, -1, -1, 1, 2, -1, -1, 0, -3],
        [3, 11, -8, 0, -1, -1, 0, 1, high, 3 + low],
        [1, 13, 6, 0, -1, -1, -1, -1, -1, -1],
    ]
    properties = 10 + (10 if step.creates else 0)
    expected = [4, properties, *(sum(_chain(row, prime) for row in described) for prime in PRIMES)]
    assert sums.part(step.table, "p")[step.statement] == expected
    assert sums.names[step.statement] == ["size", "topic", "complete", "delay"]


def _chain(row: list[int], prime: int) -> int:
    """The squared h of a row, as `checksums_of` defines it, in whole numbers of any size."""
    h, *rest = row
    for x in rest:
        h = int(math.fmod(h * h % prime + math.fmod(x, prime), prime))
    return h * h % prime
