"""Read and fold the input: splits → rows of each peer in order of time → the source's tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from vizpub.ingest.inputs.reader import ROWS, Kind, Read, Split, in_tasks, numbered, rows_of_splits
from vizpub.ingest.job import Job, folded_as
from vizpub.ingest.sources.base import Tallies
from vizpub.ingest.tasks.fold import Counted, RowFold
from vizpub.ingest.tasks.packs import PACKS, InOrder, pack
from vizpub.ingest.tasks.sink import Fold
from vizpub.ingest.tasks.steps import Taken, naming_broken_files


def fold(job: Job) -> None:
    """Write the source's tables, and set the manifest's `totals`."""
    before = job.base.totals if job.base else None
    made, counted = _fold(job, before)
    known = job.plan.counts(counted)
    if job.source.is_refuted(made, known, job.options):
        _, counted = _fold(job, known)
    job.update(totals=counted)


def _fold(job: Job, before: Counted | None) -> tuple[Fold, Counted]:
    """Read and fold the input, given earlier counts. Returns the fold, and counts."""
    source, files, options = job.source, job.files, job.options
    splits = numbered(job.spark, source.splits(files))

    def tallies(read: Read) -> Tallies:
        rows = in_tasks(job.spark, splits, read, job.small).where(f"kind = {int(Kind.TALLY)}")
        return [json.loads(row.record) for row in rows.select("record").collect()]

    read = source.reader(files, options, tallies, before)
    made = source.fold(files, options, before)
    if job.base and job.base.clock and isinstance(made, RowFold):
        made.final = job.base.clock.last
    rows, ordered = _rows_by_peer(job, splits, read, made)
    each = job.write(rows, ordered, source.tables, folded_as, "read and fold the input")
    summaries = [json.loads(one) for one in each]
    damaged = dict(chain.from_iterable(one["damaged"].items() for one in summaries))
    now = {file.path for file in files}
    inputs = [
        {**file, "damage": damaged.get(file["path"])} if file["path"] in now else file
        for file in job.manifest.inputs
    ]
    job.update(inputs=tuple(inputs))
    job.seen = sum(one["seen"] for one in summaries)
    job.refused = sum((Counter(one["refused"]) for one in summaries), Counter[str]())
    return made, source.tallied([one["counted"] for one in summaries])


def _rows_by_peer(
    job: Job, splits: Sequence[Split], read: Read, made: Fold
) -> tuple[DataFrame, InOrder]:
    """What tasks take for the fold, and the fold that takes it: all rows of the input, and the
    states from which an append goes on. All rows of a peer are in one task.
    """
    spark, states = job.spark, job.states
    if job.small:
        everything = partial(_everything, splits=splits, read=read, states=states)
        return spark.range(0, 1, 1, 1), InOrder(made, everything)
    tasks = max(spark.sparkContext.defaultParallelism, min(len(splits), 1000))
    packs = in_tasks(spark, splits, read, False, partial(pack, parts=tasks), PACKS)
    if states:
        numbers = spark.range(0, len(states), 1, len(states))
        packs = packs.unionAll(numbers.mapInArrow(partial(_packed, states, tasks), PACKS))
    return packs.repartitionById(tasks, "part"), InOrder(made)


def _everything(
    batches: Iterable[pa.RecordBatch], splits: Sequence[Split], read: Read, states: Sequence[Taken]
) -> Iterator[pa.RecordBatch]:
    """The rows of a small input, read by the task that folds them."""
    del batches
    yield from rows_of_splits(splits, read)
    yield from _rows_of_states(states)


def _packed(
    states: Sequence[Taken], parts: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        mine = (states[number] for number in batch.column(0).to_pylist())
        yield from pack(_rows_of_states(mine), parts)


def _batches(states: Iterable[Taken]) -> Iterator[pa.RecordBatch]:
    for one in states:
        with naming_broken_files([one]):
            yield from one.kept.to_batches()


def _rows_of_states(states: Iterable[Taken]) -> Iterator[pa.RecordBatch]:
    """The rows that begin each peer."""
    for state in _batches(states):
        nothing = np.zeros(len(state), np.int64)
        columns = {
            "kind": pa.array(np.full(len(state), Kind.BEFORE, np.int8)),
            "peer": state["peer"],
            "time": state["interval"].cast(pa.int64()),
            **{"rank": nothing, "file": nothing.astype(np.int32), "line": nothing},
            "reason": pa.nulls(len(state), pa.string()),
            "record": state["record"],
        }
        yield pa.record_batch(columns, ROWS)
