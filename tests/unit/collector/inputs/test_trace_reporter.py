"""Traces reported to a real collector."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.collecting import Options, Served, collector_in, serving
from tests.support.events import Happened
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.collector.http.client import CollectorClient
from vizpub.collector.inputs.trace_reporter import (
    CLOSED_ALREADY,
    NO_EVENT,
    FollowOptions,
    ReportingSummary,
    TraceReporter,
)
from vizpub.ingest.sources.libp2p import json_events
from vizpub.ingest.sources.libp2p.events import EventType, make_event
from vizpub.ingest.sources.libp2p.reporting import TraceReports
from vizpub.model.errors import InputError, UseError
from vizpub.reports.client import Pace, Reporter

ROOT = Path(__file__).parents[4]
TRACE = ROOT / "examples/gossipsub"
SECOND = 1_000_000
FAST = FollowOptions(replay=True, speed=1e9)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for no more reports."""
    reporter = partial(Reporter, pace=Pace(gather_s=0.01))
    monkeypatch.setattr("vizpub.collector.inputs.trace_reporter.Reporter", reporter)


def url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}/v1/runs/lab"


def reported(
    served: Served, place: Path, how: FollowOptions, over: Callable[[], bool] = lambda: False
) -> ReportingSummary:
    return TraceReporter([place], [CollectorClient(url(served))], how, print).run(over)


def records(served: Served) -> list[Any]:
    return [json.loads(line) for line in served.lines()]


