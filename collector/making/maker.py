"""The process that makes the run (`vizpub.collector.making.batches`), kept alive beside the intake.

If it ends, it is started again, after increasing times. If its Java does not answer any more, it is
ended first.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from vizpub.collector.intake import Intake
from vizpub.collector.making import child
from vizpub.collector.progress import CollectionProgress
from vizpub.model.errors import cause_of

SILENT = "Java did not answer"
UNREADABLE = "its answer cannot be read"

FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
"""The waits before a process that ended is started again."""
SILENT_S = 120.0
"""The longest silence of a process, which also sends that its Java answers."""
_END_S = 120.0
"""The time in which it must end its append."""


class RunMaker:
    """Starts the process, orders appends, and notes their outcomes in the progress."""

    def __init__(
        self,
        job: Mapping[str, Any],
        intake: Intake,
        progress: CollectionProgress,
        committed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        """`committed` is called when the run has changed."""
        self._job, self._intake, self._progress = job, intake, progress
        self._committed, self._say = committed, say
        self._process: Process | None = None
        self._ordered: tuple[int, bool] | None = None
        self._why: str | None = None
        """The reason for the end of this process: its own, or that it was silent."""

    def order(self) -> None:
        """Order an append if there is something new."""
        order = self._intake.closed_at, self._intake.ended
        if self._progress.alive and order[0] and order != self._ordered:
            self._ordered = order
            self._write({"until": order[0], "ended": order[1]})

    def _write(self, order: Mapping[str, Any]) -> None:
        assert self._process
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def run(self) -> None:
        """Keep the process alive, until the run has ended."""
        pause = FIRST_PAUSE_S
        while not (self._progress.settled or self._progress.draining):
            batches = self._progress.batches
            try:
                why = await self._run_once()
            except OSError as error:  # no memory or no files for another process
                why = cause_of(error)
            self._progress.alive = False
            if self._progress.settled or self._progress.draining:
                return
            pause = FIRST_PAUSE_S if self._progress.batches > batches else 2 * pause
            pause = min(pause, MOST_PAUSE_S)
            self._progress.error = why
            self._say(f"appending stopped ({why}); it is retried in {pause:g} s")
            await asyncio.sleep(pause)

    async def _run_once(self) -> str:
        """Run the process once. Returns the reason for its end."""
        self._why = None
        answers, pipe = os.pipe()
        arguments = (sys.executable, "-m", "vizpub.collector.making.batches", str(pipe))
        try:
            process = self._process = await child.start(
                *arguments, stdout=DEVNULL, pass_fds=(pipe,)
            )
        except OSError:
            os.close(answers)
            raise
        finally:
            os.close(pipe)
        self._write(self._job)
        self._ordered = None
        reader = asyncio.StreamReader(limit=2**26)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb")
        )
        try:
            async with asyncio.timeout(None) as silence:
                while True:
                    silence.reschedule(asyncio.get_running_loop().time() + SILENT_S)
                    if (answer := await self._next_answer(reader)) is None:
                        break
                    self._handle_answer(answer)
        except TimeoutError:
            self._why = f"{SILENT} for {SILENT_S:g} s"
            child.kill(process)
        except Exception:  # a fault of ours: nobody reads its answers any more
            child.kill(process)
            await process.wait()
            raise
        finally:
            transport.close()
        code = await process.wait()
        return self._why or f"exit code {code}"

    async def _next_answer(self, reader: asyncio.StreamReader) -> dict[str, Any] | None:
        """The next answer; null after the last one. A process is killed if it cannot be read."""
        try:
            line = await reader.readline()
            if not line.endswith(b"\n"):
                return None  # the end, or the rest of a line after a kill
            answer: dict[str, Any] = json.loads(line)
        except ValueError:  # too long, or not JSON
            assert self._process
            self._why = UNREADABLE
            child.kill(self._process)
            return None
        return answer

    def _handle_answer(self, answer: dict[str, Any]) -> None:
        progress = self._progress
        progress.heard = time.monotonic()
        if "error" in answer:
            self._why = answer["error"]
            if answer.get("damaged"):
                progress.damaged = self._why
        elif "ready" in answer:
            progress.alive = True
            progress.batches = answer["number"]
            progress.consumed = max(answer["position"], progress.consumed)
            if answer["number"]:  # an earlier collector may have ended before Neo4j had all
                progress.done = answer["closed"]
                self._committed()
        elif "settled" in answer:
            progress.settled = True
            if progress.batches:  # else there is no run
                self._committed()
        elif "number" in answer:
            progress.note_commit(answer)
            self._intake.log.drop(answer["needed"])
            self._committed()
        elif "rows" in answer:
            progress.add_rows(answer["rows"])

    async def end(self) -> None:
        """Let the process end its append, then stop it."""
        if self._process:
            await child.end(self._process, _END_S)
