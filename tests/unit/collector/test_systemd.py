"""What systemd is told, read from the socket that it would listen at."""

from __future__ import annotations

import secrets
import socket
import sys
from pathlib import Path

import pytest

from vizpub.collector.systemd import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_gets_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    if abstract and sys.platform != "linux":
        pytest.skip("a path that is another in each process")
    name = f"vizpub-{secrets.token_hex(8)}"
    address = f"\0{name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", address.replace("\0", "@"))
        notify("READY=1")
        assert systemd.recv(100) == b"READY=1"


def test_line_for_nobody_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("", str(tmp_path / "gone")):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("WATCHDOG=1")