def test_replayed_trace_is_reported_as_its_events_say(tmp_path: Path) -> None:
    """All of it, though it is faster than the clock, and a collector refuses what runs ahead."""
    lines = [x for p in TRACE.iterdir() for x in gzip.decompress(p.read_bytes()).splitlines()]
    events = [make_event(json_events.decode(line)[0]) for line in lines]
    first = min(event.time for event in events) // 1000
    made = TraceReports(first // SECOND * SECOND, SECOND, 30 * SECOND)
    for event in events:
        made.add(event)
    last = made.last_ended(max(event.time for event in events) // 1000) + 1
    wanted = [report for _, told in made.reports_through(last) for report in told]
    with serving(collector_in(tmp_path)) as served:
        told = reported(served, TRACE, FollowOptions(replay=True, speed=1e9, end=True))
        found = records(served)
        intake = served.web.intake
        assert (intake.ending.last, intake.header.protocol) == (last, "gossipsub")
        assert intake.header.unknown == ("rejections",)  # none is reported, though some were

    def ordered(told: list[Any]) -> list[Any]:
        return sorted(told, key=lambda one: (one["interval"], one["peer"]))

    assert (told.sent, told.intervals, told.late) == (len(wanted), last + 1, 0)
    assert (told.refused, told.dropped, told.unread) == (0, 0, 0)
    assert ordered(found) == ordered(wanted)
    assert [one["interval"] for one in found] == sorted(one["interval"] for one in found)


def test_growing_trace_is_reported_while_it_grows(tmp_path: Path) -> None:
    """From the clock on; what it opened before the run began is in the first reports."""
    began, path = datetime.now(UTC), tmp_path / "trace.json"
    start_ns = int(began.timestamp() * SECOND) * 1000
    before = Happened(EventType.STREAM_OPENED, "a", start_ns - 5_000_000_000, "b")
    path.write_text(before.line + "\n")
    over, options = threading.Event(), Options(began=began, interval_us=SECOND // 4)
    with serving(collector_in(tmp_path, options)) as served:
        how, found = FollowOptions(follow=True, delay_s=0.3), list[ReportingSummary]()
        thread = threading.Thread(
            target=lambda: found.append(reported(served, path, how, over.is_set))
        )
        thread.start()
        while len(served.lines()) < 2:
            time.sleep(0.05)
        now = time.time_ns() + 750_000_000  # so it is read long before its interval is reported
        with path.open("a") as file:
            file.write(Happened(EventType.GRAFT, "a", now, "b", "t").line + "\n")
        interval = (now - start_ns) // (options.interval_us * 1000)
        while max(record["interval"] for record in records(served)) <= interval:
            time.sleep(0.05)
        over.set()
        thread.join(30)
        links = {r["interval"]: [link["layer"] for link in r["neighbors"]] for r in records(served)}
        assert links.keys() == set(range(len(links)))
        assert all(links[i] == ["streams"] for i in range(interval))
        assert all(links[i] == ["streams", "mesh"] for i in range(interval, len(links)))
        assert found[0].late == found[0].refused == 0


def test_restarted_report_leaves_closed_intervals_alone(tmp_path: Path) -> None:
    began = datetime.now(UTC)
    start_ns = int(began.timestamp() * SECOND) * 1000
    path = tmp_path / "trace.json"
    happened = [
        Happened(EventType.JOIN, "a", start_ns + s * 1_000_000_000, topic=f"t{s}") for s in range(6)
    ]
    path.write_text("".join(one.line + "\n" for one in happened[:4]))
    with serving(collector_in(tmp_path, Options(began=began))) as served:
        assert reported(served, path, FollowOptions()).intervals == 4
        first = records(served)
        intake = served.web.intake
        intake.closing.close(1)
        path.write_text("".join(one.line + "\n" for one in happened))
        assert reported(served, path, FollowOptions()).intervals == 4
        again = records(served)[len(first) :]
        assert [one["interval"] for one in again] == [2, 3, 4, 5]
        assert again[:2] == first[2:]  # the same seq: a repetition, and no conflict
        assert again[-1]["topics"] == [f"t{s}" for s in range(6)]
        with pytest.raises(UseError, match=CLOSED_ALREADY):
            reported(served, path, FAST)


def test_event_of_the_future_holds_up_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single one, of a peer whose clock is a year ahead."""
    began = datetime.now(UTC) - timedelta(seconds=4)
    start_ns, year_ns = int(began.timestamp() * SECOND) * 1000, 365 * 86_400 * 10**9
    path = tmp_path / "trace.json"
    happened = [
        Happened(EventType.JOIN, "a", start_ns, topic="t"),
        Happened(EventType.JOIN, "b", start_ns + year_ns, topic="t"),
        Happened(EventType.LEAVE, "a", start_ns + 2 * 10**9, topic="t"),
    ]
    path.write_text("".join(one.line + "\n" for one in happened))
    with serving(collector_in(tmp_path, Options(began=began))) as served:
        told = reported(served, path, FollowOptions())
        topics = {one["interval"]: one["topics"] for one in records(served)}
        assert (topics[1], topics[2]) == (["t"], [])
        assert told.intervals < 20
        assert (told.refused, told.late) == (0, 0)
        tells(capsys.readouterr().out, "1 event")
        path.write_text(path.read_text() + happened[0].line + "\n")
        turns = iter(range(6))
        follow = FollowOptions(follow=True, delay_s=0.1)
        assert reported(served, path, follow, lambda: next(turns, None) is None).refused == 0


def test_trace_of_another_time_needs_a_replay(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path, Options(began=datetime.now(UTC)))) as served:
        with pytest.raises(
            UseError, match=r"begins [0-9,]+ s before the run: `vizpub live report --replay`"
        ):
            reported(served, TRACE, FollowOptions())
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match=NO_EVENT):
            reported(served, tmp_path / "empty", FollowOptions())
        assert records(served) == []


@pytest.mark.long
def test_second_signal_ends_a_report_that_nobody_takes(tmp_path: Path) -> None:
    began, path = datetime.now(UTC), tmp_path / "trace.json"
    path.write_text(Happened(EventType.JOIN, "a", time.time_ns(), topic="t").line + "\n")
    with serving(collector_in(tmp_path, Options(began=began))) as served:
        told = ["live", "report", str(path), "--to", url(served), "--follow", "--delay", "100ms"]
        command = [sys.executable, "-m", "vizpub.cli", *told]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        while not served.lines():
            time.sleep(0.05)
    with socket.create_server(("127.0.0.1", served.port)) as silent:
        silent.settimeout(60)
        asking, _ = silent.accept()  # the next intervals are over, and wait
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        asking.close()
    while process.poll() is None:  # two signals at once are one
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
    text = process.communicate(timeout=60)[1]
    assert (process.returncode, "interrupted" in text) == (130, True)


def test_report_command_tells_what_it_did(tmp_path: Path) -> None:
    (some := tmp_path / "some").mkdir()
    for trace in sorted(TRACE.iterdir())[:5]:
        (some / trace.name).symlink_to(trace)
    with serving(collector_in(tmp_path)) as served:
        told = ["live", "report", str(some), "--to", url(served), "--replay", "--speed", "100000"]
        done = CliRunner().invoke(app, ["--workspace", str(tmp_path), *told])
        assert done.exit_code == 0, done.output
        assert "reported 1" in done.output
        assert len(records(served)) > 300
        plain = told[:5]
        for wrong, why in (
            ([*told, "--follow"], "--replay is for finished traces"),
            ([*plain, "--speed", "2"], "--speed needs --replay"),
            ([*plain, "--delay", "9s"], "--delay needs --follow"),
        ):
            refused = CliRunner().invoke(app, ["--workspace", str(tmp_path), *wrong])
            assert refused.exit_code == 2, refused.output
            assert why in refused.output
