"""Packed files in a watched folder are decompressed once, and not where reports are taken."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.few import few
from tests.support.folders import Case, report, to_the_end
from vizpub.collector.inputs import folder, packed
from vizpub.collector.inputs.folder import FolderInput
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content))


def history(peer: str, count: int = 4000) -> bytes:
    return "".join(report(peer, interval) for interval in range(count)).encode()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "a.ndjson.gz": lambda text: gzip.compress(text, 1),
    "members.ndjson.gz": lambda text: b"".join(
        gzip.compress(text[i : i + 5000], 1) for i in range(0, len(text), 5000)
    ),
    "a.ndjson.zst": zstd,
}


@pytest.mark.parametrize("name", few(PACKED, ["members.ndjson.gz", "a.ndjson.zst"]))
def test_packed_file_is_read_once_and_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """However many parts it is taken in, beside a peer that is slower."""
    case, read = Case(tmp_path), list[int]()
    really, loop = packed._ReopenedFile.read, threading.current_thread()

    def counted(self: packed._ReopenedFile, size: int) -> bytes:
        assert threading.current_thread() is not loop
        found = really(self, size)
        read.append(len(found))
        return found

    monkeypatch.setattr(packed._ReopenedFile, "read", counted)
    monkeypatch.setattr(folder, "_CHUNK", 1 << 14)
    content = PACKED[name](history("a"))
    (case.watched / name).write_bytes(content)
    (case.watched / "b.ndjson").write_bytes(history("b"))

    async def work(_: Intake, watched: FolderInput) -> None:
        turns = 0
        while await watched.turn():
            turns += 1
        assert turns > 20

    case.run(work)
    assert sorted(case.taken()) == [(peer, i) for peer in "ab" for i in range(4000)]
    assert sum(read) == len(content)


def test_packed_file_that_grows_is_taken_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_AGAIN", 0)
    case, content = Case(tmp_path), gzip.compress(history("a", 500))
    file = case.watched / "a.ndjson.gz"

    async def work(_: Intake, watched: FolderInput) -> None:
        for end in (100, len(content) // 2, len(content) - 9, len(content)):
            file.write_bytes(content[:end])
            await to_the_end(watched)
        with file.open("ab") as more:
            more.write(gzip.compress(report("a", 500).encode()))
        await to_the_end(watched)

    case.run(work)
    assert case.taken() == [("a", i) for i in range(501)]


def test_packed_file_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    case, file = Case(tmp_path), tmp_path / "watched" / "a.ndjson.gz"
    file.write_bytes(gzip.compress(history("a", 100)))

    async def work(_: Intake, watched: FolderInput) -> None:
        await to_the_end(watched)
        (tmp_path / "new").write_bytes(gzip.compress(history("a", 103)))
        (tmp_path / "new").rename(file)
        await to_the_end(watched)

    case.run(work)
    assert case.taken() == [("a", i) for i in range(103)]


def test_lines_that_could_not_be_written_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path)
    (case.watched / "a.ndjson.gz").write_bytes(gzip.compress(history("a", 100)))

    async def work(intake: Intake, watched: FolderInput) -> None:
        async def full(*_: object, **__: object) -> None:
            raise LogFailed("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(intake, "take", full)
            assert await watched.turn() == 0
        await to_the_end(watched)

    case.run(work)
    assert case.taken() == [("a", i) for i in range(100)]
