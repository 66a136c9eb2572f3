"""The process that loads stays, whatever becomes of a load, and is started again when it ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.collecting import header
from tests.support.processes import children
from tests.support.words import tells, unknown
from vizpub.collector.closing import ClosingRules
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.making import loading
from vizpub.collector.making.loading import CopyLoader
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.05)


def test_process_that_loads_stays_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(loading, "_MOST_PAUSE_S", 0.1)
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    vizpub = [sys.executable, "-m", "vizpub.cli", "--log-format=json", "--workspace", str(tmp_path)]

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        loads = CopyLoader([*vizpub, "neo4j", "load", "lab", "--follow"], progress, said.append)
        task = asyncio.create_task(loads.run())

        async def failed_again() -> str:
            progress.load_error = None
            await until(lambda: progress.load_error)
            return str(progress.load_error)

        loads.wake()
        assert "lab" in await failed_again()  # there is no such run
        (first,) = children("--follow")
        assert "lab" in await failed_again()
        assert children("--follow") == [first]
        first.kill()
        await until(lambda: progress.load_error == "exit code -9")
        assert "lab" in await failed_again()
        assert children("--follow") != [first]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not children("--follow")
        await intake.log.aclose()

    asyncio.run(work())
    tells(said[0], unknown("run", "lab"))


TELLING = """
import json, sys
sys.stdin.readline()
print(json.dumps({"level": "info", "message": "grow messages"}), file=sys.stderr)
sys.exit(7)
"""


LONG = """
import json, sys
sys.stdin.readline()
print(3 * 2**20 * "x", file=sys.stderr)
print(json.dumps({"level": "error", "message": "no room"}), file=sys.stderr)
"""


@pytest.mark.parametrize(("code", "why"), [(TELLING, "exit code 7"), (LONG, "no room")])
def test_reason_is_that_of_the_error_or_the_exit(tmp_path: Path, code: str, why: str) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()

    async def work() -> None:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)
        loads = CopyLoader([sys.executable, "-c", code], progress, lambda _: None)
        task = asyncio.create_task(loads.run())
        loads.wake()
        await until(lambda: progress.load_error == why)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await intake.log.aclose()

    asyncio.run(work())
