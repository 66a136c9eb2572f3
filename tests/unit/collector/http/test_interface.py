"""The HTTP interface over a real socket: what is taken, what is refused and how."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.collected import until
from tests.support.collecting import RESERVE, Options, Served, collector_in, serving
from tests.support.words import tells
from vizpub.collector.http import protocol
from vizpub.collector.http.bodies import BodyLimits
from vizpub.collector.intake import IntakeLimits
from vizpub.collector.log import log
from vizpub.collector.place import CollectionPlace


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., AbstractContextManager[Served]]:
    return lambda options=None: serving(collector_in(tmp_path, options))


def zstd(body: bytes) -> bytes:
    packed: bytes = pa.compress(body, "zstd", asbytes=True)
    return packed


def report(peer: str = "a", interval: int = 0, **more: Any) -> bytes:
    told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, **more}
    return json.dumps(told).encode()


def test_lines_are_taken_or_refused_with_their_reasons(serve: Any) -> None:
    body = b"\n".join(
        [
            report("a"),
            b"",
            b"{",
            report("b", control={"sent": {"bytes": -1}}),
            report("c", run="other"),
            report("d"),
            report("e")[:20],
        ]
    )
    with serve() as served:
        code, told, _ = served.post(body)
        assert code == 202
        assert (told["taken"], told["late"], told["refused"]) == (2, 0, 4)
        assert [line["line"] for line in told["lines"]] == [3, 4, 5, 7]
        assert "negative" in told["lines"][1]["reason"]
        assert "other" in told["lines"][2]["reason"]
        assert served.lines() == [report("a"), report("d")]


def test_line_that_is_too_long_is_refused_as_such(serve: Any) -> None:
    long = report("long", topics=["t" * 2**20])
    with serve() as served:
        _, told, _ = served.post(long + b"\n" + report("a"))
        assert (told["taken"], told["refused"]) == (1, 1)
        assert told["lines"] == [
            {"line": 1, "reason": f"a line of {len(long):,} bytes is too long"}
        ]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_body_may_be_compressed(serve: Any, pack: Callable[[bytes], bytes]) -> None:
    body = b"".join(report(f"p{n}") + b"\n" for n in range(5000))
    with serve() as served:
        code, told, _ = served.post(pack(body))
        assert (code, told["taken"]) == (202, 5000)
        assert len(served.lines()) == 5000


def test_damaged_body_is_refused_as_a_whole(serve: Any) -> None:
    packed = gzip.compress(report("a") + b"\n" + report("b"))
    with serve() as served:
        for body in (packed[:-12], packed[:20] + b"\0" + packed[21:]):
            code, told, _ = served.post(body)
            assert code == 400
            assert "damaged" in told["error"]
        assert served.lines() == []


@pytest.mark.parametrize("bomb", ["gzip", "zstd"])
def test_bomb_is_refused_before_it_is_whole(serve: Any, bomb: str) -> None:
    content = bytes(20 * 2**20)
    packed = gzip.compress(content, 9) if bomb == "gzip" else zstd(content)
    with serve(Options(bodies=BodyLimits(content=2**20))) as served:
        code, told, _ = served.post(packed)
        assert code == 413
        assert "decompressed" in told["error"]
        assert served.post(report())[0] == 202  # it goes on


def test_huge_body_is_refused_with_or_without_its_length(serve: Any) -> None:
    with serve(Options(bodies=BodyLimits(sent=1000))) as served:
        assert served.post(b" " * 1001)[0] == 413
        with socket.create_connection(("127.0.0.1", served.port), 20) as raw:
            raw.sendall(b"POST /v1/runs/lab/reports HTTP/1.1\r\nhost: localhost\r\n")
            raw.sendall(b"content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(11):
                raw.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
            assert b" 413 " in raw.recv(1000)


def test_slow_body_is_given_up(serve: Any) -> None:
    with serve(Options(bodies=BodyLimits(seconds=0.2))) as served:
        with socket.create_connection(("127.0.0.1", served.port), 20) as raw:
            raw.sendall(b"POST /v1/runs/lab/reports HTTP/1.1\r\nhost: localhost\r\n")
            raw.sendall(b"content-type: application/x-ndjson\r\ncontent-length: 9\r\n\r\n123")
            assert b" 408 " in raw.recv(1000)
        served.web.bodies = BodyLimits()
        assert served.post(report())[0] == 202


def test_slow_headers_end_the_connection(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADERS_S", 0.2)
    with serve() as served:
        for beginning in (b"", b"POST /v1/runs/lab/reports HTTP/1.1\r\nhost: loc"):
            with socket.create_connection(("127.0.0.1", served.port), 20) as raw:
                raw.sendall(beginning)
                assert raw.recv(1000) == b""


def test_number_of_thousands_of_digits_is_none(serve: Any) -> None:
    number = "9" * 5000
    with serve(Options(commands=True)) as served:
        for method in ("GET", "POST"):
            told = served.ask(
                method,
                f"/v1/runs/lab/commands/{number}",
                b'{"obeyed": true}',
                content_type="application/json",
            )
            assert told[0] == 404
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as asking:
            asking.request("GET", "/v1/runs/lab/events", headers={"last-event-id": number})
            assert asking.getresponse().status == 200


def test_unknown_run_and_type_are_refused(serve: Any) -> None:
    with serve() as served:
        assert (
            served.ask(
                "POST",
                "/v1/runs/other/reports",
                report(),
                **{"content_type": "application/x-ndjson"},
            )[0]
            == 404
        )
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            assert served.post(report(), content_type=kind)[0] == 415
        assert served.ask("GET", "/v1/runs/lab/reports")[0] == 405


def test_foreign_host_is_refused_without_tokens(serve: Any) -> None:
    with serve() as served:
        for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", ""):
            assert served.post(report(), host=host)[0] == 400, host
        for host in ("localhost", "127.0.0.1:80", "[::1]:80", "[::1]"):
            assert served.post(report(), host=host)[0] == 202, host


def test_token_allows_what_it_is_for(serve: Any, tmp_path: Path) -> None:
    with serve(Options(tokens=True)) as served:
        folder = CollectionPlace(tmp_path, "lab").tokens
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        tokens = {path.name: path.read_text().strip() for path in folder.iterdir()}
        allowed = {"report": "PR", "read": "RE", "admin": "PRE", "": "", "none": ""}
        for name, may in allowed.items():
            given = {"authorization": f"Bearer {tokens.get(name, name)}"}
            assert (served.post(report(), **given)[0] == 202) == ("P" in may), name
            assert (served.ask("GET", "/metrics", **given)[0] == 200) == ("E" in may), name
            asked = served.ask("GET", "/v1/runs/lab", **given)[0]
            assert asked == (200 if may else 401), name
        assert served.ask("GET", "/healthz")[0] == 200
        (folder / "report").write_text("another\n")
        assert served.web.tokens
        served.web.tokens.load()
        assert served.post(report(), authorization=f"Bearer {tokens['report']}")[0] == 401
        assert served.post(report(), authorization="Bearer another")[0] == 202


def test_clock_a_day_ahead_is_refused_by_name(serve: Any) -> None:
    with serve() as served:
        for first in (86_400, 17):
            _, told, _ = served.post(report("wrong", first))
            assert "'wrong'" in told["lines"][0]["reason"]
        served.post(b"\n".join(report(f"p{n}", 10) for n in range(3)))
        _, told, _ = served.post(report("p0", 26) + b"\n" + report("p1", 27))
        assert told["taken"] == 1
        tells(told["lines"][0]["reason"], "10")
        progress = served.ask("GET", "/v1/runs/lab")[1]["progress"]
        assert progress["refused_peers"] == {"wrong": 2, "p1": 1}


def test_two_peers_with_one_name_are_told(serve: Any) -> None:
    with serve() as served:
        assert served.post(report("a", 1, seq=4, neighbors=["b"]))[1]["taken"] == 1
        assert served.post(report("a", 1, seq=4, neighbors=["b"]))[1]["taken"] == 1  # repeated
        _, told, _ = served.post(report("a", 1, seq=4, neighbors=["c"]))
        tells(told["lines"][0]["reason"], "'a'", "interval 1")
        assert served.post(report("a", 1, seq=5, neighbors=["c"]))[1]["taken"] == 1
        # Also in one request, as of a reporter that speaks for both.
        both = report("b", 1, seq=4, neighbors=["c"]) + b"\n" + report("b", 1, seq=4)
        _, told, _ = served.post(both + b"\n" + report("b", 1, seq=4, neighbors=["c"]))
        assert (told["taken"], [line["line"] for line in told["lines"]]) == (2, [2])


def test_peers_beyond_the_limit_are_refused(serve: Any) -> None:
    options = Options(limits=IntakeLimits(peers=2, reserve=RESERVE))
    with serve(options) as served:
        _, told, _ = served.post(b"\n".join(report(peer) for peer in "abc"))
        assert (told["taken"], told["refused"]) == (2, 1)
        _, told, _ = served.post(report("c") + b"\n" + report("a", 1))
        assert (told["taken"], told["refused"]) == (1, 1)
    with serve(options) as served:
        _, told, _ = served.post(report("c") + b"\n" + report("b", 1))
        assert (told["taken"], told["refused"]) == (1, 1)


def test_full_log_asks_to_wait(serve: Any) -> None:
    with serve(Options(limits=IntakeLimits(log=500, reserve=RESERVE))) as served:
        codes = [served.post(report("a", interval))[0] for interval in range(12)]
        assert codes[0] == 202
        assert codes[-1] == 429
        _, told, answer = served.post(report("a", 12))
        assert int(answer.headers["retry-after"]) > 0
        assert "behind" in told["error"]


def test_full_disk_and_pause_say_send_it_again(serve: Any) -> None:
    with serve(Options(limits=IntakeLimits(reserve=2**62))) as served:
        code, told, answer = served.post(report())
        assert (code, "disk" in told["error"]) == (503, True)
        assert answer.headers["retry-after"]
        assert served.ask("GET", "/readyz")[0] == 503
        assert served.ask("GET", "/healthz")[0] == 200
    with serve() as served:
        served.web.progress.draining = True
        assert served.post(report())[0] == 503


def test_failed_sync_is_not_acknowledged(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    really, broken = log.sync, True

    def sync(handle: int) -> None:
        if broken:
            raise OSError(5, "Input/output error")
        really(handle)

    with serve() as served:
        monkeypatch.setattr(log, "sync", sync)
        code, told, _ = served.post(report("a"))
        assert (code, "Input/output error" in told["error"]) == (503, True)
        assert served.ask("GET", "/v1/runs/lab")[1]["progress"]["reports"] == 0
        broken = False
        assert served.post(report("b"))[0] == 202
        assert served.lines() == [report("b")]


def test_run_header_makes_numbers_of_peers_meet(serve: Any) -> None:
    with serve() as served:
        told = served.ask("GET", "/v1/runs/lab")[1]["header"]
        assert (told["run"], told["interval_us"], told["fields"]) == (
            "lab",
            1_000_000,
            ["neighbors"],
        )
        assert told["epoch"].startswith("2999")
        assert told["now_us"] == 0
        other = json.dumps({"format": "vizpub.run/1", "interval_us": 5}).encode()
        assert served.post(other)[1]["refused"] == 1
        mine = json.dumps({"format": "vizpub.run/1", "protocol": "gossip", "seed": 4}).encode()
        assert served.post(mine)[1]["taken"] == 1
        assert served.ask("GET", "/v1/runs/lab")[1]["header"]["protocol"] == "gossip"


def test_intake_goes_on_where_its_log_ends(serve: Any) -> None:
    """Another collector of the same place knows what the first one knew."""
    with serve() as served:
        served.post(report("a", 3) + b"\n" + report("b", 4, left=True))
        asyncio.run_coroutine_threadsafe(served.web.intake._close(3), served.loop).result(20)
        assert served.post(report("a", 2))[1]["late"] == 1
        before = served.web.intake
    with serve() as served:
        after = served.web.intake
        assert after.closing.state() == before.closing.state()
        assert after.closed_at == before.closed_at
        assert after.counts == before.counts
        assert after.header == before.header
        assert served.post(report("a", 3))[1]["late"] == 1


def test_events_give_rows_from_where_a_reader_was(serve: Any) -> None:
    with serve() as served:

        def commit(first: int, last: int) -> None:
            rows = [{"interval": i, "peers": 7} for i in range(first, last + 1)]
            told = {
                "number": 1,
                "position": 9,
                "closed": last,
                "seconds": 1.0,
                "late": 0,
                "left": [0, 0, 0],
                "control": {},
                "rows": rows,
            }
            served.loop.call_soon_threadsafe(served.web.progress.note_commit, told)

        commit(0, 9)
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        connection.request("GET", "/v1/runs/lab/events", headers={"last-event-id": "6"})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        seen: list[int] = []
        while len(seen) < 3:
            line = answer.fp.readline()
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
        commit(10, 200)  # too many at once: the newest one
        while len(seen) < 4:
            line = answer.fp.readline()
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
        assert seen == [7, 8, 9, 200]
        connection.close()


def test_slow_reader_gets_the_newest_row_and_slows_nobody(serve: Any) -> None:
    count = 1_200
    with serve() as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        connection.request("GET", "/v1/runs/lab/events")
        answer = connection.getresponse()
        told = {"number": 1, "position": 9, "seconds": 1.0, "late": 0}
        told |= {"left": [0, 0, 0], "control": {}}
        for interval in range(count):  # more than the sockets hold
            row = {"interval": interval, "pad": "x" * 20_000}
            done = {**told, "closed": interval, "rows": [row]}
            served.loop.call_soon_threadsafe(served.web.progress.note_commit, done)
            if interval % 200 == 0:
                assert served.post(report("a", interval // 200))[0] == 202
        seen: list[int] = []
        while not seen or seen[-1] < count - 1:
            line = answer.fp.readline()
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
        connection.close()
    assert seen == sorted(seen)
    assert len(seen) < count


def test_metrics_are_in_the_text_format_of_prometheus(serve: Any) -> None:
    with serve() as served:
        served.post(report("a") + b"\n{")
        _, text, answer = served.ask("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        values = dict(line.split(" ") for line in text.splitlines() if not line.startswith("#"))
        assert values["vizpub_reports_total"] == "1"
        assert values["vizpub_refused_lines_total"] == "1"
        assert values["vizpub_spark_up"] == "0"
        told = {"number": 1, "position": 9, "closed": 1, "seconds": 1.0, "late": 0}
        told |= {"left": [0, 0, 0], "control": {"sent": {"ihave": 4}, "received": {}}}
        rows = [
            {"interval": 0, "publications": 2, "receptions": 9, "duplicates": None},
            {"interval": 1, "publications": 1, "receptions": 12_345_678, "duplicates": 5},
        ]
        for count, row in enumerate(rows):
            served.web.progress.note_commit({**told, "rows": [row]})
            text = served.ask("GET", "/metrics")[1]
            values = dict(line.split(" ") for line in text.splitlines() if not line.startswith("#"))
            filtered = values.get("gossipsub_topic_msg_recv_counts_total")
            assert filtered == (None, "12345673")[count]
        assert values["gossipsub_topic_msg_recv_counts_unfiltered_total"] == "12345687"
        assert values["gossipsub_topic_msg_published_total"] == "3"
        typed = [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")]
        assert sorted(typed) == sorted(name.partition("{")[0] for name in values)
        assert values['gossipsub_rpc_sent_total{message_type="ihave"}'] == "8"
        assert "peer=" not in text


def test_reporter_in_bash_reports_and_says_what_is_refused(serve: Any, tmp_path: Path) -> None:
    script = Path(__file__).parents[4] / "examples" / "report.sh"
    (tmp_path / "token").write_text("any\n")

    def reporter(served: Served, run: str, fields: str, *others: str) -> subprocess.Popen[str]:
        urls = ",".join((*others, f"http://127.0.0.1:{served.port}/v1/runs/{run}"))
        command = ["bash", str(script), urls, "17"]
        return subprocess.Popen(
            [*command, "echo", fields],
            env=os.environ | {"TOKEN_FILE": str(tmp_path / "token")},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    with serve() as served:
        right = reporter(served, "lab", '{"neighbors": ["3"], "topics": ["news"]}')
        wrong = reporter(served, "lab", '{"neighbors": 3}', "http://127.0.0.1:1/v1/runs/lab")
        until(lambda: served.web.intake.counts["reports"] >= 1)
        until(lambda: served.web.intake.counts["refused"] >= 1)
        lost = reporter(served, "other", "{}")
        assert "404" in lost.communicate(timeout=120)[1]
        assert lost.returncode == 1
        for process in (right, wrong):
            process.terminate()
        assert right.communicate(timeout=120)[1] == ""
        tells(wrong.communicate(timeout=120)[1], "neighbors")


def test_reporters_at_once_lose_nothing(serve: Any) -> None:
    with serve() as served:

        def work(number: int) -> None:
            for interval in range(10):
                assert served.post(report(f"p{number}", interval))[0] == 202

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(served.lines()) == sorted(
            report(f"p{n}", i) for n in range(16) for i in range(10)
        )
