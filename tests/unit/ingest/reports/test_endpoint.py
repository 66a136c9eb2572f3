"""Which Host headers name this machine."""

from __future__ import annotations

import pytest

from ingest.reports.endpoint import names_this_machine


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
