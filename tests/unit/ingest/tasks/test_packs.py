"""Rows in packs: none is lost, each key has one part, and a fold gets them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pyarrow as pa
import pytest

from vizpub.ingest.inputs.reader import InputRow, RowKind, as_batches
from vizpub.ingest.tasks.packs import OrderedFold, pack_rows, unpack_rows


def some_rows(rng: Random, number: int) -> list[InputRow]:
    keys = [None, "", "a", "b", "ü", "\U0001f600", *(f"peer {n}" for n in range(20))]
    return [
        InputRow(
            RowKind.RECORD,
            rng.choice(keys),
            rng.randrange(5),
            -rng.randrange(3),
            rng.randrange(3),
            line,
            rng.choice([None, "why"]),
            rng.randbytes(rng.randrange(40)),
        )
        for line in range(number)
    ]


class Kept:
    """A fold that keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[InputRow] = []

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in batches:
            self.rows += rows_of(batch)
            yield "table", batch

    def summary(self) -> str:
        return f"{len(self.rows)} rows"


def rows_of(batch: pa.RecordBatch) -> list[InputRow]:
    return [InputRow(**row) for row in batch.to_pylist()]


@pytest.mark.parametrize("parts", [1, 3, 20])
def test_packed_rows_reach_the_fold_of_their_part_in_order(parts: int) -> None:
    rng = Random(parts)
    given = some_rows(rng, 500)
    batches = [batch for at in range(0, 500, 70) for batch in as_batches(given[at : at + 70])]
    packs = [row for packed in pack_rows(batches, parts) for row in packed.to_pylist()]
    assert {row["part"] for row in packs} <= {*range(parts)}
    parts_of: dict[str | None, set[int]] = {}
    reached = []
    for part in range(parts):
        mine = [row["rows"] for row in packs if row["part"] == part]
        fold = Kept()
        in_order = OrderedFold(fold)
        made = [
            *in_order([pa.record_batch({"part": [part] * len(mine), "rows": mine})] if mine else [])
        ]
        assert sum(len(rows) for _, rows in made) == len(fold.rows)
        assert in_order.summary() == f"{len(fold.rows)} rows"
        keyed = [row for row in fold.rows if row.peer is not None]
        assert keyed == sorted(keyed, key=lambda row: (row.peer or "", *row[2:6]))
        for row in fold.rows:
            parts_of.setdefault(row.peer, set()).add(part)
        reached += fold.rows
    assert sorted(reached, key=lambda row: row.line) == given
    assert all(len(of) == 1 for of in parts_of.values())


def test_pack_without_rows_is_none() -> None:
    assert [*pack_rows([], 3)] == [*unpack_rows([])] == []
