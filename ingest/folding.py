"""Read and fold the input: splits → rows of each peer in order of time → the source's tables."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import chain

from ingest.fold import Counted, RowFold
from ingest.job import Job, folded_as
from ingest.packs import InOrder
from ingest.sink import Fold
from ingest.sources.folded import CARRIED, rows_by_peer


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
    reader = partial(source.reader, files, options, counted=before)
    rows = rows_by_peer(job.spark, source.splits(files), reader, job.carried(CARRIED), job.small)
    made = source.fold(files, options, before)
    if job.base and job.base.clock and isinstance(made, RowFold):
        made.final = job.base.clock.last
    each = job.write(rows, InOrder(made), source.tables, folded_as, "read and fold the input")
    summaries = [json.loads(one) for one in each]
    damaged = dict(chain.from_iterable(one["damaged"].items() for one in summaries))
    read = {file.path for file in files}
    inputs = [
        {**file, "damage": damaged.get(file["path"])} if file["path"] in read else file
        for file in job.manifest.inputs
    ]
    job.update(inputs=tuple(inputs))
    job.seen = sum(one["seen"] for one in summaries)
    job.refused = sum((Counter(one["refused"]) for one in summaries), Counter[str]())
    return made, source.tallied([one["counted"] for one in summaries])
