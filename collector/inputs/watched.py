"""Traces of gossipsub in the watched folder: a process reports them, as `vizpub live report` does.

Decoding traces takes a processor, which the intake needs for other reports. The process reads all
traces from their beginnings and leaves out closed intervals, so it may end at any time; it ends
with the collector.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

from vizpub.collector.http.client import collector_of
from vizpub.collector.http.tokens import REPORT
from vizpub.collector.making import child
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import VizpubError, cause_of

_PAUSE_S = 15.0
"""The wait before a process that has ended is started again."""


class WatchedTraces:
    """Reports the traces below a folder once it is woken."""

    def __init__(self, folder: Path, place: CollectionPlace, say: Callable[[str], None]) -> None:
        self._folder, self._place, self._say = folder, place, say
        self._reasons: set[str] = set()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Begin to report, because there is a trace."""
        self._wake.set()

    async def follow(self) -> None:
        """Keep a reporting process running until cancelled."""
        await self._wake.wait()
        while True:
            why = await self._run_process()
            if why not in self._reasons:
                self._reasons.add(why)
                self._say(f"the traces in {self._folder} are not reported: {why}")
            await asyncio.sleep(_PAUSE_S)

    async def _run_process(self) -> str:
        """Run the process once. Returns why it ended."""
        words = [self._place.workspace.absolute(), self._place.run, self._folder.absolute()]
        try:
            process = await child.start(
                *(sys.executable, "-m", "vizpub.collector.inputs.watched", *map(str, words)),
                stdout=PIPE,
                stderr=DEVNULL,
            )
        except OSError as error:  # no memory or no files for another process
            return cause_of(error)
        assert process.stdout
        last = ""
        try:
            while line := await child.read_line(process.stdout):
                if last:
                    self._say(last)
                last = line.decode("utf-8", "replace").strip()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        return last or f"exit code {process.returncode}"


def main(workspace: str, run: str, folder: str) -> int:
    """Report until standard input ends. Returns the exit code."""
    # It imports Spark, which the intake never does.
    from vizpub.collector.inputs.trace_reporter import FollowOptions, TraceReporter

    def end_with_input() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    Thread(target=end_with_input, daemon=True).start()
    options, say = FollowOptions(follow=True), partial(print, flush=True)
    try:
        collector = collector_of(CollectionPlace(Path(workspace), run), kind=REPORT)
        TraceReporter([Path(folder)], [collector], options, say).run()
    except VizpubError as error:
        say(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
