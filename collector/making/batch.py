"""Batches: files with the reports of the intervals that closed since the previous batch.

A batch is a file of reports as `ReportWriter` writes it, and the input of one append. Its name has
its number, the position in the log up to which it reaches, and the last interval that was closed
there. The run's manifest names its inputs, so the commit of a batch also records how much of the
log the run has, and nothing else has to. Late reports are in the next batch: an append counts them,
and `vizpub runs settle` reads them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from vizpub.collector.log import records as log
from vizpub.reports.files import ReportWriter
from vizpub.reports.records import RunHeader
from vizpub.runstore import durable
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.store import current_manifest

_NAME = re.compile(r"(\d{8})\.(\d{20})\.(\d+)\.ndjson\.gz")
_COMPRESSION = 3


@dataclass(frozen=True, order=True)
class Batch:
    """A file of reports."""

    number: int
    """From 1."""
    position: int
    """The position in the log up to which all is in this batch or earlier ones, except reports of
    open intervals."""
    closed: int
    """The last interval that was closed."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.number:08}.{self.position:020}.{self.closed}.ndjson.gz"

    @classmethod
    def from_path(cls, path: str) -> Batch | None:
        """Return the batch with this file, or null for another file."""
        match = _NAME.fullmatch(Path(path).name)
        return cls(*map(int, match.groups())) if match else None


NONE = Batch(0, 0, -1)
"""The state before the first batch."""


def batches_in(folder: Path) -> list[Batch]:
    """Return the batches of a folder, in order."""
    return sorted(filter(None, (Batch.from_path(path.name) for path in folder.glob("*.ndjson.gz"))))


def last_batch_in(run: Path) -> Batch:
    """Return the last batch that a run has. Raises: StoreBroken, ServiceError."""
    try:
        manifest = current_manifest(run)
    except FileNotFoundError:
        return NONE
    if not manifest.complete:
        return NONE
    batches = (Batch.from_path(file["path"]) for file in all_inputs(run, manifest))
    return max(filter(None, batches), default=NONE)


@dataclass
class BatchBuilder:
    """Makes the batches after the last one from the log."""

    directory: Path
    """The directory of the log."""
    last: Batch
    _position: int = field(init=False)
    _header: RunHeader | None = None
    _pending: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    """Reports by interval, each with the position before it."""
    _first: int = 0
    """The run's first interval. Reports of earlier ones, by slow clocks, count as late: they would
    add empty intervals before all others."""

    def __post_init__(self) -> None:
        self._position = next((start for start, _ in log.segments(self.directory)), 0)

    def next(self, until: int, folder: Path) -> Batch | None:
        """Write the batch with all that is closed up to a position; null if nothing new is.

        The file is complete and synced, or does not exist.
        """
        closed, position, end = self._advance(until)
        ready = sorted(
            report
            for interval in [i for i in self._pending if i <= closed]
            if self.last.number or end is not None or interval >= self._first
            for report in self._pending.pop(interval)
        )
        if end is None and not ready and closed == self.last.closed:
            return None
        batch = Batch(self.last.number + 1, position, closed)
        with ReportWriter(folder / batch.name, self._header, compression=_COMPRESSION) as writer:
            for _, line in ready:
                writer.write_lines(line + b"\n")
            if end is not None:
                writer.end(end)
        durable.sync_directory(folder)
        self.last = batch
        return batch

    @property
    def needed_from(self) -> int:
        """The position in the log from which it is still needed."""
        pending = [reports[0][0] for reports in self._pending.values() if reports]
        return min([*pending, self._position])

    def _advance(self, until: int) -> tuple[int, int, int | None]:
        """Read on. Returns the last closed interval, the position, and the last interval of a run
        that has ended.
        """
        closed, end = self.last.closed, None
        early: list[log.Record] = []
        for record in log.read_records(self.directory, self._position, until):
            self._position = record.end
            if record.kind == log.REPORT:
                is_old = record.end <= self.last.position and record.interval <= self.last.closed
                if is_old and self.last.number == 1:
                    early.append(record)
                elif not is_old:
                    self._pending[record.interval].append((record.start, record.line))
            elif record.kind == log.CLOSE:
                self._first = self._first if record.first is None else record.first
                closed = record.interval if record.end > self.last.position else closed
            elif record.kind == log.END and record.end > self.last.position:
                mark = json.loads(record.content)
                end = mark["last_interval"] if mark.get("ended") else None
            elif record.kind in (log.HEADER, log.STATE):
                content = json.loads(record.content)
                header = content["header"] if record.kind == log.STATE else content
                self._header = RunHeader.from_json(header)
        for record in early:  # the first batch left it out
            if record.interval < self._first:
                self._pending[record.interval].append((record.start, record.line))
        return closed, max(self.last.position, until), end
