"""The copy in Neo4j follows the run: `vizpub load --follow`, a process that loads when asked.

It stays, because starting Python and connecting would cost more than what an append changes in
Neo4j. When it ends it is started again.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from vizpub.collector.making import child
from vizpub.collector.progress import CollectionProgress

_FIRST_PAUSE_S, _MOST_PAUSE_S = 1.0, 15.0
"""Before a load that failed is tried again."""
_END_S = 15.0
"""That a load has to end. One that is killed is resumed by the next."""
_LINE = 1 << 20
"""Bytes of a message."""


class CopyLoader:
    """Loads what was committed since the last load; a Neo4j that is down is tried again."""

    def __init__(
        self, command: Sequence[str], progress: CollectionProgress, say: Callable[[str], None]
    ) -> None:
        """Without a `command`, nothing is loaded. It loads at every line of its standard input, and
        writes the outcome of each load to stderr as JSON: `loaded`, or the level `error`.
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
        try:
            await self._load_again()
        finally:
            await self._end()

    async def _load_again(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            settled, done = self._progress.settled, self._progress.done
            why = await self._load()
            if why and not self._progress.load_error:
                self._say(f"Neo4j is not up to date ({why}); it is tried again, later each time")
            self._progress.load_error = why
            if not why:
                self._progress.loaded, pause = done, _FIRST_PAUSE_S
            if settled:
                return
            if why:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MOST_PAUSE_S)
                self._wake.set()

    async def _load(self) -> str | None:
        """Load once. Returns why it failed, or null."""
        try:
            process = self._process or await self._start()
        except OSError as error:
            return error.strerror or str(error)
        assert process.stdin
        assert process.stderr
        with suppress(OSError):  # it has ended, which its answer says
            process.stdin.write(b"\n")
            await process.stdin.drain()
        last = ""
        while line := await process.stderr.readline():
            try:
                message = json.loads(line)
            except ValueError:  # what a library prints is no message
                last = line.decode("utf-8", "replace").strip() or last
                continue
            if isinstance(message, dict) and "loaded" in message:
                return None
            if isinstance(message, dict) and message.get("level") == "error":
                return str(message["message"])
        self._process = None
        return last or f"exit code {await process.wait()}"

    async def _start(self) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=child.environment(),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            limit=_LINE,
            start_new_session=True,
        )
        return self._process

    async def _end(self) -> None:
        """Let the running load end."""
        process, self._process = self._process, None
        if process:
            await child.end(process, _END_S)
