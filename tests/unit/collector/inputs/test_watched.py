"""Traces in a watched folder, reported by a real process to a real collector."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.support.collecting import Options, Served, collector_in, serving
from tests.support.events import Happened
from tests.support.words import tells
from vizpub.collector.inputs.watched import WatchedTraces
from vizpub.collector.place import CollectionPlace
from vizpub.ingest.sources.libp2p.events import EventType

pytestmark = pytest.mark.timeout(120)
ROOT = Path(__file__).parents[4]
SECOND_NS = 1_000_000_000


def test_trace_that_appears_in_the_folder_is_reported_until_the_end(tmp_path: Path) -> None:
    """As `traced` writes it: compressed, not flushed at the end of a record, and renamed."""
    began, watched, said = datetime.now(UTC), tmp_path / "watched", list[str]()
    watched.mkdir()
    start_ns = int(began.timestamp()) * SECOND_NS
    happened = [
        Happened(EventType.JOIN, "a", start_ns + s * SECOND_NS // 40, topic=f"t{s}")
        for s in range(9)
    ]
    packed = gzip.compress("".join(one.line + "\n" for one in happened).encode())

    async def follow() -> None:
        place = CollectionPlace(tmp_path, "lab")
        traces = WatchedTraces(watched, place, said.append)
        task = asyncio.create_task(traces.follow())
        await asyncio.sleep(0.1)
        assert not reporting()  # as long as nobody says that there is a trace
        traces.wake()
        growing = watched / "trace.json.gz"
        with growing.open("wb") as file:
            file.write(packed[:-20])
            file.flush()
            while not any(reads(one, growing) for one in reporting()):
                await asyncio.sleep(0.1)
            growing = growing.rename(watched / "trace.1.json.gz")
            file.write(packed[-20:])
        while not topics() >= {one.topic for one in happened}:
            assert not said
            assert not task.done()
            await asyncio.sleep(0.1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    options = Options(began=began, interval_us=250_000)
    with serving(collector_in(tmp_path, options)) as served, told_of(served, tmp_path):

        def topics() -> set[str]:
            records = [json.loads(line) for line in served.lines()]
            return {topic for record in records for topic in record.get("topics") or ()}

        asyncio.run(follow())
    assert not reporting()


def test_why_traces_are_not_reported_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.collector.inputs.watched._PAUSE_S", 0.0)
    (tmp_path / "old.json").write_text(
        Happened(EventType.JOIN, "a", SECOND_NS, topic="t").line + "\n"
    )
    said, whys, report = list[str](), list[str](), WatchedTraces._run_process

    async def again(self: WatchedTraces) -> str:
        """A process the first time, which would end in the same way each time."""
        whys.append(whys[0] if whys else await report(self))
        return whys[-1]

    monkeypatch.setattr(WatchedTraces, "_run_process", again)

    async def follow() -> None:
        traces = WatchedTraces(tmp_path, CollectionPlace(tmp_path, "lab"), said.append)
        traces.wake()
        task = asyncio.create_task(traces.follow())
        while len(whys) < 3:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    with serving(collector_in(tmp_path)) as served, told_of(served, tmp_path):
        asyncio.run(follow())
    assert len(said) == 1
    tells(said[0], "vizpub live report --replay")


def test_process_ends_with_its_standard_input(tmp_path: Path) -> None:
    """And so with a collector that was killed."""
    (trace := tmp_path / "trace.json").touch()
    words = [
        sys.executable,
        "-m",
        "vizpub.collector.inputs.watched",
        str(tmp_path),
        "lab",
        str(tmp_path),
    ]
    with serving(collector_in(tmp_path)) as served, told_of(served, tmp_path):
        process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=ROOT)
        while not reads(psutil.Process(process.pid), trace):
            assert process.poll() is None
            time.sleep(0.05)
        assert process.stdin
        process.stdin.close()
        assert process.wait(60) == 0


@contextmanager
def told_of(served: Served, workspace: Path) -> Iterator[None]:
    """A command finds the collector in the workspace."""
    place = CollectionPlace(workspace, "lab")
    with place.hold():
        place.announce(url=served.url, tokens=False, certificate=None)
        yield


def reads(process: psutil.Process, path: Path) -> bool:
    """Whether it has the file open."""
    with suppress(psutil.NoSuchProcess):
        return str(path) in {file.path for file in process.open_files()}
    return False


def reporting() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "vizpub.collector.inputs.watched" in process.cmdline() and process.is_running():
                found.append(process)
    return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]
