"""Batches that are spent: only intervals that have left the run needed them.

A run can still be rebuilt of the batches that stay. They reach back beyond its first interval, as
far as a message that was published before may still arrive, so that a rebuild knows its publication
and leaves it out again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from vizpub.collector.making.batch import Batch, batches_in
from vizpub.ingest.retention import BYTES, INTERVALS
from vizpub.runstore import durable
from vizpub.runstore.inputs import all_inputs, drop_inputs
from vizpub.runstore.manifest import MESSAGE_WINDOW, Manifest
from vizpub.runstore.store import StoredRun
from vizpub.runstore.writer import RunWriter


def drop_spent(writer: RunWriter, run: Manifest) -> Manifest:
    """Return the run without its spent batches among its inputs, and their bytes counted."""
    if INTERVALS not in run.notes:
        return run
    assert run.clock
    window, gap = (run.options.get(name) for name in ("message_window", "gap_tolerance"))
    back = 1 + int(gap or 0) + (MESSAGE_WINDOW if window is None else int(window))
    needed_from = run.clock.first - back

    def is_spent(file: dict[str, Any]) -> bool:
        batch = Batch.from_path(file["path"])
        return batch is not None and batch.closed < needed_from

    shorter = drop_inputs(writer, run, is_spent)
    spent = run.input_size[1] - shorter.input_size[1]
    return replace(shorter, notes={**run.notes, BYTES: run.notes[BYTES] + spent})


def remove_spent(folder: Path, run: StoredRun) -> None:
    """Remove the batches before the first one of the run's inputs, if something has left the run.

    The run does not name them any more, so that a kill in between does no harm.
    """
    if INTERVALS not in run.manifest.notes:
        return
    inputs = all_inputs(run.directory, run.manifest)
    first = min(filter(None, (Batch.from_path(file["path"]) for file in inputs)))
    for batch in batches_in(folder):
        if batch < first:
            with suppress(FileNotFoundError):
                durable.unlink(folder / batch.name)
