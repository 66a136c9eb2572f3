"""The rows that the task of a small input takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa

from vizpub.ingest.folding import _last_states_of, _rows_by_peer
from vizpub.ingest.inputs.reader import RowKind
from vizpub.ingest.tasks.steps import StepInput


def test_task_that_reads_a_small_input_takes_all_rows_of_spark() -> None:
    """Otherwise Spark ends its worker, and forks another one for the next task."""
    job: Any = SimpleNamespace(spark=Mock(), states=[], small=True, account=Mock())
    _, fold = _rows_by_peer(job, [], Mock(), Mock())
    rows_of_spark = iter([pa.record_batch({"id": [0]})])
    assert [*fold.rows(rows_of_spark)] == []
    assert next(rows_of_spark, None) is None


def states(**intervals: int) -> StepInput:
    rows = [{"peer": p, "interval": at, "record": p.encode()} for p, at in intervals.items()]
    types = {"peer": pa.string(), "interval": pa.int32(), "record": pa.binary()}
    return StepInput(pa.Table.from_pylist(rows, pa.schema(types)))


def test_peers_resume_from_the_newest_part_that_has_them() -> None:
    """Parts older than that of all peers are not opened."""
    unread: Any = Mock()
    parts = [unread, states(a=1, b=1, c=1), states(a=4, d=4), states()]
    rows = [row for batch in _last_states_of({"a", "b"}, parts) for row in batch.to_pylist()]
    assert {(row["peer"], row["time"]) for row in rows} == {("a", 4), ("b", 1)}
    assert {row["kind"] for row in rows} == {RowKind.BEFORE}
    assert unread.mock_calls == []
    assert [*_last_states_of({"new"}, parts[1:])] == []
