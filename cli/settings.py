"""Global options: where the runs are, and which messages are shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.terminal.streams import tell
from model.progress import Progress, silent
from runstore.leavings import SCRATCH


@dataclass(frozen=True)
class Settings:
    """The global options of one call."""

    workspace: Path = Path("vizpub-data")
    debug: bool = False
    quiet: bool = False
    color: bool = True

    @property
    def scratch(self) -> Path:
        """Where Spark's temporary files are, and the session that stays."""
        return self.workspace / SCRATCH

    def as_arguments(self) -> list[str]:
        """The same options as words of a command line."""
        switches = {"--debug": self.debug, "--quiet": self.quiet, "--no-color": not self.color}
        chosen = [word for word, on in switches.items() if on]
        return ["--workspace", str(self.workspace), *chosen]

    def say(self, text: str) -> None:
        """A message for the person at the terminal, on stderr; data never goes here."""
        if not self.quiet:
            tell(text)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Progress of long work: a bar on a terminal, else a line per step."""
        if self.quiet:
            yield silent
        elif sys.stderr.isatty():
            from cli.terminal.progress import bar

            with bar(color=self.color) as progress:
                yield progress
        else:
            from cli.terminal.progress import line_per_step

            yield line_per_step(self.say)
