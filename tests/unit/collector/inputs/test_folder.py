"""Files in a folder: complete lines, each once, side by side."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.collecting import LATER
from tests.support.events import Happened
from tests.support.few import few
from tests.support.folders import Case, report, to_the_end
from tests.support.words import tells
from vizpub.collector.inputs.folder import CUT, FolderInput
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.ingest.sources.libp2p.events import EventType


def test_growing_file_is_taken_by_complete_lines(tmp_path: Path) -> None:
    case = Case(tmp_path)
    file = case.watched / "a.ndjson"

    async def work(_: Intake, folder: FolderInput) -> None:
        file.write_text(report("a", 0) + report("a", 1)[:30])
        await to_the_end(folder)
        assert case.taken() == [("a", 0)]
        with file.open("a") as more:
            more.write(report("a", 1)[30:] + report("a", 2))
        await to_the_end(folder)

    case.run(work)
    assert case.taken() == [("a", 0), ("a", 1), ("a", 2)]


def test_file_is_not_read_again_by_the_next_collector(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def first(_: Intake, folder: FolderInput) -> None:
        (case.watched / "a.ndjson").write_text(report("a", 0))
        (case.watched / "b.ndjson.gz").write_bytes(gzip.compress(report("b", 0).encode()))
        await to_the_end(folder)

    async def second(_: Intake, folder: FolderInput) -> None:
        with (case.watched / "a.ndjson").open("a") as more:
            more.write(report("a", 1))
        await to_the_end(folder)

    case.run(first)
    case.run(second)
    assert sorted(case.taken()) == [("a", 0), ("a", 1), ("b", 0)]


@pytest.mark.parametrize("began", few([LATER, datetime(2020, 1, 1, tzinfo=UTC)], [LATER]))
def test_histories_of_peers_enter_side_by_side(tmp_path: Path, began: datetime) -> None:
    """One file a peer, of more intervals than a peer may be ahead; and one that begins compressed
    in two members. Also where the run has begun long ago.
    """
    case = Case(tmp_path)
    case.began = began
    for peer in "abc":
        text = "".join(report(peer, interval) for interval in range(4000))
        if peer == "b":  # a longer file, which is read more slowly
            text = text.replace("\n", " " * 190 + "\n")
        if peer == "c":
            half = len(text) // 2
            packed = gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode())
            (case.watched / "c.ndjson.gz").write_bytes(packed)
        else:
            (case.watched / f"{peer}.ndjson").write_text(text)

    async def work(intake: Intake, folder: FolderInput) -> None:
        await to_the_end(folder)
        assert intake.counts["refused"] == 0

    case.run(work)
    assert sorted(case.taken()) == [(peer, i) for peer in "abc" for i in range(4000)]
    newest = dict.fromkeys("abc", 0)
    for peer, interval in case.taken():
        newest[peer] = interval
        assert max(newest.values()) - min(newest.values()) < 3000


def test_refused_line_is_told_with_its_place(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def work(_: Intake, folder: FolderInput) -> None:
        (case.watched / "a.ndjson").write_text("{}\n" + report("a", 0))
        (case.watched / ".hidden.ndjson").write_text(report("x", 0))
        (case.watched / "notes.txt").write_text(report("x", 0))
        await to_the_end(folder)

    case.run(work)
    assert case.taken() == [("a", 0)]
    assert "a.ndjson" in case.said[0]
    tells(case.said[0], "byte 3")


@pytest.mark.parametrize(
    "name", ["a.ndjson", "a.ndjson.gz", "a.jsonl", "trace.1.pb.gz", "a.json", "a.json.gz", "a.pb"]
)
def test_trace_is_left_to_others(tmp_path: Path, name: str) -> None:
    case = Case(tmp_path)
    event = Happened(EventType.JOIN, "a", 7, topic="t").line + "\n"

    async def work(_: Intake, folder: FolderInput) -> None:
        (case.watched / "z.ndjson").write_text(report("z", 0))
        await to_the_end(folder)
        assert case.traces == 0
        content = (2 * event).encode()
        (case.watched / name).write_bytes(
            gzip.compress(content) if name.endswith(".gz") else content
        )
        await to_the_end(folder)

    case.run(work)
    assert case.traces
    assert case.taken() == [("z", 0)]
    assert not case.said


def test_file_that_cannot_be_read_is_told_once_and_the_others_are_taken(tmp_path: Path) -> None:
    unreadable = Path("/proc/self/mem")
    if not unreadable.exists():
        pytest.skip("no file here that even root cannot read")
    case = Case(tmp_path)
    (case.watched / "a.ndjson").symlink_to(unreadable)
    (case.watched / "b.ndjson").write_text(report("b", 0))

    async def work(_: Intake, folder: FolderInput) -> None:
        await to_the_end(folder)
        await to_the_end(folder)

    case.run(work)
    assert case.taken() == [("b", 0)]
    (said,) = case.said
    tells(said, "a.ndjson")


def test_files_wait_while_nothing_is_taken(tmp_path: Path) -> None:
    case = Case(tmp_path)
    (case.watched / "a.ndjson").write_text("".join(report("a", n) for n in range(20)))
    case.limits = IntakeLimits(reserve=2**62)
    case.run(lambda _, folder: to_the_end(folder))
    assert case.taken() == []
    case.limits = IntakeLimits(reserve=1)
    case.run(lambda _, folder: to_the_end(folder))
    assert case.taken() == [("a", n) for n in range(20)]


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


@pytest.mark.parametrize(("name", "pack"), [("a.ndjson", str.encode), ("a.ndjson.gz", packed)])
def test_file_that_was_cut_is_read_anew(
    tmp_path: Path, name: str, pack: Callable[[str], bytes]
) -> None:
    """As of a peer that began anew: also where it grows later, and for the next collector."""
    case = Case(tmp_path)
    file = case.watched / name

    async def first(_: Intake, folder: FolderInput) -> None:
        file.write_bytes(pack(report("a", 0) + report("a", 1)))
        await to_the_end(folder)
        file.write_bytes(pack(""))
        await to_the_end(folder)

    async def second(_: Intake, folder: FolderInput) -> None:
        file.write_bytes(pack(report("a", 2) + report("a", 3) + report("a", 4)))
        await to_the_end(folder)

    case.run(first)
    case.run(second)
    assert case.taken() == [("a", n) for n in range(5)]
    (said,) = case.said
    tells(said, "a.ndjson", CUT)


def test_damaged_file_is_told_with_what_can_be_read(tmp_path: Path) -> None:
    case = Case(tmp_path)
    whole = packed(report("a", 0)) + packed(report("a", 1))
    (case.watched / "a.ndjson.gz").write_bytes(whole[:-8] + bytes(4) + whole[-4:])

    async def work(_: Intake, folder: FolderInput) -> None:
        await to_the_end(folder)
        await to_the_end(folder)

    case.run(work)
    assert case.taken() == [("a", 0), ("a", 1)]
    (said,) = case.said
    tells(said, "a.ndjson.gz", "gzip")


def test_file_that_waits_for_nobody_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where peers count intervals from another time than the run's."""
    monkeypatch.setattr("vizpub.collector.inputs.folder._PATIENCE_S", 0.05)
    case = Case(tmp_path)
    (case.watched / "a.ndjson").write_text(report("a", 1_000))

    async def work(_: Intake, folder: FolderInput) -> None:
        for _ in range(6):
            assert await folder.turn() == 0
            await asyncio.sleep(0.02)
        assert len(case.said) == 1
        (case.watched / "b.ndjson").write_text(report("b", 16))
        assert await folder.turn() == 1

    case.run(work)
    (said,) = case.said
    tells(said, "a.ndjson", "1000", "16")
    assert case.taken() == [("b", 16)]


def test_batches_of_collections_are_not_read(tmp_path: Path) -> None:
    """As where the folder is the one in which the command was given, and the workspace in it."""
    case = Case(tmp_path)
    case.watched = tmp_path
    (case.place.batches / "00000001.00000000000000000009.0.ndjson.gz").write_bytes(
        packed(report("a", 0))
    )
    (tmp_path / "collected.ndjson").write_text(report("b", 0))
    case.run(lambda _, folder: to_the_end(folder))
    assert case.taken() == [("b", 0)]
