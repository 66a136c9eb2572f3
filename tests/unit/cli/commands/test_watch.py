"""`vizpub watch` beside a collector with a real socket."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.commands.watch import COLUMNS, _table
from cli.main import app
from tests.support.collecting import Served, collector_in, serving


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
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(_table({"peers": 7, "refused": 2, "load_error": "it is down"}, rows))
    text = " ".join(shown.get().split())
    for part in ("5", "12", "refused 2", "load_error it is down"):
        assert part in text
