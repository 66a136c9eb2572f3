"""The reporter, against a real collector that fails in every way."""

from __future__ import annotations

import http.server
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.collecting import RESERVE, Options, Served, collector_in, serving
from tests.support.words import naming, tells
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.bodies import BodyLimits
from vizpub.collector.intake import IntakeLimits
from vizpub.collector.place import CollectionPlace
from vizpub.reports.client import Pace, Reporter
from vizpub.reports.endpoint import NO_URL
from vizpub.reports.records import Neighbor, Report
from vizpub.reports.spool import ANOTHER_REPORTER, Spool

ROOT = Path(__file__).parents[3]
AHEAD = Options(rules=ClosingRules(ahead=10**6))
QUICK = Pace(gather_s=0.01, first_wait_s=0.02, most_wait_s=0.05, timeout_s=5.0)


def url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}/v1/runs/lab"


def told(served: Served) -> list[tuple[str, int]]:
    return [(r["peer"], r["interval"]) for r in map(json.loads, served.lines())]


def report(peer: str, interval: int) -> dict[str, Any]:
    return {"peer": peer, "interval": interval, "neighbors": []}


def test_client_needs_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import vizpub.reports.client; "
        "new = {n.split('.')[0] for n in set(sys.modules) - before}; "
        "sys.exit(str(new - sys.stdlib_module_names - {'vizpub'} or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""


