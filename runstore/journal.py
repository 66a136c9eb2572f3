"""The log of a run: what its ingests did and when, a line of JSON for each event.

It is appended to line by line, so a kill leaves all that was told before; it is no table, and
nothing of the run depends on it. A power cut may tear its last lines.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOG = "log"
"""What it is called for people."""
FILE = "log.jsonl"
COLUMNS = ("at", "event", "stage", "seconds", "rows", "note")
"""When (UTC), what, in which stage, how long that took, the rows of the tables that it wrote, and
what else is to be known.
"""
_LOG = logging.getLogger(__name__)
Event = dict[str, Any]


@dataclass
class Journal:
    """The log of the run in a directory."""

    directory: Path
    _stage: str | None = None

    def tell(self, event: str, **more: Any) -> None:
        """Add an event; more are some of COLUMNS. That it cannot be written is told to the user."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {**dict.fromkeys(COLUMNS), "at": at, "event": event, "stage": self._stage, **more}
        if not self.directory.is_dir():
            return  # the run gave way
        try:
            _append(self.directory / FILE, json.dumps(told, ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            _LOG.warning("the run's log cannot be written: %s", error.strerror)

    def note(self, text: str) -> None:
        """Add something to be known of what is under way."""
        self.tell("note", note=text)

    @contextmanager
    def ingest(self, note: str) -> Iterator[None]:
        """The block is an ingest into the run."""
        with self._told("ingest", lambda: None, note):
            yield

    @contextmanager
    def stage(self, name: str, rows: Callable[[], Mapping[str, int]]) -> Iterator[None]:
        """The block is a stage; `rows` are asked for in the end."""
        self._stage = name
        try:
            with self._told("stage", rows):
                yield
        finally:
            self._stage = None

    @contextmanager
    def _told(
        self, what: str, rows: Callable[[], Mapping[str, int] | None], note: str | None = None
    ) -> Iterator[None]:
        begun = time.monotonic()
        self.tell(f"{what} begun", note=note)
        try:
            yield
        except BaseException as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            self.tell(f"{what} stopped", seconds=_since(begun), note=why)
            raise
        self.tell(f"{what} ended", seconds=_since(begun), rows=rows())


def read_journal(directory: Path) -> Iterator[Event]:
    """The events of a run, the oldest first; null of COLUMNS is nothing. Of a line that cannot be
    read, as a power cut leaves it, the event is 'unreadable'. None, if the run has no log.
    """
    path = directory / FILE
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            told = json.loads(line)
            yield {name: told[name] for name in COLUMNS}
        except (ValueError, TypeError, KeyError, RecursionError):
            text = line.decode("utf-8", "backslashreplace")
            yield {**dict.fromkeys(COLUMNS), "event": "unreadable", "note": text}


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


def _append(path: Path, line: bytes) -> None:
    """Behind what is there, on a line of its own even if that is torn."""
    with path.open("ab+", buffering=0) as file:
        if end := file.tell():
            file.seek(end - 1)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
