"""Global options: the workspace, and which messages are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vizpub.cli.terminal.streams import message
from vizpub.model.progress import Progress, silent
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.stores.place import name_of


@dataclass(frozen=True)
class Settings:
    """The global options of one call."""

    workspace: Path = Path("vizpub-data")
    debug: bool = False
    quiet: bool = False
    color: bool = True
    verbose: bool = False
    json_log: bool = False
    config: Path | None = None
    """The configuration file, if it is not the workspace's own."""

    @property
    def place(self) -> str:
        """The workspace as the user names it."""
        return name_of(self.workspace)

    @property
    def scratch(self) -> Path:
        """Folder of Spark's temporary files and of the session that keeps running."""
        return self.workspace / SCRATCH

    def as_arguments(self) -> list[str]:
        """The same options as command-line arguments."""
        switches = {"--debug": self.debug, "--quiet": self.quiet, "--no-color": not self.color}
        switches |= {"--verbose": self.verbose, "--log-format=json": self.json_log}
        switches |= {f"--config={self.config}": self.config is not None}
        chosen = [word for word, on in switches.items() if on]
        return ["--workspace", str(self.workspace), *chosen]

    def say(self, text: str, level: str = "info", **fields: Any) -> None:
        """Print a message for the user on stderr; the fields are for programs."""
        if not self.quiet:
            message(text, level, **fields)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show progress: a bar on a terminal, otherwise a line per step."""
        if self.quiet:
            yield silent
        elif sys.stderr.isatty() and not self.json_log:
            with progress_bar(color=self.color) as progress:
                yield progress
        else:
            yield _print_steps(self.say)


@contextmanager
def progress_bar(*, color: bool = True) -> Iterator[Progress]:
    """A progress bar per step during the block; a total of 0 means unknown."""
    import rich.progress as rp
    from rich.console import Console

    columns = (
        rp.SpinnerColumn(finished_text="✓"),
        rp.TextColumn("{task.description}", markup=False),
        rp.BarColumn(),
        rp.TaskProgressColumn(),
        rp.TimeElapsedColumn(),
        rp.TimeRemainingColumn(),
        rp.TextColumn("{task.fields[note]}", markup=False),
    )
    console = Console(stderr=True, no_color=not color)
    with rp.Progress(*columns, console=console, transient=True) as display:
        tasks: dict[str, rp.TaskID] = {}

        def show(step: str, done: int, total: int, note: str = "") -> None:
            if step not in tasks:
                for earlier in tasks.values():
                    display.stop_task(earlier)
                tasks[step] = display.add_task(step, total=None, note="")
            display.update(tasks[step], completed=done, total=total or None, note=note)

        yield show


def _print_steps(say: Callable[..., None]) -> Progress:
    """Print the name of each step once, when it begins: for logs and pipes."""
    printed: set[str] = set()

    def show(step: str, done: int, total: int, note: str = "") -> None:
        if step not in printed:
            printed.add(step)
            say(step, step=step, done=done, total=total)

    return show
