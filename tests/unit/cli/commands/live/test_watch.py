"""`vizpub live watch` beside a collector with a real socket."""

from __future__ import annotations

import re
import signal
from collections import deque
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.support.collecting import Served, collector_in, serving
from tests.support.watching import watching
from tests.support.words import tells, unknown
from vizpub.cli.commands.live.watch import BACK, COLUMNS, WAITING, _table
from vizpub.cli.main import app
from vizpub.collector.http.client import PAUSED
from vizpub.model.clock import Clock
from vizpub.reports.endpoint import NO_COLLECTOR
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import writing


def committed(served: Served, first: int, last: int) -> None:
    rows = [{"interval": i, "network_size": 7, "hit_ratio": None} for i in range(first, last + 1)]
    told = {"number": 1, "position": 9, "closed": last, "seconds": 1.0, "late": 0}
    told |= {"left": [0, 0, 0], "control": {}, "rows": rows}
    served.loop.call_soon_threadsafe(served.web.progress.note_commit, told)


def watched(*options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["live", "watch", "lab", *options])
    return done.exit_code, done.output


def test_watch_prints_a_line_per_interval(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        committed(served, 3, 5)
        code, text = watched("--url", served.url, "--rows", "1")
    assert code == 0
    assert text.splitlines() == ["\t".join(COLUMNS), "5\t7" + "\t-" * (len(COLUMNS) - 2)]


def test_watch_says_that_no_collector_runs(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--workspace", str(tmp_path), "live", "watch", "lab"])
    assert done.exit_code == 2
    assert "vizpub live collect lab" in done.output
    assert "interval" not in done.stdout  # no head of a table that never comes


def test_watch_of_a_run_that_has_ended_says_so_instead_of_asking_for_a_collector(
    tmp_path: Path,
) -> None:
    manifest = Manifest("lab", "reports", (), {}, clock=Clock(1, 1_000_000, 0, 9), ended=True)
    with writing(tmp_path, "lab") as writer:
        writer.begin(manifest)
        writer.commit(manifest.with_stage("all", {}, state="complete"))
    done = CliRunner().invoke(app, ["--workspace", str(tmp_path), "live", "watch", "lab"])
    assert (done.exit_code, done.stdout) == (0, "")
    tells(done.output, "'lab'", "vizpub metrics lab")


def test_watch_says_why_it_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_TOKEN", "wrong")
    with serving(collector_in(tmp_path)) as served:
        code, text = watched("--url", served.url.replace("lab", "other"))
        assert (code, unknown("run", "other") in text) == (2, True)
    code, text = watched("--url", served.url)
    assert (code, NO_COLLECTOR in text) == (3, True), text


def test_table_shows_the_rows_and_what_is_wrong() -> None:
    rows = deque([{"interval": 5, "network_size": 7, "links": 12}])
    told = {"peers": 7, "refused": 2, "kafka_lag": 31, "load_error": "it is down"}
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(_table(told, rows))
    text = " ".join(shown.get().split())
    for part in ("5", "12", "refused 2", "kafka_lag 31", "load_error it is down"):
        assert part in text


def test_table_shows_no_escapes_of_a_collector() -> None:
    rows = deque([{"interval": 5, "network_size": "\x1b[2J"}])
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(_table({"state": "\x1b[2J", "error": ["\x1b]0;x\x07"]}, rows))
    assert "\x1b" not in shown.get()


@pytest.mark.parametrize(
    ("settled", "code", "why"),
    [(False, 3, PAUSED), (True, 0, "run 'lab' has ended")],
    ids=["paused", "ended"],
)
def test_collector_that_ends_before_the_last_row_is_an_error_unless_the_run_has_ended(
    tmp_path: Path, settled: bool, code: int, why: str
) -> None:
    with ExitStack() as over:
        with serving(collector_in(tmp_path)) as served:
            shown = over.enter_context(watching("--url", served.url, "--rows", "9"))
            committed(served, 3, 3)
            shown.until("3\t7")
            served.web.progress.settled = settled
        shown.until(why)
        assert shown.process.wait(60) == code


@pytest.mark.parametrize("terminal", [False, True], ids=["lines", "terminal"])
def test_watch_waits_for_a_collector_that_is_gone_until_it_is_interrupted(
    tmp_path: Path, terminal: bool
) -> None:
    with ExitStack() as over:
        with serving(collector_in(tmp_path)) as served:
            shown = over.enter_context(watching("--url", served.url, terminal=terminal))
            committed(served, 711, 711)
            shown.until("711" if terminal else "\n711\t")
        shown.until("paused")
        with serving(collector_in(tmp_path), served.port) as served:
            committed(served, 711, 713)
            shown.until("713" if terminal else "\n713\t")  # a port may have these digits
        shown.process.send_signal(signal.SIGINT)
        shown.until("interrupted")
        assert shown.process.wait(60) == 130
    assert "Traceback" not in shown.text
    if terminal:
        words = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.text).split())
        assert "asked again in 1 s" in words
        assert shown.text.rfind("\x1b[?25h") > shown.text.rfind("\x1b[?25l"), "the cursor"
    else:
        lines = [line.split("\t")[0] for line in shown.text.splitlines() if "\t" in line]
        assert lines == ["interval", "711", "712", "713"]
        tells(shown.text, WAITING, BACK)