def test_reports_of_many_peers_arrive_in_their_order(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            assert reporter.header()["interval_us"] == 1_000_000
            for interval in range(5):
                for peer in range(20):
                    reporter.report(report(f"p{peer}", interval))
            reporter.report(Report(peer="p0", interval=5, neighbors=(Neighbor("p1"),), seq=7))
            assert reporter.flush(20)
        assert told(served) == [
            *((f"p{peer}", interval) for interval in range(5) for peer in range(20)),
            ("p0", 5),
        ]
        assert reporter.counts.sent == 101
        seqs = [json.loads(line)["seq"] for line in served.lines()]
        assert seqs[:-1] == sorted(set(seqs[:-1]))
        assert seqs[-1] == 7


def test_report_is_sent_as_it_was_when_it_was_given(tmp_path: Path) -> None:
    late = Pace(gather_s=0.5)
    with serving(collector_in(tmp_path)) as served:
        with Reporter(url(served), pace=late) as reporter:
            told = {"peer": "a", "interval": 1, "neighbors": ["b"], "gauges": {"load": 1}}
            record = Report(peer="b", interval=1, neighbors=(), gauges=(gauges := {"load": 2}))
            reporter.report(told)
            reporter.report(record)
            told["neighbors"].append("c")  # type: ignore[attr-defined]
            told["gauges"]["load"] = gauges["load"] = 9  # type: ignore[index]
            told["peer"] = "d"
            assert reporter.flush(20)
        first, second = map(json.loads, served.lines())
    assert (first["peer"], first["neighbors"], first["gauges"]) == ("a", ["b"], {"load": 1})
    assert second["gauges"] == {"load": 2}


def test_report_that_is_no_json_is_refused_and_the_others_are_sent(tmp_path: Path) -> None:
    wrong: list[Any] = [float("nan"), float("inf"), b"b", {"b"}, {("a", "b"): 1}, "\ud800"]
    with serving(collector_in(tmp_path)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            for interval, value in enumerate(wrong):
                reporter.report({**report("a", interval), "neighbors": value})
            with pytest.raises(TypeError):
                reporter.report({**report("a", 0), "neighbors": object()})
            reporter.report(report("a", len(wrong)))
            assert reporter.flush(20)
            assert reporter.counts.refused == len(wrong)
            assert "not JSON" in str(reporter.last_problem)
        assert told(served) == [("a", len(wrong))]


def test_seq_grows_over_restarts(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        for interval in range(3):
            with Reporter(url(served), pace=QUICK) as reporter:
                reporter.report(report("a", interval))
        seqs = [json.loads(line)["seq"] for line in served.lines()]
        assert len(seqs) == 3
        assert seqs == sorted(set(seqs))


def test_collector_that_is_down_for_a_while_loses_nothing(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        port, address = served.port, url(served)
    with Reporter(address, pace=QUICK) as reporter:
        for interval in range(10):
            reporter.report(report("a", interval))
        while not reporter.counts.retries:
            assert not reporter.flush(0.05)
        with serving(collector_in(tmp_path), port) as served:
            assert reporter.flush(20)
            assert told(served) == [("a", interval) for interval in range(10)]
    assert reporter.counts.dropped == 0


def test_break_of_many_intervals_loses_nothing(tmp_path: Path) -> None:
    """Each peer sends for itself what it kept of 60 intervals, while most are still before them."""
    options = Options(began=datetime.now(UTC) - timedelta(seconds=61))
    with serving(collector_in(tmp_path, options)) as served:
        port, address = served.port, url(served)
        reporters = [Reporter(address, pace=QUICK) for _ in range(3)]
        for number, reporter in enumerate(reporters):
            reporter.report(report(f"p{number}", 0))
            assert reporter.flush(20)
    for number, reporter in enumerate(reporters):
        for interval in range(1, 61):
            reporter.report(report(f"p{number}", interval))
    with serving(collector_in(tmp_path, options), port) as served:
        for reporter in reporters:
            assert reporter.flush(20)
            assert (reporter.counts.refused, reporter.counts.dropped) == (0, 0)
            reporter.close(0)
        wanted = {(f"p{number}", interval) for number in range(3) for interval in range(61)}
        assert sorted(told(served)) == sorted(wanted)


def test_next_collector_gets_what_one_does_not_take(tmp_path: Path) -> None:
    """One that ends, and, when the other ends too, the first again."""
    collectors = [collector_in(tmp_path / name) for name in "ab"]
    with serving(collectors[0]) as first, serving(collectors[1]) as second:
        ports, addresses = (first.port, second.port), [url(first), url(second)]
    with Reporter(addresses, pace=QUICK) as reporter:
        for interval, turn in enumerate((0, 1, 0)):
            with serving(collectors[turn], ports[turn]) as served:
                assert reporter.header()["run"] == "lab"
                reporter.report(report("a", interval))
                assert reporter.flush(20)
                assert told(served)[-1] == ("a", interval)
    assert (reporter.counts.sent, reporter.counts.dropped) == (3, 0)


def test_collector_that_refuses_ends_the_reporter_only_if_all_do() -> None:
    with (
        answering(401, 401) as (one, _),
        answering(503, 401) as (other, _),
        Reporter([one, other], pace=QUICK) as reporter,
    ):
        reporter.report(report("a", 0))
        assert not reporter.flush(20)
        assert "401" in str(reporter.error)
        reporter.close(0)
    with (
        answering(404) as (one, seen),
        answering() as (other, _),
        Reporter([one, other], pace=QUICK) as reporter,
    ):
        reporter.report(report("a", 0))
        assert reporter.flush(20)
        assert (seen, reporter.counts.sent) == ([404], 1)


@pytest.mark.parametrize("wrong", ["127.0.0.1:8600", "ftp://a/v1/runs/lab", "", "http://"])
def test_url_that_is_none_is_an_error(wrong: str) -> None:
    with pytest.raises(ValueError, match=NO_URL):
        Reporter(wrong)
    with pytest.raises(ValueError, match=NO_URL):
        Reporter(["http://127.0.0.1:1/v1/runs/lab", wrong])


def test_full_memory_drops_the_oldest_and_says_so() -> None:
    with Reporter("http://127.0.0.1:1/v1/runs/lab", memory=2000, pace=QUICK) as reporter:
        for interval in range(500):
            reporter.report(report("a", interval))
        kept = reporter.waiting
        assert reporter.counts.dropped == 500 - kept
        assert 0 < kept < 100
        reporter.close(0)
    assert reporter.counts.dropped == 500


def test_spool_keeps_what_the_memory_does_not_hold_and_what_was_not_sent(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    away = Reporter("http://127.0.0.1:1/v1/runs/lab", memory=2000, spool=spool, pace=QUICK)
    for interval in range(500):
        away.report(report("a", interval))
    away.close(0)
    assert away.counts.dropped == 0
    with spool.open("ab") as file:
        file.write(b'{"half a line')
    with serving(collector_in(tmp_path, Options())) as served:
        with Reporter(url(served), spool=spool, pace=QUICK) as reporter:
            reporter.report(report("b", 0))
            assert reporter.flush(20)
        assert {n for peer, n in told(served) if peer == "a"} <= {*range(500)}
        refused = reporter.counts.refused
        assert len({*told(served)}) + refused == 501
    with serving(collector_in(tmp_path, Options())) as served:
        with Reporter(url(served), spool=spool, pace=QUICK) as reporter:
            reporter.flush(20)
        assert reporter.counts.sent == 0


def test_spooled_reports_arrive_before_newer_ones(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        port, address = served.port, url(served)
    with Reporter(address, memory=5000, spool=tmp_path / "spool", pace=QUICK) as reporter:
        for interval in range(200):
            reporter.report(report("a", interval))
            time.sleep(0.0005)
        with serving(collector_in(tmp_path, AHEAD), port) as served:
            assert reporter.flush(20)
            assert told(served)[:-1] == sorted(told(served)[:-1])
            assert {*told(served)} == {("a", interval) for interval in range(200)}
    assert (tmp_path / "spool").stat().st_size == 0


def test_spool_has_one_reporter(tmp_path: Path) -> None:
    one = Reporter("http://127.0.0.1:1", spool=tmp_path / "spool")
    with pytest.raises(BlockingIOError, match=naming(tmp_path / "spool", ANOTHER_REPORTER)):
        Reporter("http://127.0.0.1:1", spool=tmp_path / "spool")
    one.close(0)
    Reporter("http://127.0.0.1:1", spool=tmp_path / "spool").close(0)


def test_spool_that_cannot_grow_drops_and_says_so(tmp_path: Path) -> None:
    """The system refuses to write more than 1,000 bytes, as where a disk is full."""
    spool, most = tmp_path / "spool", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most[1]))
    try:
        away = Reporter("http://127.0.0.1:1", memory=100, pace=QUICK, spool=spool)
        for interval in range(100):
            away.report(report("a", interval))
            time.sleep(0.001)
        away.close(0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    kept = spool.read_bytes().splitlines()
    assert kept
    assert away.counts.dropped == 100 - len(kept)
    assert {json.loads(line)["peer"] for line in kept} == {"a"}
    assert "spool" in str(away.last_problem)


def test_spool_that_cannot_be_read_ends_the_reporter_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[bytes]:
        raise OSError(EIO, os.strerror(EIO))

    monkeypatch.setattr(Spool, "take", fail)
    (tmp_path / "spool").write_text('{"peer": "a"}\n')
    with Reporter("http://127.0.0.1:1", pace=QUICK, spool=tmp_path / "spool") as reporter:
        assert not reporter.flush(20)
        tells(str(reporter.error), "spool", os.strerror(EIO))
    assert (tmp_path / "spool").read_text() == '{"peer": "a"}\n'


def test_too_large_request_is_split(tmp_path: Path) -> None:
    options = Options(bodies=BodyLimits(content=500))
    with serving(collector_in(tmp_path, options)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            for interval in range(15):
                reporter.report(report("a", interval))
            assert reporter.flush(20)
        assert told(served) == [("a", interval) for interval in range(15)]


def test_wrong_token_ends_the_reporter_with_the_reason(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path, Options(tokens=True))) as served:
        with Reporter(url(served), "wrong", pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            assert not reporter.flush(20)
            assert reporter.error
            assert "401" in reporter.error
            with pytest.raises(OSError, match="401"):
                reporter.header()
        token = (CollectionPlace(tmp_path, "lab").tokens / "report").read_text().strip()
        with Reporter(url(served), token, pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            assert reporter.flush(20)
        assert told(served) == [("a", 0)]


def test_refused_line_is_counted_and_not_sent_again(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            reporter.report({"peer": "a", "interval": -1})
            reporter.report(report("a", 0))
            assert reporter.flush(20)
        assert (reporter.counts.sent, reporter.counts.refused) == (1, 1)
        assert reporter.last_problem
        assert "negative" in reporter.last_problem


def test_refusals_of_long_names_are_an_answer_that_the_reporter_reads(tmp_path: Path) -> None:
    limits = IntakeLimits(name=2**15, reserve=RESERVE)
    options = Options(rules=ClosingRules(peers=frozenset("a")), limits=limits)
    with serving(collector_in(tmp_path, options)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            for number in range(100):
                reporter.report(report(f"{number}" + "x" * 20_000 + "end", 0))
            reporter.report(report("a", 0))
            assert reporter.flush(20)
        assert (reporter.counts.sent, reporter.counts.refused) == (1, 100)
        assert "peer '0xx" in str(reporter.last_problem)
        assert "xend' is not in the list" in str(reporter.last_problem)


@contextmanager
def answering(
    *codes: int, headers: dict[str, str] | None = None, body: bytes | None = None
) -> Iterator[tuple[str, list[int]]]:
    """A server that answers with these codes in turn, then 202. Gives its address, and the codes
    that it has sent.
    """
    left, seen = list(codes), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            is_last = not left
            code = 202 if is_last else left.pop(0)
            seen.append(code)
            told = json.dumps({"taken": 1, "refused": 0, "lines": [], "error": "no"}).encode()
            text = told if is_last or body is None else body
            self.send_response(code)
            for name, value in ({} if is_last else headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/runs/lab", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("codes", "attempts"),
    [((408, 429, 502, 503, 504), 6), ((400,), 1), ((500,), 1), ((302,), 1), ((404, 202), 1)],
)
def test_answer_decides_what_is_sent_again(codes: tuple[int, ...], attempts: int) -> None:
    with answering(*codes) as (address, seen):
        with Reporter(address, pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            reporter.flush(20)
        assert len(seen) == attempts
        assert reporter.counts.sent == (seen[-1] == 202)


@pytest.mark.parametrize("told", ["100", "in 100 s"])
def test_retry_after_is_obeyed(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Reporter, "_pause", lambda _, seconds: waits.append(seconds))
    if told != "100":
        told = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    with answering(429, headers={"retry-after": told}) as (address, seen):
        with Reporter(address, pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            assert reporter.flush(20)
        assert seen == [429, 202]
    assert 10 < waits[0] <= 100


@pytest.mark.parametrize(
    "told", ["99999999999", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", f"Fri, 31 Dec {10**11}"]
)
def test_retry_after_of_ages_ends_no_reporter(told: str) -> None:
    with answering(429, headers={"retry-after": told}) as (address, seen):
        with Reporter(address, pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            while not seen:
                time.sleep(0.01)
            reporter.flush(0.3)
            assert all(thread.is_alive() for thread in reporter._threads)
            reporter.close(0)
        assert seen[0] == 429


@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b"[" * 100_000,
        b"[7]",
        b'{"taken": null, "refused": 0, "lines": []}',
        b'{"taken": 1, "refused": 0, "lines": 7}',
        b'{"taken": 1, "refused": 0, "lines": ["x"]}',
    ],
)
def test_answer_of_something_else_is_no_acknowledgement(body: bytes) -> None:
    with answering(202, 202, body=body) as (address, seen):
        with Reporter(address, pace=QUICK) as reporter:
            reporter.report(report("a", 0))
            assert reporter.flush(20)
        assert seen == [202, 202, 202]
        assert (reporter.counts.sent, reporter.counts.retries) == (1, 2)


@pytest.mark.parametrize("kind", [dict, Report])
def test_report_takes_records_and_objects(tmp_path: Path, kind: Callable[..., Any]) -> None:
    with serving(collector_in(tmp_path)) as served:
        with Reporter(url(served), pace=QUICK) as reporter:
            reporter.report(kind(peer="a", interval=3))
            assert reporter.flush(20)
        assert told(served) == [("a", 3)]


def test_example_reports_what_its_peers_hold(tmp_path: Path) -> None:
    """In the intervals of the run's own clock, from a process of its own."""
    with serving(collector_in(tmp_path, Options(began=datetime.now(UTC)))) as served:
        command = [sys.executable, "-m", "vizpub.reports.example", url(served)]
        command += ["--intervals", "2"]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert "sent=20" in done.stdout
        found = told(served)
        first = found[0][1]
        assert found == [(f"peer-{n}", first + i) for i in range(2) for n in range(10)]
        assert first <= served.web.intake.now
