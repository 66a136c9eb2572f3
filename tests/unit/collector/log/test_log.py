"""The log keeps what it acknowledged: through cuts, failed syncs and kills."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from vizpub.collector.log import log as log_module
from vizpub.collector.log import records as log
from vizpub.collector.log.log import LogFailed, ReportLog
from vizpub.collector.log.records import Record, proof
from vizpub.collector.log.records import whole_records as whole_of
from vizpub.model.errors import StoreBroken
from vizpub.runstore import durable


def state() -> bytes:
    return b"{}"


def done(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def lines(directory: Path, since: int = 0, until: int | None = None) -> list[bytes]:
    return [r.line for r in log.read_records(directory, since, until) if r.kind == log.REPORT]


async def filled(directory: Path, count: int, segment: int = log_module.SEGMENT) -> list[int]:
    """Reports of so many intervals, each put alone. Returns the positions behind them."""
    found: list[int] = []
    writer = ReportLog(directory, state, segment)
    for number in range(count):
        await writer.put(log.report(number, b"report %d" % number), found.append)
    await writer.aclose()
    return found


def test_log_gives_back_what_was_put_in_order(tmp_path: Path) -> None:
    ends = asyncio.run(filled(tmp_path, 50, segment=200))
    assert lines(tmp_path) == [b"report %d" % number for number in range(50)]
    assert [r.interval for r in log.read_records(tmp_path) if r.kind == log.REPORT] == list(
        range(50)
    )
    for place in (0, 7, 49):
        until = ends[place]
        assert lines(tmp_path, 0, until) == [b"report %d" % n for n in range(place + 1)]
        assert lines(tmp_path, until) == [b"report %d" % n for n in range(place + 1, 50)]


def test_segments_are_sealed_but_the_last(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path, 50, segment=200))
    kinds = [path.suffix for _, path in log.segments(tmp_path)]
    assert len(kinds) > 5
    assert set(kinds[:-1]) == {".gz"}
    assert kinds[-1] == ".log"


def test_many_records_at_once_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = []
    really = log_module.sync
    monkeypatch.setattr(log_module, "sync", lambda handle: (syncs.append(1), really(handle)))

    async def work() -> None:
        writer = ReportLog(tmp_path, state)
        order: list[int] = []
        puts = [writer.put(log.report(n, b"x"), order.append) for n in range(200)]
        await asyncio.gather(*puts)
        assert order == sorted(set(order))
        await writer.aclose()

    done(work)
    assert len(lines(tmp_path)) == 200
    assert len(syncs) < 20


def test_torn_tail_is_left_out_and_stays_wherever_it_ends(tmp_path: Path) -> None:
    ends = asyncio.run(_made(tmp_path / "whole"))
    whole = (log.segments(tmp_path / "whole")[0][1]).read_bytes()
    for size in range(len(whole) + 1):
        torn = tmp_path / f"{size}"
        torn.mkdir()
        (torn / f"{0:020}.log").write_bytes(whole[:size])
        there = [end for end in ends if end <= size]

        async def work(torn: Path = torn, there: list[int] = there) -> None:
            writer = ReportLog(torn, state)
            assert writer.end <= size  # noqa: B023
            assert not there or writer.end >= there[-1]
            await writer.put(log.report(99, b"after"), lambda _: None)
            await writer.aclose()

        done(work)
        assert lines(torn) == [*(b"report %d" % n for n in range(len(there))), b"after"]
        kept = [path.read_bytes() for path in torn.glob(f"{0:020}.log*")]
        assert not size or whole[:size] in kept


async def _made(directory: Path) -> list[int]:
    directory.mkdir()
    return await filled(directory, 4)


def test_any_changed_byte_ends_the_reading_before_it(tmp_path: Path) -> None:
    ends = asyncio.run(_made(tmp_path / "log"))
    path = log.segments(tmp_path / "log")[0][1]
    whole, rng = path.read_bytes(), random.Random(4)
    for place in rng.sample(range(len(whole)), 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        kept = sum(end <= place for end in ends)
        assert lines(tmp_path / "log") == [b"report %d" % n for n in range(kept)], place


def test_lost_acknowledged_records_are_an_error(tmp_path: Path) -> None:
    ends = asyncio.run(filled(tmp_path, 5))
    path = log.segments(tmp_path)[0][1]
    path.write_bytes(path.read_bytes()[: ends[-1] - 3])
    with pytest.raises(StoreBroken, match="acknowledged"):
        lines(tmp_path, 0, ends[-1])


def test_damage_before_the_last_segment_is_an_error(tmp_path: Path) -> None:
    """There no kill can have left half a record: all of it was acknowledged."""
    for _ in range(2):  # a segment each
        asyncio.run(filled(tmp_path, 5))
    path = log.segments(tmp_path)[0][1]
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 0x40]) + whole[101:])
    with pytest.raises(StoreBroken, match="acknowledged"):
        lines(tmp_path)
    with pytest.raises(StoreBroken, match="acknowledged"):
        ReportLog(tmp_path, state)


def test_records_of_a_failed_sync_are_no_part_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk that failed it does not let it be cut either."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async def work() -> None:
        writer, told = ReportLog(tmp_path, state), list[int]()
        await writer.put(log.report(0, b"before"), told.append)
        with monkeypatch.context() as patched:
            patched.setattr(log_module, "sync", fail)
            patched.setattr(log_module.os, "ftruncate", fail)
            with pytest.raises(LogFailed):
                await writer.put(log.report(1, b"lost"), told.append)
        await writer.put(log.report(2, b"after"), told.append)
        await writer.aclose()

    done(work)
    assert lines(tmp_path) == [b"before", b"after"]


@pytest.mark.parametrize("failing", ["write", "sync"])
def test_failed_sync_acknowledges_nothing_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    broken = False

    def fail(really: Callable[..., None]) -> Callable[..., None]:
        def perhaps(*given: Any) -> None:
            if broken and failing == "write":
                really(given[0], bytes(given[1])[:9])  # a part of it is on disk
            if broken:
                raise OSError(errno.EIO, "Input/output error")
            really(*given)

        return perhaps

    monkeypatch.setattr(
        *((log_module, "sync", fail(log_module.sync)) if failing == "sync" else _write(fail))
    )

    async def work() -> None:
        nonlocal broken
        writer = ReportLog(tmp_path, state)
        told: list[int] = []
        await writer.put(log.report(0, b"before"), told.append)
        broken = True
        for _ in range(2):
            with pytest.raises(LogFailed, match="Input/output error"):
                await writer.put(log.report(1, b"lost"), told.append)
        broken = False
        await writer.put(log.report(2, b"after"), told.append)
        assert len(told) == 2
        assert writer.failures == 2
        assert lines(tmp_path, 0, told[-1]) == [b"before", b"after"]
        await writer.aclose()

    done(work)
    assert lines(tmp_path) == [b"before", b"after"]


def test_error_of_any_kind_is_an_answer_and_the_next_write_goes_on(tmp_path: Path) -> None:
    broken = True

    def state_or_error() -> bytes:
        if broken:
            raise MemoryError("no room for the state")
        return state()

    async def work() -> None:
        nonlocal broken
        writer = ReportLog(tmp_path, state_or_error)
        with pytest.raises(LogFailed, match="no room for the state"):
            await asyncio.wait_for(writer.put(log.report(1, b"lost"), lambda _: None), 60)
        broken = False
        await writer.put(log.report(2, b"after"), lambda _: None)
        await writer.aclose()

    done(work)
    assert lines(tmp_path) == [b"after"]


@pytest.mark.parametrize("failing", ["sync_directory", "rename"])
def test_segment_that_cannot_be_opened_at_once_begins_with_the_state_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Without it, nobody could go on once the segments before it are dropped."""
    really, broken = getattr(durable, failing), False

    def perhaps(*given: Any) -> None:
        if broken:
            raise OSError(errno.EIO, "Input/output error")
        really(*given)

    monkeypatch.setattr(durable, failing, perhaps)

    async def work() -> None:
        nonlocal broken
        writer = ReportLog(tmp_path, state, segment=100)
        for number in range(20):
            ends: list[int] = []
            broken = True
            with suppress(LogFailed):
                await writer.put(log.report(number, b"report"), ends.append)
            broken = False
            if not ends:
                await writer.put(log.report(number, b"report"), ends.append)
        await writer.aclose()

    done(work)
    assert [r.interval for r in log.read_records(tmp_path) if r.kind == log.REPORT] == list(
        range(20)
    )
    starts = [start for start, _ in log.segments(tmp_path)]
    assert len(starts) > 2
    assert all(next(log.read_records(tmp_path, start)).kind == log.STATE for start in starts)


