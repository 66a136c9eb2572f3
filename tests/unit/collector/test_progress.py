"""What readers of events get while intervals close."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

from tests.support.collecting import header
from vizpub.collector.closing import ClosingRules
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress


def test_status_comes_while_intervals_close_and_none_is_in_the_run(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()

    async def work() -> list[str]:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        progress = CollectionProgress(intake)

        async def close() -> None:
            for interval in count():
                progress.note_closed(interval)
                await asyncio.sleep(0.01)

        closing = asyncio.create_task(close())
        events = progress.events(None, status_s=0.2)
        async with asyncio.timeout(20):
            found = [(await anext(events))["event"] for _ in range(3)]
        closing.cancel()
        await events.aclose()
        await intake.log.aclose()
        return found

    assert asyncio.run(work()) == ["status"] * 3
