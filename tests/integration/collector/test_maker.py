"""The process that makes the run is started again where its Java hangs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.collected import PATIENCE_S
from tests.support.collecting import header
from tests.support.processes import children
from tests.support.words import tells
from vizpub.collector.closing import ClosingRules
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.making import maker
from vizpub.collector.making.batches import BatchJob
from vizpub.collector.making.maker import SILENT, RunMaker
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def javas() -> list[psutil.Process]:
    """Below this process, but for those of the tests' own session."""
    return [
        one
        for child in children("vizpub.collector.making.batches")
        for one in child.children(recursive=True)
        if one.name() == "java"
    ]


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.1)


@pytest.mark.long
def test_java_that_hangs_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    place = CollectionPlace(tmp_path, "lab")
    place.make()

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        made = RunMaker(
            BatchJob(str(tmp_path), "lab").to_json(), intake, progress, lambda: None, said.append
        )
        task = asyncio.create_task(made.run())
        await until(lambda: progress.has_spark)
        (hanging,) = javas()
        monkeypatch.setattr(maker, "SILENT_S", 12.0)
        heard = progress.heard
        await until(lambda: progress.heard > heard)  # the next wait is the short one
        hanging.send_signal(signal.SIGSTOP)
        await until(lambda: not progress.alive)
        monkeypatch.setattr(maker, "SILENT_S", PATIENCE_S)
        hanging.kill()
        await until(lambda: progress.has_spark)
        progress.drain()
        await made.end()
        await task
        await intake.log.aclose()

    asyncio.run(work())
    tells(said[0], SILENT)
