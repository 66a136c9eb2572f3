"""The process that makes the run, as far as it comes without Spark: it waits for another one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from collector import maker
from collector.batches import Job
from collector.closing import Rules
from collector.intake import Intake, Limits
from collector.maker import Maker
from collector.place import Place
from collector.progress import Progress
from model.locks import holding
from tests.support.collecting import header
from tests.support.processes import children

Case = tuple[Progress, Callable[[], psutil.Process | None], list[str]]


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.05)


def around(folder: Path, work: Callable[[Case], Awaitable[None]]) -> None:
    """The work beside a process that waits for the lock that this one holds."""
    said: list[str] = []
    place = Place(folder, "lab")
    place.make()

    def child() -> psutil.Process | None:
        return next(iter(children("collector.batches")), None)

    async def whole() -> None:
        intake = Intake(place, header(), Rules(), Limits())
        progress = Progress(intake)
        job = Job(str(folder), "lab").to_json()
        made = Maker(job, intake, progress, lambda: None, said.append)
        task = asyncio.create_task(made.run())
        await until(lambda: progress.heard)
        await work((progress, child, said))
        progress.drain()
        if last := child():
            last.kill()
        await task
        await intake.log.aclose()

    with holding(place.folder / ".batches.lock"):
        asyncio.run(whole())


@pytest.mark.parametrize(
    ("stop", "why"), [(signal.SIGKILL, "exit code -9"), (signal.SIGSTOP, "did not answer")]
)
def test_process_that_is_gone_or_hangs_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: signal.Signals, why: str
) -> None:
    async def work(case: Case) -> None:
        progress, child, said = case
        monkeypatch.setattr(maker, "SILENT_S", 3.0)
        heard = progress.heard
        await until(lambda: progress.heard > heard)  # the next wait is the short one
        before = child()
        assert before
        before.send_signal(stop)
        monkeypatch.setattr(maker, "SILENT_S", 60.0)
        await until(lambda: said)
        assert why in said[0]
        heard = progress.heard
        await until(lambda: progress.heard > heard)
        after = child()
        assert after
        assert after.pid != before.pid

    around(tmp_path, work)


def test_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker.sys, "executable", str(tmp_path / "nowhere"))
    place = Place(tmp_path, "lab")
    place.make()
    said: list[str] = []

    async def work() -> None:
        intake = Intake(place, header(), Rules(), Limits())
        progress = Progress(intake)
        made = Maker(Job(str(tmp_path), "lab").to_json(), intake, progress, list, said.append)
        task = asyncio.create_task(made.run())
        await until(lambda: len(said) == 1)
        task.cancel()
        await intake.log.aclose()

    asyncio.run(work())
    assert "No such file" in said[0]
