"""The process that makes the run: `python -m vizpub.collector.making.batches`.

It reads lines of JSON from standard input: its `BatchJob`, then the positions up to which the log
is closed. It appends closed intervals, and answers on another pipe, in lines of JSON: the outcome
of each append, and every few seconds that its Java answers. It has one Spark session, and no state
of its own: the run's manifest records what is done (`vizpub.collector.making.batch`), so it may be
killed at any point, and the next one continues. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.options import Measures
from vizpub.collector.log.records import LogDamaged, gaps_in
from vizpub.collector.making.batch import NONE, Batch, BatchBuilder, batches_in, last_batch_in
from vizpub.collector.making.child import trim
from vizpub.collector.making.spent import drop_spent, remove_spent
from vizpub.collector.place import CollectionPlace
from vizpub.collector.reservation import release
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.pipeline import IngestOutcome, ingest_in, settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.retention import INTERVALS, LEFT
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.libp2p.events import KINDS
from vizpub.ingest.spark.session import spark_session, vizpub_errors
from vizpub.machine.locks import LockHeld, holding
from vizpub.model.errors import RunLocked, StoreBroken, VizpubError
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.manifest import LATE, LATE_MESSAGES, Since
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import RunWriter, writing

Ingest = Callable[[RunWriter, IngestRequest], IngestOutcome]
"""`ingest_in` of a session."""
_AGAIN_S = 0.5
"""Between two tries of a lock that another process has."""
_BEAT_S = 5.0
_ROWS = 512
"""Rows in one message."""
DAMAGED = "bytes of the collector's log that were damaged and are left out"
"""A note of the run."""


@dataclass(frozen=True)
class BatchJob:
    """The first line for the process: the run, and its options."""

    workspace: str
    run: str
    gap_tolerance: int = 0
    message_window: int | None = None
    betweenness: bool = True
    keep: int | None = None
    """The intervals that the run keeps; null = all."""

    @property
    def place(self) -> CollectionPlace:
        """The folder of the collection."""
        return CollectionPlace(Path(self.workspace), self.run)

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON."""
        return asdict(self)


class BatchAppender:
    """Appends batch after batch to the run."""

    def __init__(self, ingest: Ingest, job: BatchJob) -> None:
        self._ingest_into, self._job, self._place = ingest, job, job.place
        self._collection = self._place.identity
        self._builder = BatchBuilder(self._place.log, self.last_batch())

    def last_batch(self) -> Batch:
        """The last batch that the run has. Raises: StoreBroken."""
        run = self._place.run
        try:
            return last_batch_in(self._place.workspace / "runs" / run)
        except StoreBroken as error:
            again = f"vizpub runs remove {run}, then vizpub live collect {run} --revive"
            raise StoreBroken(error.path, error.why, f"pause; to rebuild it: {again}") from error

    def append_until(self, until: int) -> Iterator[dict[str, Any]]:
        """Append all that is closed up to a position of the log; yield each append's outcome."""
        previous = self._builder.last
        # Batches that an earlier process wrote and did not commit go first, unchanged: an
        # interrupted append can only be resumed with the same files.
        for batch in [one for one in batches_in(self._place.batches) if one > previous]:
            self._builder.last = batch
            yield self._append(batch, previous)
            previous = batch
        if fresh := self._builder.next(until, self._place.batches):
            yield self._append(fresh, previous)

    def _append(self, batch: Batch, previous: Batch) -> dict[str, Any]:
        began, job = time.monotonic(), self._job
        request = IngestRequest(
            (str((self._place.batches / batch.name).absolute()),),
            job.run,
            self._place.workspace,
            source="reports",
            options=SourceOptions(
                gap_tolerance=job.gap_tolerance, message_window=job.message_window
            ),
            measuring=MeasurementOptions(measures=Measures(job.betweenness)),
            append=True,
            keep=job.keep,
            collection=self._collection,
            keep_going=True,
        )
        run = self._ingest(request).run
        notes = run.manifest.notes
        overlay = run.scan("metrics/overlay", since=Since("interval", previous.closed + 1))
        return {
            "number": batch.number,
            "position": batch.position,
            "closed": batch.closed,
            "needed": self._builder.needed_from,
            "seconds": round(time.monotonic() - began, 3),
            "late": sum(notes.get(name, 0) for name in (LATE, LATE_MESSAGES)),
            "left": [notes[name] for name in LEFT] if INTERVALS in notes else None,
            "control": count_control(run, previous.closed + 1),
            "rows": [row for rows in overlay for row in rows.to_pylist()],
        }

    def settle(self) -> dict[str, Any]:
        """Rebuild the run if some reports came late. Returns the outcome."""
        if self.last_batch() == NONE:  # nothing was ever reported
            release(self._place)
            return {"settled": True, "late": 0}
        run = open_run(self._place.workspace, self._place.run)
        late = sum(run.manifest.notes.get(name, 0) for name in (LATE, LATE_MESSAGES))
        if late:
            self._ingest(settling_request(run))
        return {"settled": True, "late": late}

    def _ingest(self, request: IngestRequest) -> IngestOutcome:
        """Ingest once no other command writes the run, note newly passed damage of the log, and
        remove batches that are not needed any more.
        """
        while True:
            try:
                with writing(request.workspace, request.run, collects=True) as writer:
                    outcome = self._ingest_into(writer, request)
                    manifest = drop_spent(writer, outcome.run.manifest)
                    lost = sum(end - begin for begin, end in gaps_in(self._place.log).items())
                    if lost:
                        manifest = replace(manifest, notes={**manifest.notes, DAMAGED: lost})
                    if manifest != outcome.run.manifest:
                        writer.commit(manifest)
                        outcome = replace(outcome, run=open_run(request.workspace, request.run))
                    remove_spent(self._place.batches, outcome.run)
                    return outcome
            except RunLocked:
                time.sleep(_AGAIN_S)


