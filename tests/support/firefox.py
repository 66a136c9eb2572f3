"""A real Firefox, driven by its own protocol, Marionette: found on this machine, or the test is
skipped. `FIREFOX` names another one than that on the PATH.

A message is its length, a colon, and JSON: [0, number, command, parameters] to the browser, and
[1, number, error, result] from it.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker import free_ports

_PREFERENCES = {
    "marionette.port": 0,
    "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    # No name but this machine's is asked for.
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
}
_PATIENCE_S = 120


class Firefox:
    """A browser that runs."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._number = 0
        self._read()  # it greets
        self._command("WebDriver:NewSession", capabilities={})
        patience = 1000 * _PATIENCE_S
        self._command("WebDriver:SetTimeouts", script=patience, pageLoad=patience)

    def open(self, address: str) -> None:
        """Open an address."""
        self._command("WebDriver:Navigate", url=address)

    def evaluate(self, function: str) -> Any:
        """The value that a function of the page gives, perhaps later. Raises: RuntimeError."""
        script = (
            f"const done = arguments[0]; Promise.resolve(({function})())"
            ".then((value) => done({ value }), (error) => done({ error: String(error) }));"
        )
        outcome = self._command(
            "WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None
        )
        if "error" in outcome["value"]:
            raise RuntimeError(outcome["value"]["error"])
        return outcome["value"].get("value")

    def _command(self, name: str, **parameters: Any) -> Any:
        self._number += 1
        message = json.dumps([0, self._number, name, parameters]).encode()
        self._connection.sendall(b"%d:%b" % (len(message), message))
        _, _, error, outcome = self._read()
        if error:
            raise RuntimeError(error["message"])
        return outcome

    def _read(self) -> Any:
        length = b""
        while (letter := self._stream.read(1)) != b":":
            length += letter
        return json.loads(self._stream.read(int(length)))


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Start a browser without a window, with a profile in this folder."""
    program = os.environ.get("FIREFOX") or shutil.which("firefox") or shutil.which("firefox-esr")
    if program is None:
        pytest.skip("no Firefox: neither firefox nor firefox-esr is installed")
    (port,) = free_ports(1)
    preferences = {**_PREFERENCES, "marionette.port": port}
    lines = (f'user_pref("{name}", {json.dumps(value)});\n' for name, value in preferences.items())
    (profile / "user.js").write_text("".join(lines), "utf-8")
    command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    environment = {**os.environ, "HOME": str(profile)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            with _connect(port) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()


def _connect(port: int) -> socket.socket:
    """A connection to the browser, once it listens. Raises: OSError."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
