"""The copy in Neo4j follows the run by `vizpub load`, one command after the other."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence

from collector.progress import Progress

_FIRST_PAUSE_S, _MOST_PAUSE_S = 1.0, 15.0
"""Before a load that failed is tried again."""


class Loading:
    """Loads what was committed since the last load; a Neo4j that is down is tried again."""

    def __init__(
        self, command: Sequence[str], progress: Progress, say: Callable[[str], None]
    ) -> None:
        """No command: nothing is loaded."""
        self._command, self._progress, self._say = command, progress, say
        self._wanted = asyncio.Event()

    def wake(self) -> None:
        """There is something to load."""
        self._wanted.set()

    async def run(self) -> None:
        """Until the run is settled and was loaded, or could not be."""
        pause = _FIRST_PAUSE_S
        while self._command:
            await self._wanted.wait()
            self._wanted.clear()
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
                self._wanted.set()
        await asyncio.Event().wait()

    async def _load(self) -> str | None:
        """Returns why it failed; null = it did not."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, start_new_session=True
            )
        except OSError as error:
            return error.strerror or str(error)
        _, told = await process.communicate()
        if process.returncode == 0:
            return None
        lines = told.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {process.returncode}"
