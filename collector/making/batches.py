"""The process that makes the run: `python -m vizpub.collector.making.batches`.

It gets its `Job` and then how far the log is closed, as lines of JSON on standard input, appends
what is closed, and tells what it did in lines of JSON on another pipe, and every few seconds that
its Java answers. It has one Spark session. It
keeps no state of its own: the run's manifest says what is done (`vizpub.collector.making.batch`),
so it may be killed at any point, and the next one goes on. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TextIO

from vizpub.analytics.options import Measures
from vizpub.collector.log.records import LogDamaged, gaps_in
from vizpub.collector.making.batch import NONE, Batch, Builder, batches_in, consumed
from vizpub.collector.making.child import trim
from vizpub.collector.place import Place
from vizpub.collector.reservation import release
from vizpub.ingest.measures.choice import Measuring
from vizpub.ingest.pipeline import IngestOutcome, IngestRequest, ingest_in, settling
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.spark.session import spark_session, vizpub_errors
from vizpub.machine.locks import Held, holding
from vizpub.model.errors import RunLocked, StoreBroken, VizpubError
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.manifest import LATE, LATE_MESSAGES, Since
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import RunWriter, writing

Ingest = Callable[[RunWriter, IngestRequest], IngestOutcome]
"""`ingest_in` of a session."""
_AGAIN_S = 0.5
"""Between two looks at a lock that another process has."""
_BEAT_S = 5.0
_ROWS = 512
"""In one message."""
DAMAGED = "bytes of the collector's log that were damaged and are left out"
"""A note of the run."""


@dataclass(frozen=True)
class Job:
    """What the process gets first."""

    workspace: str
    run: str
    gap_tolerance: int = 0
    message_window: int | None = None
    betweenness: bool = True

    @property
    def place(self) -> Place:
        """Of the collection."""
        return Place(Path(self.workspace), self.run)

    def to_json(self) -> dict[str, Any]:
        """For the other process."""
        return asdict(self)


class Appending:
    """Appends batch after batch to the run."""

    def __init__(self, ingest: Ingest, job: Job) -> None:
        self._ingest_into, self._job, self._place = ingest, job, job.place
        self._collection = self._place.identity
        self._builder = Builder(self._place.log, self.consumed())

    def consumed(self) -> Batch:
        """The last batch that the run has. Raises: StoreBroken."""
        run = self._place.run
        try:
            return consumed(self._place.workspace / "runs" / run)
        except StoreBroken as error:
            again = f"vizpub runs remove {run}, then vizpub collect {run} --revive"
            raise StoreBroken(error.path, error.why, f"pause; to make it again: {again}") from error

    def to(self, until: int) -> Iterator[dict[str, Any]]:
        """Append all that is closed up to a position of the log; yields what each append did."""
        after = self._builder.last
        # What a process before this one wrote and did not commit goes first, as it was written: an
        # append that was interrupted goes on only with the same files.
        for batch in [one for one in batches_in(self._place.batches) if one > after]:
            self._builder.last = batch
            yield self._append(batch, after)
            after = batch
        if fresh := self._builder.next(until, self._place.batches):
            yield self._append(fresh, after)

    def _append(self, batch: Batch, after: Batch) -> dict[str, Any]:
        began = time.monotonic()
        run = self._ingest(self._request(batch)).run
        return {
            "number": batch.number,
            "position": batch.position,
            "closed": batch.closed,
            "needed": self._builder.needed,
            "seconds": round(time.monotonic() - began, 3),
            "late": sum(run.manifest.notes.get(name, 0) for name in (LATE, LATE_MESSAGES)),
            "rows": _overlay_rows(run, after.closed),
        }

    def settle(self) -> dict[str, Any]:
        """Make the run anew where something came late."""
        if self.consumed() == NONE:  # nothing was ever reported
            release(self._place)
            return {"settled": True, "late": 0}
        run = open_run(self._place.workspace, self._place.run)
        late = sum(run.manifest.notes.get(name, 0) for name in (LATE, LATE_MESSAGES))
        if late:
            self._ingest(settling(run))
        return {"settled": True, "late": late}

    def _request(self, batch: Batch) -> IngestRequest:
        job = self._job
        return IngestRequest(
            (str((self._place.batches / batch.name).absolute()),),
            job.run,
            self._place.workspace,
            source="reports",
            options=SourceOptions(
                gap_tolerance=job.gap_tolerance, message_window=job.message_window
            ),
            measuring=Measuring(measures=Measures(job.betweenness)),
            append=True,
            collection=self._collection,
            keep_going=True,
        )

    def _ingest(self, request: IngestRequest) -> IngestOutcome:
        """Waits where another command writes the run."""
        while True:
            try:
                with writing(request.workspace, request.run, collects=True) as writer:
                    return self._noted(writer, self._ingest_into(writer, request))
            except RunLocked:
                time.sleep(_AGAIN_S)

    def _noted(self, writer: RunWriter, done: IngestOutcome) -> IngestOutcome:
        """The run says what damage of the log is left out."""
        manifest = done.run.manifest
        lost = sum(end - begin for begin, end in gaps_in(self._place.log).items())
        if not lost or manifest.notes.get(DAMAGED) == lost:
            return done
        writer.commit(replace(manifest, notes={**manifest.notes, DAMAGED: lost}))
        return replace(done, run=open_run(self._place.workspace, self._job.run))


def _overlay_rows(run: StoredRun, after: int) -> list[dict[str, Any]]:
    """The overlay's metrics of the intervals behind one."""
    since = Since("interval", after + 1)
    return [row for rows in run.scan("metrics/overlay", since=since) for row in rows.to_pylist()]


