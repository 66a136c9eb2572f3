"""Work on a list of items in Spark tasks, each of which takes a share of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from vizpub.analytics.step_profile import StepUses, profile_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_R = TypeVar("_R")

_TASKS_PER_CORE = 8


def share_items(
    spark: SparkSession,
    items: Sequence[_T],
    work: Callable[[Sequence[_T]], Iterator[pa.RecordBatch]],
    columns: str,
    tasks: int | None = None,
    report: Callable[[StepUses], None] | None = None,
) -> DataFrame:
    """Return a lazy frame of the rows, with these columns, that `work` makes of the share of a
    task. Tasks `report` what their steps used; null = without a profile.
    """
    count = tasks or min(len(items), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)

    def work_in_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            # Neighbours are often alike, such as the splits of one large file.
            yield from work(items[number::count])

    profiled = partial(profile_task, work=work_in_task, report=report)
    return spark.range(0, count, 1, count).mapInArrow(profiled, columns)


def map_items(spark: SparkSession, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Return `[function(item) for item in items]`, computed in tasks."""
    numbered = list(enumerate(items))

    def work(share: Sequence[tuple[int, _T]]) -> Iterator[pa.RecordBatch]:
        results = [pickle.dumps((number, function(item))) for number, item in share]
        yield pa.record_batch({"result": pa.array(results, pa.binary())})

    rows = share_items(spark, numbered, work, "result binary").collect()
    results = dict(pickle.loads(row.result) for row in rows)
    return [results[number] for number, _ in numbered]
