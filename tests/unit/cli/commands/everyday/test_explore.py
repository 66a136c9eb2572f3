"""`vizpub explore` as a process: it serves, says where, and ends when it is asked to."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from tests.support.project import ROOT
from vizpub.cli.main import app


@contextmanager
def exploring(workspace: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace), "explore", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_page_is_served_until_a_signal(workspace: Path, number: int, code: int) -> None:
    with exploring(workspace, "monday", "--no-open") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#/run/monday/overlay", address)
        with urlopen(address) as answer:
            assert b"<!doctype html>" in answer.read()
        with urlopen(address.partition("#")[0] + "api/runs/monday") as answer:
            assert b'"alice"' in answer.read()
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == code, said
        assert "Traceback" not in said


def refused(workspace: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "explore", "--no-open", *words])
    assert done.exit_code == 2, done.stderr
    return done.stderr


def test_unknown_run_is_refused_with_similar_ones(workspace: Path) -> None:
    assert "monday" in refused(workspace, "mondya")


def test_workspace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "vizpub ingest" in refused(tmp_path / "none")


def test_port_in_use_is_refused(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1:{port}" in refused(workspace, "--port", port)


def test_run_that_is_not_complete_is_refused(workspace: Path) -> None:
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "explore", "half"])
    assert done.exit_code == 1
    assert "half" in done.stderr


def test_address_beyond_this_machine_has_a_token(workspace: Path) -> None:
    with exploring(workspace, "--host", "0.0.0.0", "--no-open") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://[^/]+:\d+/\?token=[\w-]{20,}", address)
