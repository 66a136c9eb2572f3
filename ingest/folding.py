"""Read and fold the input: splits → rows of each peer in order of time → the source's tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from vizpub.analytics.step_profile import follow
from vizpub.ingest.inputs.reader import (
    ROWS,
    InputSplit,
    RowKind,
    SplitReader,
    number_splits,
    read_in_tasks,
    rows_of_splits,
)
from vizpub.ingest.job import Job, stored_name
from vizpub.ingest.sources.base import SourceInput, Tallies
from vizpub.ingest.tasks.fold import RowFold, RunCounts
from vizpub.ingest.tasks.items import share_items
from vizpub.ingest.tasks.packs import PACKS, OrderedFold, pack_rows
from vizpub.ingest.tasks.sink import Fold
from vizpub.ingest.tasks.steps import StepInput, name_broken_files


def fold_input(job: Job) -> None:
    """Read the input, write the source's tables, and set the manifest's `totals`."""
    row_fold, counts = _fold_once(job, job.base.totals if job.base else None)
    if job.source.is_refuted(row_fold, counts, job.options):
        _, counts = _fold_once(job, counts)
    job.update(totals=counts)


def _fold_once(job: Job, earlier: RunCounts | None) -> tuple[Fold, RunCounts]:
    """Read and fold the input, given earlier counts. Return the fold and the counts of all
    input.
    """
    source, files, report = job.source, job.files, job.account.report
    splits = number_splits(job.spark, source.splits(files))

    def count_first(tally_reader: SplitReader) -> Tallies:
        rows = read_in_tasks(job.spark, splits, tally_reader, report=report)
        return [json.loads(row.record) for row in rows.where(f"kind = {RowKind.TALLY:d}").collect()]

    source_input = SourceInput(files, job.options, count_first, earlier)
    split_reader, row_fold = source.reader(source_input), source.make_fold(source_input)
    if job.base and job.base.clock and isinstance(row_fold, RowFold):
        row_fold.final = job.base.clock.last
    rows, ordered = _rows_by_peer(job, splits, split_reader, row_fold)
    texts = job.write(rows, ordered, source.tables, stored_name, "read and fold the input")
    summaries = [json.loads(one) for one in texts]
    damaged = dict(chain.from_iterable(one["damaged"].items() for one in summaries))
    new_paths = {file.path for file in files}
    inputs = [
        {**file, "damage": damaged.get(file["path"])} if file["path"] in new_paths else file
        for file in job.manifest.inputs
    ]
    job.update(inputs=tuple(inputs))
    job.records_seen = sum(one["seen"] for one in summaries)
    job.refusals = sum((Counter(one["refused"]) for one in summaries), Counter[str]())
    new_counts = source.combine_tallies([one["counted"] for one in summaries])
    return row_fold, job.plan.combine_counts(new_counts)


def _rows_by_peer(
    job: Job, splits: Sequence[InputSplit], split_reader: SplitReader, row_fold: Fold
) -> tuple[DataFrame, OrderedFold]:
    """Return a frame of the input's rows and the fold that takes it. The rows include the states
    from which an append resumes. All rows of a peer are in one task.
    """
    spark, states, report = job.spark, job.states, job.account.report
    if job.small:

        def read_everything(only_row: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # Spark uses a worker again only where a task took all of its rows.
            for _ in only_row:
                peers = set[str]()
                for rows in rows_of_splits(splits, split_reader):
                    peers.update(rows["peer"].drop_null().unique().to_pylist())
                    yield rows
                yield from _last_states_of(peers, states)

        return spark.range(0, 1, 1, 1), OrderedFold(row_fold, read_everything)
    tasks = max(spark.sparkContext.defaultParallelism, min(len(splits), 1000))
    pack = partial(pack_rows, parts=tasks)
    packs = read_in_tasks(spark, splits, split_reader, pack, PACKS, report)
    if states:

        def pack_states(share: Sequence[StepInput]) -> Iterator[pa.RecordBatch]:
            # Where a peer does not report, or has newer states, the fold leaves them out.
            return pack(chain.from_iterable(map(_rows_of_states, share)))

        packs_of_states = share_items(spark, states, pack_states, PACKS, len(states), report)
        packs = packs.unionAll(packs_of_states)
    return packs.repartitionById(tasks, "part"), OrderedFold(row_fold)


def _last_states_of(peers: set[str], states: Sequence[StepInput]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with which peers resume, from the newest part of the states that has them."""
    left = set(peers)
    for state in reversed(states):
        if not left:
            return
        chosen = pc.field("peer").isin(pa.array([*left], pa.string()))
        for rows in _rows_of_states(StepInput(state.selected_rows.filter(chosen))):
            left.difference_update(rows["peer"].to_pylist())
            yield rows


def _stored_batches(states: StepInput) -> Iterator[pa.RecordBatch]:
    with name_broken_files([states]):
        yield from states.selected_rows.to_batches()


def _rows_of_states(states: StepInput) -> Iterator[pa.RecordBatch]:
    """Yield the rows with which peers resume, from states after an append."""
    for state in follow("ingest/folding.py", _stored_batches(states)):
        nothing = np.zeros(len(state), np.int64)
        columns = {
            "kind": pa.array(np.full(len(state), RowKind.BEFORE, np.int8)),
            "peer": state["peer"],
            "time": state["interval"].cast(pa.int64()),
            **{"rank": nothing, "file": nothing.astype(np.int32), "line": nothing},
            "reason": pa.nulls(len(state), pa.string()),
            "record": state["record"],
        }
        yield pa.record_batch(columns, ROWS)
