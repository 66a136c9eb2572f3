"""Somebody who types commands of vizpub in a narrow terminal, and looks at what they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from subprocess import CompletedProcess

from rich.cells import cell_len
from typer.testing import CliRunner

from vizpub.cli.main import app

COLUMNS = 80


class Newcomer:
    """Types at most so many commands, and nothing that is longer than so many characters."""

    def __init__(
        self, call: Callable[..., CompletedProcess[str]], commands: int = 8, longest: int = 12
    ) -> None:
        self._call = call
        self._most, self._longest = commands, longest
        self.commands = 0

    def types(self, line: str) -> str:
        """What `vizpub LINE` prints: data and messages."""
        self.commands += 1
        assert self.commands <= self._most
        typed = re.findall(r"[^\s,']+", line)
        assert [word for word in typed if len(word.lstrip("-")) > self._longest] == []
        done = self._call(*shlex.split(line))
        assert done.returncode == 0, done.stderr
        printed = done.stdout + done.stderr
        assert [text for text in printed.splitlines() if cell_len(text) > COLUMNS] == []
        return printed


def called(*words: str) -> CompletedProcess[str]:
    """Call vizpub in this process."""
    result = CliRunner().invoke(app, words)
    return CompletedProcess(words, result.exit_code, result.stdout, result.stderr)