class _OrderReader:
    """Reads standard input in a thread. Only the last of the waiting lines counts."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=self._read_lines, daemon=True).start()

    def _read_lines(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put(None)

    def next(self) -> dict[str, Any] | None:
        line = self._lines.get()
        with suppress(Empty):
            while line is not None:
                line = self._lines.get_nowait()
        return None if line is None else json.loads(line)


class _AnswerWriter:
    """Writes answers to the collector, from two threads."""

    def __init__(self, pipe: TextIO) -> None:
        self._pipe, self._lock = pipe, Lock()

    def send(self, **answer: Any) -> None:
        """Write a line."""
        with self._lock:
            self._pipe.write(json.dumps(answer, default=str) + "\n")
            self._pipe.flush()

    def beat(self, workspace: Path, ask: Callable[[], object]) -> None:
        """Send a beat every few seconds as long as Java answers `ask`."""
        with suppress(VizpubError, ValueError), vizpub_errors(workspace):
            while True:
                ask()
                self.send(beat=True)
                time.sleep(_BEAT_S)


def main(pipe: int) -> int:
    """Serve until standard input ends. Returns the exit code."""
    job = BatchJob(**json.loads(sys.stdin.readline()))
    orders = _OrderReader()
    # If the collector was killed, nobody reads the answers.
    with suppress(BrokenPipeError), os.fdopen(pipe, "w", encoding="utf-8") as file:
        answers = _AnswerWriter(file)
        try:
            with (
                _wait_for_turn(job.place, answers),
                vizpub_errors(job.place.workspace),
                spark_session(job.place.workspace / SCRATCH, quick=True) as spark,
            ):
                java = spark.sparkContext._jvm
                assert java
                beating = job.place.workspace, java.System.nanoTime
                Thread(target=answers.beat, args=beating, daemon=True).start()
                appending = BatchAppender(partial(ingest_in, spark), job)
                answers.send(ready=True, **asdict(appending.last_batch()))
                while order := orders.next():
                    for done in appending.append_until(order["until"]):
                        for part in in_parts(done):
                            answers.send(**part)
                        trim()
                    if order["ended"]:
                        answers.send(**appending.settle())
        except (VizpubError, OSError) as error:  # such as of a full disk
            answers.send(error=str(error), damaged=isinstance(error, LogDamaged))
            return error.exit_code if isinstance(error, VizpubError) else 1
    return 0


def count_control(run: StoredRun, first: int) -> dict[str, Counter[str]]:
    """Count the control messages sent and received from an interval on, by the kinds of gossipsub:
    reports may have any number of others.
    """
    counts: dict[str, Counter[str]] = {"sent": Counter(), "received": Counter()}
    columns = [f"messages_{way}" for way in counts]
    of_gossipsub, since = pc.field("kind").isin(KINDS), Since("interval", first)
    for rows in run.scan("control", ["kind", *columns], of_gossipsub, since):
        sums = [(column, "sum") for column in columns]
        for kind in pa.Table.from_batches([rows]).group_by("kind").aggregate(sums).to_pylist():
            for way, of_way in counts.items():
                if (count := kind[f"messages_{way}_sum"]) is not None:  # unknown is not 0
                    of_way[kind["kind"]] += count
    return counts


def in_parts(done: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Split the outcome of an append into answers of bounded length: it may have many rows."""
    rows = done["rows"]
    last = max(len(rows) - 1, 0) // _ROWS * _ROWS
    for first in range(0, last, _ROWS):
        yield {"rows": rows[first : first + _ROWS]}
    yield {**done, "rows": rows[last:]}


@contextmanager
def _wait_for_turn(place: CollectionPlace, answers: _AnswerWriter) -> Iterator[None]:
    """Wait until another such process, whose collector was killed, has ended its append."""
    while True:
        with suppress(LockHeld), holding(place.folder / ".batches.lock"):
            yield
            return
        answers.send(beat=True)
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
