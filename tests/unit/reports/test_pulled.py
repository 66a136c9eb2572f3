"""What a peer serves to a collector that asks."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from vizpub.reports.pulled import CURSOR, MORE, NO_COMMANDS, READABLE, ReportServer
from vizpub.reports.records import Report

ROOT = Path(__file__).parents[3]


def asked(
    server: ReportServer, path: str, context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, list[Any], http.client.HTTPResponse]:
    place = urlsplit(server.url).netloc
    connection = (
        http.client.HTTPSConnection(place, timeout=20, context=context)
        if context
        else http.client.HTTPConnection(place, timeout=20)
    )
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    found = [json.loads(line) for line in body.splitlines()] if answer.status == 200 else []
    return answer.status, found, answer


def intervals(records: list[Any]) -> list[int]:
    return [record["interval"] for record in records]


def report(interval: int) -> dict[str, Any]:
    return {"peer": "a", "interval": interval, "neighbors": []}


def test_server_needs_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import vizpub.reports.pulled; "
        "new = {n.split('.')[0] for n in set(sys.modules) - before}; "
        "sys.exit(str(new - sys.stdlib_module_names - {'vizpub'} or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""


def test_cursor_gives_what_followed_it() -> None:
    with ReportServer() as server:
        server.report(report(0))
        server.report(Report(peer="b", interval=0))
        status, found, answer = asked(server, "/report")
        assert status == 200
        assert [(record["peer"], record["interval"]) for record in found] == [("a", 0), ("b", 0)]
        assert found[0]["seq"] < found[1]["seq"]
        server.report(report(1))
        cursor = answer.headers[CURSOR]
        for _ in range(2):  # an answer that was lost is asked for again
            _, found, answer = asked(server, f"/report?since={cursor}")
            assert intervals(found) == [1]
        assert asked(server, f"/report?since={answer.headers[CURSOR]}")[1] == []


def test_unknown_cursor_gives_all_that_is_held() -> None:
    with ReportServer() as before:
        before.report(report(0))
        foreign = asked(before, "/report")[2].headers[CURSOR]
    with ReportServer() as server:
        server.report(report(1))
        own = asked(server, "/report")[2].headers[CURSOR]
        name = own.rpartition("-")[0]
        for cursor in ("", foreign, "x", f"{name}-9", f"{name}-%C2%B2", f"{name}-{'9' * 5000}"):
            assert intervals(asked(server, f"/report?since={cursor}")[1]) == [1], cursor[:50]


def test_full_memory_drops_the_oldest_and_counts_those_never_fetched() -> None:
    with ReportServer(memory=5000) as server:
        for interval in range(100):
            server.report(report(interval))
        _, found, answer = asked(server, "/report")
        assert intervals(found) == list(range(server.dropped, 100))
        assert 0 < server.dropped < 100
        cursor, dropped = answer.headers[CURSOR], server.dropped
        asked(server, f"/report?since={cursor}")
        for interval in range(100, 110):
            server.report(report(interval))
        assert server.dropped == dropped
        assert intervals(asked(server, f"/report?since={cursor}")[1]) == list(range(100, 110))


def test_large_content_comes_in_parts() -> None:
    """Nothing is missing or doubled, and the last part says that it is the last."""
    with ReportServer(memory=2**26) as server:
        for interval in range(12):
            server.report({**report(interval), "topics": ["x" * 1_000_000]})
        since, seen, parts = "", [], 0
        while True:
            _, found, answer = asked(
                server, f"/report?since={since}", **{"accept-encoding": "gzip"}
            )
            assert found
            seen += intervals(found)
            since, parts = answer.headers[CURSOR], parts + 1
            if answer.headers[MORE] == "0":
                break
        assert seen == list(range(12))
        assert parts > 2


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/report", {}, 200),
        ("/report", {"host": "[::1]:80"}, 200),
        ("/report", {"host": "evil.example"}, 401),
        ("/report", {"host": "127.0.0.1.evil.example"}, 401),
        ("/", {}, 404),
        ("/reports", {}, 404),
    ],
)
def test_server_without_a_token_serves_this_machine_only(
    path: str, headers: dict[str, str], status: int
) -> None:
    with ReportServer() as server:
        assert asked(server, path, **headers)[0] == status


def test_server_listens_at_an_address_of_ipv6() -> None:
    if not has_ipv6():
        pytest.skip("no IPv6 here")
    with ReportServer("::1") as server:
        server.report(report(0))
        assert server.url.startswith("http://[::1]:")
        assert intervals(asked(server, "/report")[1]) == [0]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_others_need_the_token_and_a_certificate() -> None:
    for options in ({}, {"token": "secret"}):
        with pytest.raises(ValueError, match=READABLE):
            ReportServer("0.0.0.0", **options)  # type: ignore[arg-type]
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(ours)
    authority.configure_trust(theirs)
    with ReportServer(token="secret", context=ours) as server:
        server.report(report(0))
        assert asked(server, "/report", theirs)[0] == 401
        assert asked(server, "/report", theirs, authorization="Bearer wrong")[0] == 401
        status, found, _ = asked(server, "/report", theirs, authorization="Bearer secret")
        assert (status, intervals(found)) == (200, [0])


def commanded(server: ReportServer, body: bytes, **headers: str) -> tuple[int, Any]:
    place = urlsplit(server.url).netloc
    connection = http.client.HTTPConnection(place, timeout=20)
    connection.request("POST", "/commands", body, {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if answer.status == 200 else text.decode()


def given(*ids: int) -> bytes:
    told = [{"id": n, "peer": "a", "action": "leave", "expires_in_s": 60} for n in ids]
    return json.dumps({"commands": told}).encode()


def test_commands_wait_until_they_are_answered() -> None:
    with ReportServer() as server:
        assert server.commands() == []
        assert commanded(server, given(1, 2)) == (200, {"answers": []})
        wanted = [{"id": n, "peer": "a", "action": "leave"} for n in (1, 2)]
        assert server.commands() == server.commands() == wanted
        server.answer(1)
        server.answer(2, "it is the last")
        answers = {
            "answers": [
                {"id": 1, "obeyed": True, "reason": None},
                {"id": 2, "obeyed": False, "reason": "it is the last"},
            ]
        }
        for _ in range(2):  # an answer that was lost is fetched again
            assert commanded(server, given(1, 2)) == (200, answers)
        assert server.commands() == []


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (given(1), {"content-type": "text/plain"}, 415),
        (given(1), {"content-type": "application/x-www-form-urlencoded"}, 415),
        (given(1), {"host": "evil.example"}, 401),
        (given(1), {"content-length": "9999999"}, 413),
        (given(1), {"content-length": "-1"}, 413),
        (b"[]", {}, 400),
        (b"{", {}, 400),
        (b"\xff", {}, 400),
        (b'{"commands": [{"id": 1}]}', {}, 400),
        (b'{"commands": [7]}', {}, 400),
    ],
)
def test_wrong_command_is_refused(body: bytes, headers: dict[str, str], code: int) -> None:
    with ReportServer() as server:
        server.commands()
        assert commanded(server, body, **headers)[0] == code
        assert server.commands() == []


def test_commands_are_refused_until_somebody_asks_for_them() -> None:
    with ReportServer() as server:
        status, text = commanded(server, given(1))
        assert (status, NO_COMMANDS in text) == (403, True)
        assert server.commands() == []
        assert commanded(server, given(1))[0] == 200


def test_commands_need_the_token() -> None:
    with ReportServer(token="secret") as server:
        server.commands()
        assert commanded(server, given(1))[0] == 401
        assert commanded(server, given(1), authorization="Bearer secret")[0] == 200
