"""Messages that are final, so that no append changes them any more; input about them is late.

A message is final when its publication is older than the window of messages. New names are looked
up among all names of messages, the only part of a run's history that is always read.
"""

from __future__ import annotations

import pyarrow.compute as pc

from vizpub.model.clock import OPEN
from vizpub.runstore.manifest import Since
from vizpub.runstore.store import StoredRun

NAMING = ("publications", "receptions", "rejections")
"""Stored tables with rows for messages and intervals."""


def least_value(run: StoredRun, column: str, since: Since, *tables: str) -> int:
    """Return the least value of a column in the rows that `since` selects; OPEN if there are
    none.
    """
    batches = (rows for name in tables for rows in run.scan(name, [column], since=since))
    return min((pc.min(rows[column]).as_py() for rows in batches if len(rows)), default=OPEN)


def first_open_message(run: StoredRun) -> int:
    """Return the number of the first message of the run that is not final."""
    aged, clock = run.manifest.last_outside_window, run.manifest.clock
    if not run.has("publications") or clock is None or aged < clock.first:
        return 0
    open_yet = least_value(run, "message", Since("interval", aged + 1), "publications")
    return min(open_yet, run.rows("publications"))


def first_open_interval(run: StoredRun) -> int | None:
    """Return the first interval with a message that is not final; null if all are final."""
    if not run.has("publications"):
        return None
    first = least_value(run, "interval", Since("message", first_open_message(run)), "publications")
    return None if first == OPEN else first
