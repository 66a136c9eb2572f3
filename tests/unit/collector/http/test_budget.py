"""What all requests together hold is bounded."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from vizpub.collector.http.budget import ByteBudget, NoRoom


def test_parts_wait_for_each_other_and_never_exceed_the_room() -> None:
    seed = 3
    rng, room, done = random.Random(seed), ByteBudget(100), list[int]()

    async def one(number: int) -> None:
        size = rng.randint(1, 150)
        async with room.of(size) as part:
            assert room.used <= 100
            await asyncio.sleep(0)
            part.shrink(rng.randint(0, size))
            await asyncio.sleep(0)
            done.append(number)

    async def work() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(200)]
        await asyncio.sleep(0)
        for task in tasks[50:60]:  # their clients are gone
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(work())
    assert len(done) == 190, seed
    assert (room.used, room.peak <= 100) == (0, True)


def test_part_that_grows_beyond_the_room_is_refused_and_given_back() -> None:
    room = ByteBudget(10)
    with suppress(NoRoom), room.growing() as part:
        part.add(8)
        with room.growing() as other:
            other.add(1)
            with pytest.raises(NoRoom):
                other.add(2)
        assert room.used == 8
        part.add(3)
    assert room.used == 0