def _write(fail: Callable[..., Any]) -> tuple[Any, str, Any]:
    return log_module, "_write_all", fail(log_module._write_all)


def test_segments_that_are_not_needed_are_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        writer = ReportLog(tmp_path, state, segment=100)
        ends: list[int] = []
        for number in range(40):
            await writer.put(log.report(number, b"r"), ends.append)
        before = len(log.segments(tmp_path))
        writer.drop(ends[19])
        assert 1 < len(log.segments(tmp_path)) < before
        found = [r.interval for r in log.read_records(tmp_path, ends[19]) if r.kind == log.REPORT]
        assert found == list(range(20, 40))
        await writer.aclose()

    done(work)


def test_log_that_was_sealed_halfway_is_whole(tmp_path: Path) -> None:
    """A kill leaves the plain file beside the sealed one, or half of a sealed one."""
    asyncio.run(filled(tmp_path, 8, segment=10**6))
    path = log.segments(tmp_path)[0][1]
    plain = path.read_bytes()
    log_module.seal(path)
    path.write_bytes(plain)
    path.with_name(f".{path.name}.gz").write_bytes(b"half")
    asyncio.run(filled(tmp_path, 1))
    assert lines(tmp_path) == [*(b"report %d" % n for n in range(8)), b"report 0"]
    assert not list(tmp_path.glob(".*"))


