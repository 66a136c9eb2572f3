"""`vizpub watch` beside a collector with a real socket."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.commands.watch import COLUMNS, _table
from cli.main import app
from tests.support.collecting import Served, collector_in, serving

ROOT = Path(__file__).parents[4]


def committed(served: Served, first: int, last: int) -> None:
    rows = [{"interval": i, "network_size": 7, "hit_ratio": None} for i in range(first, last + 1)]
    told = {"number": 1, "position": 9, "closed": last, "seconds": 1.0, "late": 0, "rows": rows}
    served.loop.call_soon_threadsafe(served.web.progress.committed, told)


def watched(*options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["watch", "lab", *options])
    return done.exit_code, done.output


def test_watch_prints_a_line_per_interval(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        committed(served, 3, 5)
        code, text = watched("--url", served.url, "--rows", "1")
    assert code == 0
    assert text.splitlines() == ["\t".join(COLUMNS), "5\t7" + "\t-" * (len(COLUMNS) - 2)]


def test_watch_says_that_no_collector_runs(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--workspace", str(tmp_path), "watch", "lab"])
    assert done.exit_code == 2
    assert "vizpub collect lab" in done.output


def test_watch_says_why_it_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_TOKEN", "wrong")
    with serving(collector_in(tmp_path)) as served:
        code, text = watched("--url", served.url.replace("lab", "other"))
        assert (code, "no run 'other'" in text) == (2, True)
    code, text = watched("--url", served.url)
    assert (code, "no collector answers" in text) == (3, True), text


def test_table_shows_the_rows_and_what_is_wrong() -> None:
    rows = deque([{"interval": 5, "network_size": 7, "links": 12}])
    told = {"peers": 7, "refused": 2, "kafka_lag": 31, "load_error": "it is down"}
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(_table(told, rows))
    text = " ".join(shown.get().split())
    for part in ("5", "12", "refused 2", "kafka_lag 31", "load_error it is down"):
        assert part in text


@dataclass
class Watching:
    """`vizpub watch` as a process, and what it has written, to both streams."""

    process: subprocess.Popen[bytes]
    written: bytearray

    @property
    def text(self) -> str:
        return self.written.decode("utf-8", "replace")

    def until(self, part: str) -> None:
        end = time.monotonic() + 60
        while part not in self.text:
            assert time.monotonic() < end, self.text
            time.sleep(0.02)


@contextmanager
def process(url: str, *options: str, terminal: bool = False) -> Iterator[Watching]:
    here, there = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "cli", "watch", "lab", "--url", url, *options]
    started = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=there, stderr=there,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    )  # fmt: skip
    os.close(there)
    written = bytearray()

    def read() -> None:
        with suppress(OSError):  # how a terminal ends
            while part := os.read(here, 1 << 16):
                written.extend(part)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield Watching(started, written)
    finally:
        started.kill()
        started.wait()
        reading.join(60)
        os.close(here)


def test_number_of_rows_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served, process(served.url, "--rows", "9") as watching:
        committed(served, 3, 3)
        watching.until("3\t7")
    assert watching.process.wait(60) == 3
    assert "the collector at" in watching.text
    assert "has paused" in watching.text


def test_run_that_ends_before_the_last_row_is_none(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served, process(served.url, "--rows", "9") as watching:
        committed(served, 3, 3)
        watching.until("3\t7")
        served.web.progress.settled = True
    assert watching.process.wait(60) == 0
    assert "run 'lab' has ended" in watching.text


@pytest.mark.parametrize("terminal", [False, True], ids=["lines", "terminal"])
def test_watch_waits_for_a_collector_that_is_gone_until_it_is_interrupted(
    tmp_path: Path, terminal: bool
) -> None:
    with ExitStack() as over:
        with serving(collector_in(tmp_path)) as served:
            watching = over.enter_context(process(served.url, terminal=terminal))
            committed(served, 4711, 4711)
            watching.until("4711")
        watching.until("paused")
        with serving(collector_in(tmp_path), served.port) as served:
            committed(served, 4711, 4713)
            watching.until("4713")
        watching.process.send_signal(signal.SIGINT)
        watching.until("interrupted")
        assert watching.process.wait(60) == 130
    assert "Traceback" not in watching.text
    if terminal:
        assert "asked again in 1 s" in watching.text
        assert watching.text.rfind("\x1b[?25h") > watching.text.rfind("\x1b[?25l"), "the cursor"
    else:
        lines = [line.split("\t")[0] for line in watching.text.splitlines() if "\t" in line]
        assert lines == ["interval", "4711", "12", "4713"]
        assert "waiting for the collector" in watching.text
        assert "the collector is back" in watching.text