class _Orders:
    """The lines of standard input, of which only the last counts; null at the end."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put(None)

    def next(self) -> dict[str, Any] | None:
        line = self._lines.get()
        with suppress(Empty):
            while line is not None:
                line = self._lines.get_nowait()
        return None if line is None else json.loads(line)


class _Answers:
    """What is told, from two threads."""

    def __init__(self, pipe: TextIO) -> None:
        self._pipe, self._lock = pipe, Lock()

    def tell(self, **what: Any) -> None:
        """A line."""
        with self._lock:
            self._pipe.write(json.dumps(what, default=str) + "\n")
            self._pipe.flush()

    def beat(self, workspace: Path, ask: Callable[[], object]) -> None:
        """Tell again and again that Java answers `ask`; where it does not, nothing is told."""
        with suppress(VizpubError, ValueError), vizpub_errors(workspace):
            while True:
                ask()
                self.tell(beat=True)
                time.sleep(_BEAT_S)


def main(answers: int) -> int:
    """Serve until standard input ends. Returns the exit code."""
    job = Job(**json.loads(sys.stdin.readline()))
    orders = _Orders()
    # Where the collector was killed, nobody reads what is told.
    with suppress(BrokenPipeError), os.fdopen(answers, "w", encoding="utf-8") as pipe:
        told = _Answers(pipe)
        try:
            with (
                _alone(job.place, told),
                vizpub_errors(job.place.workspace),
                # It stays, so the full compiler of Java pays, from about the tenth append on.
                spark_session(job.place.workspace / SCRATCH) as spark,
            ):
                java = spark.sparkContext._jvm
                assert java
                beating = job.place.workspace, java.System.nanoTime
                Thread(target=told.beat, args=beating, daemon=True).start()
                appending = Appending(partial(ingest_in, spark), job)
                told.tell(ready=True, **asdict(appending.consumed()))
                while order := orders.next():
                    for done in appending.to(order["until"]):
                        for part in in_parts(done):
                            told.tell(**part)
                        trim()
                    if order["ended"]:
                        told.tell(**appending.settle())
        except (VizpubError, OSError) as error:  # such as a disk that is full
            told.tell(error=str(error), damaged=isinstance(error, LogDamaged))
            return error.exit_code if isinstance(error, VizpubError) else 1
    return 0


def in_parts(done: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What an append did as messages of bounded length: a history may have any number of rows."""
    rows = done["rows"]
    last = max(len(rows) - 1, 0) // _ROWS * _ROWS
    for first in range(0, last, _ROWS):
        yield {"rows": rows[first : first + _ROWS]}
    yield {**done, "rows": rows[last:]}


@contextmanager
def _alone(place: Place, told: _Answers) -> Iterator[None]:
    """Another one, whose collector was killed, ends its append first."""
    while True:
        with suppress(Held), holding(place.folder / ".batches.lock"):
            yield
            return
        told.tell(beat=True)
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
