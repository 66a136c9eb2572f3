"""The process that makes the run, as far as it comes without Spark: it waits for another one."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.collecting import header
from tests.support.processes import children
from tests.support.words import tells
from vizpub.collector.closing import ClosingRules
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.making import maker
from vizpub.collector.making.batches import BatchJob, in_parts
from vizpub.collector.making.maker import SILENT, UNREADABLE, RunMaker
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.machine.locks import holding

Case = tuple[CollectionProgress, Callable[[], psutil.Process | None], list[str]]


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.05)


def around(folder: Path, work: Callable[[Case], Awaitable[None]]) -> None:
    """The work beside a process that waits for the lock that this one holds."""
    said: list[str] = []
    place = CollectionPlace(folder, "lab")
    place.make()

    def child() -> psutil.Process | None:
        return next(iter(children("vizpub.collector.making.batches")), None)

    async def whole() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        job = BatchJob(str(folder), "lab").to_json()
        made = RunMaker(job, intake, progress, lambda: None, said.append)
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


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "FIRST_PAUSE_S", 0.05)


@pytest.mark.long
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


@pytest.mark.long
def test_end_without_a_reason_is_not_told_with_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is started again after both ends."""

    async def work(case: Case) -> None:
        progress, child, said = case
        monkeypatch.setattr(maker, "SILENT_S", 3.0)
        heard = progress.heard
        await until(lambda: progress.heard > heard)
        hanging = child()
        assert hanging
        hanging.suspend()
        monkeypatch.setattr(maker, "SILENT_S", 60.0)
        await until(lambda: said)
        heard = progress.heard
        await until(lambda: progress.heard > heard)
        killed = child()
        assert killed
        assert killed.pid != hanging.pid
        killed.kill()
        await until(lambda: len(said) == 2)
        tells(said[0], SILENT)
        assert "exit code -9" in said[1]
        assert progress.error == "exit code -9"
        heard = progress.heard
        await until(lambda: progress.heard > heard)

    around(tmp_path, work)


def test_reason_of_the_file_system_is_told(tmp_path: Path) -> None:
    """The process cannot make its lock, as on a disk that is full."""
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    (place.folder / ".batches.lock").mkdir()

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        made = RunMaker(
            BatchJob(str(tmp_path), "lab").to_json(), intake, progress, lambda: None, said.append
        )
        task = asyncio.create_task(made.run())
        await until(lambda: said)
        task.cancel()
        await intake.log.aclose()

    asyncio.run(work())
    assert "Is a directory" in said[0]


@pytest.mark.parametrize("has_ended", [False, True])
def test_error_while_an_answer_is_handled_is_no_unreadable_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ended: bool
) -> None:
    """It is a fault of this process, which another process would not mend."""
    python = tmp_path / "python"
    more = "" if has_ended else "exec sleep 600"
    python.write_text(f"#!/bin/bash\necho '{{\"settled\": true}}' >&$3\n{more}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    read = RunMaker._next_answer

    async def read_then_wait(maker: RunMaker, reader: asyncio.StreamReader) -> Any:
        answer = await read(maker, reader)
        if has_ended:
            assert maker._process
            await maker._process.wait()
        return answer

    monkeypatch.setattr(RunMaker, "_next_answer", read_then_wait)

    def broken() -> None:
        raise ValueError("our own fault")

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        progress.batches = 1
        made = RunMaker({}, intake, progress, broken, print)
        with pytest.raises(ValueError, match="our own fault"):
            await made._run_once()
        await intake.log.aclose()

    asyncio.run(work())


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1024, 3000])
def test_rows_of_an_append_come_in_messages_of_bounded_length(tmp_path: Path, count: int) -> None:
    rows = [{"interval": interval, "publications": 2} for interval in range(count)]
    done = {"number": 7, "position": 9, "closed": count, "seconds": 1.0, "late": 0, "needed": 0}
    done["left"] = [0, 0, 0]
    done["control"] = {"sent": {"ihave": 3}, "received": {}}
    parts = list(in_parts({**done, "rows": rows}))
    assert max(len(part["rows"]) for part in parts) <= 512
    place = CollectionPlace(tmp_path, "lab")
    place.make()

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        made = RunMaker({}, intake, progress, lambda: None, print)
        for part in parts:
            assert progress.batches == 0
            made._handle_answer(part)
        assert progress.batches == 7
        assert list(progress.rows) == rows[-512:]
        assert progress.counted.get("publications", 0) == 2 * count
        assert progress.control["sent"] == {"ihave": 3}
        await intake.log.aclose()

    asyncio.run(work())


@pytest.mark.parametrize(("number", "closed", "done"), [(7, 41, 41), (0, -1, None)])
def test_progress_has_the_run_as_soon_as_the_process_is_ready(
    tmp_path: Path, number: int, closed: int, done: int | None
) -> None:
    place, loads = CollectionPlace(tmp_path, "lab"), list[int]()
    place.make()

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        made = RunMaker({}, intake, progress, lambda: loads.append(1), print)
        made._handle_answer({"ready": True, "number": number, "position": 9, "closed": closed})
        assert progress.summary()["in_run"] == done
        assert len(loads) == (done is not None)
        await intake.log.aclose()

    asyncio.run(work())


def test_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker.sys, "executable", str(tmp_path / "nowhere"))
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    said: list[str] = []

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        made = RunMaker(
            BatchJob(str(tmp_path), "lab").to_json(), intake, progress, list, said.append
        )
        task = asyncio.create_task(made.run())
        await until(lambda: len(said) == 1)
        task.cancel()
        await intake.log.aclose()

    asyncio.run(work())
    assert "No such file" in said[0]


def test_process_with_an_answer_that_cannot_be_read_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"""#!/bin/sh
{sys.executable} -c "import os; os.write($3, b'{{}}\\n{{nonsense\\n')"
rm "$0"
exec sleep 600
"""
    )
    python.chmod(0o755)

    async def work(case: Case) -> None:
        *_, said = case
        await until(lambda: said)
        tells(said[0], UNREADABLE)

    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        around(tmp_path, work)