def test_segment_begins_with_the_state_before_it(tmp_path: Path) -> None:
    """Also where several are put at once: the state has all that lies before."""
    count = 0

    def noted(_: int) -> None:
        nonlocal count
        count += 1

    async def work() -> None:
        writer = ReportLog(tmp_path, lambda: b"%d" % count, segment=60)
        for _ in range(20):
            await asyncio.gather(*(writer.put(log.report(0, b"r"), noted) for _ in range(3)))
        await writer.aclose()

    done(work)
    seen = 0
    records: list[Record] = list(log.read_records(tmp_path))
    for record in records:
        if record.kind == log.STATE:
            assert int(record.content) == seen
        else:
            seen += 1
    assert seen == 60
    assert sum(record.kind == log.STATE for record in records) > 3


def test_message_is_in_the_log_with_all_of_its_lines_or_not_at_all(tmp_path: Path) -> None:
    """Also where the last write was torn anywhere."""
    records = b"".join(log.report(number, b"line %d" % number) for number in range(3))
    head = b'{"offset": 7}'
    ends: list[int] = []

    async def write() -> None:
        writer = ReportLog(tmp_path, state)
        await writer.put(log.report(9, b"before"), ends.append)
        await writer.put(log.message(head, records), ends.append)
        await writer.aclose()

    done(write)
    found = [(r.kind, r.content) for r in log.read_records(tmp_path, ends[0])]
    assert found == [(r.kind, r.content) for r in _apart(records)] + [(log.MESSAGE, head)]
    ((start, end),) = {(r.start, r.end) for r in log.read_records(tmp_path, ends[0])}
    assert (start, end) == (ends[0] + len(proof(0)), ends[1])
    assert lines(tmp_path, 0, ends[0]) == [b"before"]
    assert len(lines(tmp_path, 0, ends[1])) == 4
    (_, path), *_ = log.segments(tmp_path)
    whole = path.read_bytes()
    for size in range(ends[0], ends[1]):
        path.write_bytes(whole[:size])
        assert lines(tmp_path) == [b"before"]


def _apart(records: bytes) -> list[Record]:
    return [Record(r.kind, r.content, 0, 0) for r in whole_of(records, 0, 0)]


def test_segment_ends_by_what_follows_its_state(tmp_path: Path) -> None:
    """With a large state, not every write begins with it."""
    large = b"{" + b" " * 10_000 + b"}"

    async def work() -> None:
        writer = ReportLog(tmp_path, lambda: large, segment=100)
        for number in range(300):
            await writer.put(log.report(number, b"x" * 500), lambda _: None)
        await writer.aclose()

    done(work)
    states = [r for r in log.read_records(tmp_path) if r.kind == log.STATE]
    assert 3 <= len(states) <= 5
    assert len(lines(tmp_path)) == 300
