"""What a person at a terminal sees: a real pseudo-terminal, a process of its own."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.few import few

ROOT = Path(__file__).parents[3]
BOLD = re.compile(r"\x1b\[[01]m")


def seen(workspace: Path, *words: str, **environment: str) -> str:
    """What comes out of stdout on a terminal."""
    master, terminal = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from vizpub.cli.main import app; app(prog_name='vizpub')",
         "--workspace", str(workspace), *words],
        cwd=ROOT, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(terminal)
    text = b""
    while chunk := _read(master):
        text += chunk
    os.close(master)
    assert process.wait() == 0
    return text.decode("utf-8")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


@pytest.mark.parametrize("form", few(["table", "csv", "json", "jsonl", "md"], ["table", "json"]))
def test_control_characters_of_records_never_reach_the_terminal(workspace: Path, form: str) -> None:
    shown = seen(workspace, "sql", "monday", "FROM quarantine", "--format", form)
    assert "[31mred" in shown
    assert "\x1b" not in BOLD.sub("", shown)


def test_header_is_bold_unless_colour_is_off(workspace: Path) -> None:
    assert "\x1b[1m" in seen(workspace, "runs", "list")
    assert "\x1b" not in seen(workspace, "runs", "list", NO_COLOR="1")
    assert "\x1b" not in seen(workspace, "--no-color", "runs", "list")


def test_table_fits_the_terminal_width(workspace: Path) -> None:
    lines = seen(workspace, "--no-color", "metrics", "monday", COLUMNS="60").splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("interval")
