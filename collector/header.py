"""The header of a collected run."""

from __future__ import annotations

from dataclasses import replace

from vizpub.model.errors import InputError
from vizpub.reports.records import RunHeader


def merge_header(new: RunHeader, current: RunHeader, run: str, *, is_closed: bool) -> RunHeader:
    """Return the run's header after a peer sent `new`.

    Raises: InputError if that changes the length of intervals, or anything once one is closed.
    """
    interval_us = new.interval_us or current.interval_us
    merged = replace(new, run=run, interval_us=interval_us, epoch=current.epoch)
    if merged.interval_us != current.interval_us:
        raise InputError(
            f"its intervals are of {merged.interval_us} µs, and the run's of "
            f"{current.interval_us}: ask for the run's header first"
        )
    if merged != current and is_closed:
        raise InputError("it differs from the run's header, and intervals are closed already")
    return merged
