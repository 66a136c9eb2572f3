"""Batches have every report of the log once, whatever was killed between them."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from pathlib import Path

import pytest

from tests.support.few import few
from vizpub.collector.log import records as log
from vizpub.collector.log.log import ReportLog
from vizpub.collector.making.batch import NONE, Batch, BatchBuilder, batches_in

END = b'{"last_interval": 999, "ended": true}'
HEADER = {"format": "vizpub.run/1", "run": "lab", "interval_us": 1_000_000}


def content(folder: Path, batch: Batch) -> list[dict[str, object]]:
    text = gzip.decompress((folder / batch.name).read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def reports(folder: Path, batch: Batch) -> list[tuple[int, int]]:
    """Number and interval of each."""
    return [(r["n"], r["interval"]) for r in content(folder, batch) if "n" in r]  # type: ignore[misc]


def line(number: int, interval: int) -> bytes:
    return log.report(interval, json.dumps({"n": number, "interval": interval}).encode())


def some(rng: random.Random, put: dict[int, int], closed: int) -> bytes:
    """Reports of intervals around the closed one, one by one or in a message."""
    found = b""
    for _ in range(rng.choice((1, 1, 2, 5))):
        number, interval = len(put), max(closed + rng.randint(-2, 5), 0)
        put[number] = interval
        found += line(number, interval)
    return log.message(b"{}", found) if rng.random() < 0.5 else found


def state() -> bytes:
    return json.dumps({"header": HEADER}).encode()


def test_batch_name_says_what_it_has() -> None:
    batch = Batch(7, 123_456, 41)
    assert Batch.from_path(f"/somewhere/{batch.name}") == batch
    assert Batch.from_path("/somewhere/17.ndjson.gz") is None


@pytest.mark.parametrize("seed", few(range(8), range(2)))
def test_report_is_in_one_batch_and_not_before_its_interval_is_closed(
    tmp_path: Path, seed: int
) -> None:
    """The builder is made anew now and then, as after a kill, and segments are dropped."""
    print("seed", seed)
    rng = random.Random(seed)
    where, folder = tmp_path / "log", tmp_path / "batches"
    for made in (where, folder):
        made.mkdir()
    put: dict[int, int] = {}
    found: dict[int, int] = {}

    async def work() -> None:
        writer = ReportLog(where, state, segment=400)
        builder, done, closed, position = BatchBuilder(where, NONE), NONE, -1, 0

        def behind(end: int) -> None:
            nonlocal position
            position = end

        for _ in range(60):
            for _ in range(rng.randint(0, 4)):
                await writer.put(some(rng, put, closed), lambda _: None)
            if rng.random() < 0.5:
                closed += rng.randint(1, 2)
                await writer.put(log.closing(closed), behind)
            if rng.random() < 0.3:
                builder = BatchBuilder(where, done)
            if rng.random() < 0.6 and position and (batch := builder.next(position, folder)):
                assert batch.number == done.number + 1
                assert batch.closed == closed
                told = dict(reports(folder, batch))
                assert not told.keys() & found.keys()
                assert max(told.values(), default=-1) <= closed
                found.update(told)
                done = batch
                writer.drop(builder.needed_from)
        await writer.put(log.closing(999), behind)
        await writer.put(log.encode_record(log.END, END), behind)
        batch = builder.next(position, folder)
        assert batch
        found.update(reports(folder, batch))
        assert BatchBuilder(where, batch).next(position, folder) is None
        assert batches_in(folder)[-1] == batch

    asyncio.run(work())
    assert found == put


def test_same_log_makes_the_same_bytes(tmp_path: Path) -> None:
    """A batch that was killed while it was written is written again alike."""
    position = 0

    def behind(end: int) -> None:
        nonlocal position
        position = end

    async def work() -> None:
        writer = ReportLog(tmp_path, state)
        for number in range(9):
            await writer.put(line(number, number % 3), lambda _: None)
        await writer.put(log.closing(2), behind)
        await writer.put(log.encode_record(log.END, END), behind)
        await writer.aclose()

    asyncio.run(work())
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        batch = BatchBuilder(tmp_path, NONE).next(position, tmp_path / name)
        assert batch
        made.append((batch, (tmp_path / name / batch.name).read_bytes()))
        first, *_, last = content(tmp_path / name, batch)
        assert (first["format"], last["format"]) == ("vizpub.run/1", "vizpub.end/1")
    assert made[0] == made[1]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_first_batch_begins_with_the_first_interval_of_most(
    tmp_path: Path, *, restarts: bool, ends: bool
) -> None:
    """What a slow clock reported before it is late: it is in the next batch, or in the last."""

    async def work() -> None:
        writer, positions = ReportLog(tmp_path, state), list[int]()
        records = line(0, 3) + line(1, 4000) + line(2, 4001) + log.closing(4000, 4000)
        await writer.put(
            records + (log.encode_record(log.END, END) if ends else b""),
            positions.append,
        )
        await writer.put(log.closing(4001), positions.append)
        await writer.aclose()
        first = BatchBuilder(tmp_path, NONE)
        batch = first.next(positions[0], tmp_path)
        assert batch
        assert reports(tmp_path, batch) == [(0, 3), (1, 4000)] if ends else [(1, 4000)]
        if not ends:
            then = BatchBuilder(tmp_path, batch) if restarts else first
            more = then.next(positions[1], tmp_path)
            assert more
            assert reports(tmp_path, more) == [(0, 3), (2, 4001)]
            last = BatchBuilder(tmp_path, more)
            assert last.next(positions[1], tmp_path) is None

    asyncio.run(work())
