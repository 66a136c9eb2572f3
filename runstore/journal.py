"""The log of a run: what its ingests did and when, a line of JSON for each event.

It is appended line by line, so a kill keeps all earlier lines; a power cut may tear the last ones.
It is not a table, and nothing of the run depends on it.
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

FILE = "log.jsonl"
COLUMNS = ("at", "event", "stage", "seconds", "rows", "note")
"""Time (UTC), event, stage, duration, rows of the written tables by name, and a note."""
_LOG = logging.getLogger(__name__)
_Event = dict[str, Any]


@dataclass
class Journal:
    """The log of the run in a directory."""

    directory: Path
    _stage: str | None = None

    def add(self, event: str, **more: Any) -> None:
        """Append an event with values for some of COLUMNS. Logs a warning if it cannot write."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {**dict.fromkeys(COLUMNS), "at": at, "event": event, "stage": self._stage, **more}
        if not self.directory.is_dir():
            return  # the run was removed
        try:
            line = json.dumps(entry, ensure_ascii=False, allow_nan=False)
            with (self.directory / FILE).open("ab+", buffering=0) as file:
                if end := file.tell():
                    file.seek(end - 1)
                    is_torn = file.read(1) != b"\n"
                    line = f"\n{line}" if is_torn else line
                file.write(f"{line}\n".encode(errors="backslashreplace"))
        except OSError as error:
            _LOG.warning("the run's log cannot be written: %s", error.strerror)

    def note(self, text: str) -> None:
        """Append a note on the current stage."""
        self.add("note", note=text)

    @contextmanager
    def ingest(self, note: str) -> Iterator[None]:
        """Log the block as an ingest."""
        with self._log_block("ingest", lambda: None, note):
            yield

    @contextmanager
    def stage(self, name: str, rows: Callable[[], Mapping[str, int]]) -> Iterator[None]:
        """Log the block as a stage; `rows` is called at its end."""
        self._stage = name
        try:
            with self._log_block("stage", rows):
                yield
        finally:
            self._stage = None

    @contextmanager
    def _log_block(
        self, kind: str, rows: Callable[[], Mapping[str, int] | None], note: str | None = None
    ) -> Iterator[None]:
        start = time.monotonic()
        self.add(f"{kind} begun", note=note)
        try:
            yield
        except BaseException as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            self.add(f"{kind} stopped", seconds=_seconds_since(start), note=why)
            raise
        self.add(f"{kind} ended", seconds=_seconds_since(start), rows=rows())


def read_journal(directory: Path) -> Iterator[_Event]:
    """The events of a run with COLUMNS, the oldest first; no events if the run has no log. A line
    that a power cut has torn gives the event 'unreadable'.
    """
    path = directory / FILE
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
            yield {name: entry[name] for name in COLUMNS}
        except (ValueError, TypeError, KeyError, RecursionError):
            text = line.decode("utf-8", "backslashreplace")
            yield {**dict.fromkeys(COLUMNS), "event": "unreadable", "note": text}


def _seconds_since(start: float) -> float:
    return round(time.monotonic() - start, 3)
