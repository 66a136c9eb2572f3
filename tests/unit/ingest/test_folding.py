"""The rows that the task of a small input takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa

from vizpub.ingest.folding import _rows_by_peer


def test_task_that_reads_a_small_input_takes_all_rows_of_spark() -> None:
    """Otherwise Spark ends its worker, and forks another one for the next task."""
    job: Any = SimpleNamespace(spark=Mock(), states=[], small=True)
    _, fold = _rows_by_peer(job, [], Mock(), Mock())
    rows_of_spark = iter([pa.record_batch({"id": [0]})])
    assert [*fold.rows(rows_of_spark)] == []
    assert next(rows_of_spark, None) is None
