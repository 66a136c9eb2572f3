"""Standard streams as commands find them: open, closed (as under cron), full, or read by nobody.

What people are told on stderr is never a reason to fail; data that cannot be written is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO

import typer

from cli.terminal.formatting import printable_lines
from model.errors import UseError, VizpubError

_MODES = {"stdin": "r", "stdout": "r", "stderr": "w"}
"""How the streams are opened in the place of closed ones. Standard output so that nothing can be
written to it: what was asked for would be lost.
"""


def prepare() -> None:
    """Give every standard stream that is closed its number, as else the next file that is opened,
    by us or by a program that we start, would be taken for it; and let nobody fail at stderr.
    """
    for number, (name, mode) in enumerate(_MODES.items()):
        if getattr(sys, name) is None:
            _lead_nowhere(number, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, TextIOWrapper):
        buffer, encoding = sys.stderr.buffer, sys.stderr.encoding
        sys.stderr = _Deaf(buffer, encoding, "backslashreplace", line_buffering=True)


def is_closed(stream: TextIO) -> bool:
    """Whether standard output was closed when the program began."""
    return not stream.writable()


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Where data goes that no file was named for.

    Raises: VizpubError where it cannot be written; typer.Exit where its reader has enough.
    """
    if is_closed(sys.stdout):
        raise VizpubError("standard output is closed; -o FILE writes elsewhere")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _forget(sys.stdout)
        raise typer.Exit(0) from None
    except OSError as error:
        _forget(sys.stdout)
        raise VizpubError(f"cannot write to standard output: {error.strerror}") from error


def tell(text: str) -> None:
    """A message for people, on stderr."""
    print(printable_lines(text), file=sys.stderr)


def confirm(question: str) -> None:
    """Go on if somebody says yes. Raises: typer.Abort for no, UseError where nobody answers."""
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise UseError("no answer: standard input has ended; --yes skips the question") from None
    raise typer.Abort


def _forget(stream: TextIO) -> None:
    """Python writes what is left of a stream at its exit, and would complain again."""
    with suppress(OSError, ValueError):
        _lead_nowhere(stream.fileno(), os.O_WRONLY)


def _lead_nowhere(number: int, mode: int) -> None:
    nowhere = os.open(os.devnull, mode)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    os.set_inheritable(number, True)


class _Deaf(TextIOWrapper):
    """Standard error whose writers do not learn that it is full, or that nobody listens."""

    def write(self, text: str, /) -> int:
        """As ever, or nothing."""
        with suppress(OSError):
            return super().write(text)
        _forget(self)
        return len(text)
