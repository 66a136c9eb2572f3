"""Keeps the copy in Neo4j up to date with a process: `vizpub neo4j load --follow`.

The process keeps running, because starting Python and connecting would cost more than to load what
an append changes. If it ends, it is started again.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from vizpub.collector.making import child
from vizpub.collector.progress import CollectionProgress
from vizpub.model.errors import cause_of

_FIRST_PAUSE_S, _MOST_PAUSE_S = 1.0, 15.0
"""The waits before a failed load is retried."""
_END_S = 15.0
"""The time in which a running load must end. The next load resumes one that was killed."""
_LINE = 1 << 20
"""Bytes of a message."""


class CopyLoader:
    """Loads what was committed since the last load, and retries if Neo4j is down."""

    def __init__(
        self, command: Sequence[str], progress: CollectionProgress, say: Callable[[str], None]
    ) -> None:
        """Prepare to load; without a `command`, nothing is loaded. It loads at every line of its
        standard input, and writes each outcome to stderr as JSON: `loaded`, or the level `error`.
        """
        self._command, self._progress, self._say = command, progress, say
        self._wake = asyncio.Event()
        self._process: Process | None = None

    def wake(self) -> None:
        """Order a load."""
        self._wake.set()

    async def run(self) -> None:
        """Load when woken, until the run is settled and its load has ended or failed."""
        if not self._command:
            await asyncio.Event().wait()
        pause = _FIRST_PAUSE_S
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                settled, done = self._progress.settled, self._progress.done
                why = await self._load()
                if why and not self._progress.load_error:
                    self._say(f"Neo4j is not up to date ({why}); loading is retried")
                self._progress.load_error = why
                if not why:
                    self._progress.loaded, pause = done, _FIRST_PAUSE_S
                if settled:
                    return
                if why:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _MOST_PAUSE_S)
                    self._wake.set()
        finally:
            process, self._process = self._process, None
            if process:
                await child.end(process, _END_S)

    async def _load(self) -> str | None:
        """Load once. Returns why it failed, or null."""
        try:
            process = self._process = self._process or await child.start(
                *self._command, stdout=DEVNULL, stderr=PIPE, limit=_LINE
            )
        except OSError as error:
            return cause_of(error)
        assert process.stdin
        assert process.stderr
        with suppress(OSError):  # it has ended, as its answer will show
            process.stdin.write(b"\n")
            await process.stdin.drain()
        last = ""
        while line := await child.read_line(process.stderr):
            try:
                message = json.loads(line)
            except ValueError:  # the output of a library
                last = line.decode("utf-8", "replace").strip() or last
                continue
            if isinstance(message, dict) and "loaded" in message:
                return None
            if isinstance(message, dict) and message.get("level") == "error":
                return str(message["message"])
        self._process = None
        return last or f"exit code {await process.wait()}"
