"""Which URLs and tokens reach a collector, and which Host headers name this machine."""

from __future__ import annotations

from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.support.words import naming
from vizpub.reports.endpoint import (
    IS_NO_COLLECTOR,
    NO_COLLECTOR,
    NO_URL,
    NOT_PRINTABLE,
    Endpoint,
    names_this_machine,
)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:80", "127.0.0.1", "127.1.2.3:8600", "[::1]", "[::1]:8600"],
)
def test_names_of_this_machine(host: str) -> None:
    assert names_this_machine(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", ":80", "evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example"),
        *("192.0.2.1", "0.0.0.0", "[2001:db8::1]:80", "::1", "[::1", "localhost:80:80"),
        *("evil.example@127.0.0.1", "127.0.0.1@evil.example", "localhost/", "localhost:x", "[]"),
    ],
)
def test_names_of_others(host: str) -> None:
    assert not names_this_machine(host)


def endpoint(url: str = "http://127.0.0.1:8600/v1/runs/lab", token: str | None = None) -> Endpoint:
    return Endpoint(url, token, None, 5.0)


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8600/v1/runs/lab", "localhost:8600/v1/runs/lab", "http://", "http:///v1"),
        *("http://a:b/v1", "http://a:99999/v1", "http://a:0/v1", "http://[::1/v1", "http://a..b"),
        *(f"http://{'a' * 300}/", "http://user:word@a/v1", "http://a/v1/l\u00e4b", "http://a/l b"),
        *("http://a/v1?run=lab", "http://a/v1#lab", "http://a/v1\0"),
    ],
)
def test_url_at_which_nobody_can_be_asked_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match=naming(url, NO_URL)):
        endpoint(url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://127.0.0.1:8600/v1/runs/lab", "/v1/runs/lab"),
        ("http://[::1]:8600/v1/runs/lab/", "/v1/runs/lab"),
        ("https://b\u00fccher.example/v1/runs/lab", "/v1/runs/lab"),
        ("http://a/v1/runs/lab/reports", "/v1/runs/lab"),
        ("http://a/behind/v1/runs/lab/reports/", "/behind/v1/runs/lab"),
        ("http://a/v1/runs/reports", "/v1/runs/reports"),
        ("http://a", ""),
    ],
)
def test_address_for_reports_names_their_run(url: str, path: str) -> None:
    assert endpoint(url).path == path


def test_token_is_given_as_it_stands_in_a_file() -> None:
    assert endpoint(token=" secret\n").headers == {"authorization": "Bearer secret"}
    assert endpoint(token="\n").headers == endpoint().headers == {}


@pytest.mark.parametrize("token", ["two\nlines", "n\0l", "l\u00e4b"])
def test_token_that_no_header_can_have_is_an_error(token: str) -> None:
    with pytest.raises(ValueError, match=NOT_PRINTABLE) as caught:
        endpoint(token=token)
    assert token not in str(caught.value)


def test_answer_is_told_apart_from_no_answer() -> None:
    """What is asked here is a web server of Python, and then nobody."""
    handler = type("Silent", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(OSError, match=naming(url, IS_NO_COLLECTOR)):
            endpoint(url).ask("/")
        with pytest.raises(OSError, match=naming(f"{url}/v1/runs/lab", 404)):
            endpoint(f"{url}/v1/runs/lab").ask()
        server.shutdown()
    with pytest.raises(OSError, match=naming(NO_COLLECTOR, url)):
        endpoint(url).ask()
