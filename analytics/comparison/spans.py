"""Validity periods of a stored run, as the intervals in which they are sampled."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.own import Spans
from vizpub.model.clock import OPEN
from vizpub.questions.run import Run


def read_spans(
    run: Run,
    name: str,
    columns: Sequence[str],
    window: range,
    layers: Collection[str] | None = None,
) -> Spans:
    """Read the rows of a table that are sampled in the window, of these layers (null = all); none
    if the run lacks the table.
    """
    k = run.clock.ticks_per_interval
    where = (pc.field("valid_from") < window.stop * k) & (pc.field("valid_to") >= window.start * k)
    if layers:
        where &= pc.field("layer").isin(pa.array(layers, pa.string()))
    rows = run.stored.read(name, [*columns, "valid_from", "valid_to"], where)
    begin, end = rows["valid_from"].to_numpy(), rows["valid_to"].to_numpy()
    start = np.maximum(begin // k, window.start).astype(np.int32)
    stop = np.where(end == OPEN, window.stop, np.minimum(end // k, window.stop)).astype(np.int32)
    is_sampled = start < stop
    chosen = rows.select(columns).filter(pa.array(is_sampled))
    return Spans(chosen, start[is_sampled], stop[is_sampled])
