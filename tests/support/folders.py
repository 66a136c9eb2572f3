"""A watched folder of a collection, and what was taken from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.support.collecting import LATER, header
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.folder import FolderInput
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress


def report(peer: str, interval: int) -> str:
    told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, "neighbors": []}
    return json.dumps(told) + "\n"


class Case:
    """A watched folder, and what was taken from it."""

    def __init__(self, folder: Path) -> None:
        self.watched, self.place = folder / "watched", CollectionPlace(folder, "lab")
        self.watched.mkdir()
        self.place.make()
        self.said: list[str] = []
        self.began = LATER
        self.limits = IntakeLimits(reserve=1)
        self.traces = 0
        """Times that a trace was found."""

    def trace(self) -> None:
        self.traces += 1

    def run(self, work: Callable[[Intake, FolderInput], Coroutine[Any, Any, None]]) -> None:
        async def around() -> None:
            intake = Intake(self.place, header(self.began), ClosingRules(), self.limits)
            web = HttpInterface(intake, CollectionProgress(intake))
            await work(intake, FolderInput(self.watched, intake, self.said.append, web, self.trace))
            await intake.log.aclose()

        asyncio.run(around())

    def taken(self) -> list[tuple[str, int]]:
        records = [r.line for r in log.read_records(self.place.log) if r.kind == log.REPORT]
        return [(r["peer"], r["interval"]) for r in map(json.loads, records)]


async def to_the_end(folder: FolderInput) -> None:
    while await folder.turn():
        pass
