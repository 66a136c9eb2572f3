"""What comes late: input about messages that no append changes any more.

A message is final when its publication is older than the window of messages. A name that comes anew
is looked up among all names of messages, the only part of a run's history that is always read.
"""

from __future__ import annotations

import pyarrow.compute as pc

from vizpub.model.clock import OPEN
from vizpub.runstore.manifest import Since
from vizpub.runstore.store import StoredRun

NAMING = ("publications", "receptions", "rejections")
"""Stored tables with rows for messages and intervals."""


def least(run: StoredRun, column: str, since: Since, *tables: str) -> int:
    """The least value of a column in such rows of the tables; OPEN if there are none."""
    batches = (rows for name in tables for rows in run.scan(name, [column], since=since))
    return min((pc.min(rows[column]).as_py() for rows in batches if len(rows)), default=OPEN)


def first_open(run: StoredRun) -> int:
    """All messages of the run before this one are final."""
    aged, clock = run.manifest.aged, run.manifest.clock
    if not run.has("publications") or clock is None or aged < clock.first:
        return 0
    open_yet = least(run, "message", Since("interval", aged + 1), "publications")
    return min(open_yet, run.rows("publications"))


def open_from(run: StoredRun) -> int | None:
    """The first interval of a message that is not final; null if all are."""
    if not run.has("publications"):
        return None
    first = least(run, "interval", Since("message", first_open(run)), "publications")
    return None if first == OPEN else first
