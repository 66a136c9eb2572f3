"""A watched folder of a collection, and what was taken from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.support.collecting import LATER, header
from vizpub.collector.closing import Rules
from vizpub.collector.http.interface import Web
from vizpub.collector.inputs.folder import Folder
from vizpub.collector.intake import Intake, Limits
from vizpub.collector.log import log
from vizpub.collector.place import Place
from vizpub.collector.progress import Progress


def report(peer: str, interval: int) -> str:
    told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, "neighbors": []}
    return json.dumps(told) + "\n"


class Case:
    """A watched folder, and what was taken from it."""

    def __init__(self, folder: Path) -> None:
        self.watched, self.place = folder / "watched", Place(folder, "lab")
        self.watched.mkdir()
        self.place.make()
        self.said: list[str] = []
        self.began = LATER
        self.limits = Limits(reserve=1)
        self.traces = 0
        """Times that a trace was found."""

    def trace(self) -> None:
        self.traces += 1

    def run(self, work: Callable[[Intake, Folder], Coroutine[Any, Any, None]]) -> None:
        async def around() -> None:
            intake = Intake(self.place, header(self.began), Rules(), self.limits)
            web = Web(intake, Progress(intake))
            await work(intake, Folder(self.watched, intake, self.said.append, web, self.trace))
            await intake.log.aclose()

        asyncio.run(around())

    def taken(self) -> list[tuple[str, int]]:
        records = [r.line for r in log.read(self.place.log) if r.kind == log.REPORT]
        return [(r["peer"], r["interval"]) for r in map(json.loads, records)]


async def to_the_end(folder: Folder) -> None:
    while await folder.turn():
        pass
