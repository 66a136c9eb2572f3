"""What peers tell of the run as a whole."""

from __future__ import annotations

from dataclasses import replace

from vizpub.model.errors import InputError
from vizpub.reports.records import RunHeader


def merged(told: RunHeader, known: RunHeader, run: str, *, is_closed: bool) -> RunHeader:
    """The header with what is told; none changes once an interval is closed. Raises: InputError."""
    interval_us = told.interval_us or known.interval_us
    found = replace(told, run=run, interval_us=interval_us, epoch=known.epoch)
    if found.interval_us != known.interval_us:
        raise InputError(
            f"its intervals are of {found.interval_us} µs, and the run's of "
            f"{known.interval_us}: ask for the run's header first"
        )
    if found != known and is_closed:
        raise InputError("it differs from the run's header, and intervals are closed already")
    return found
