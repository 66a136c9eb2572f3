"""Standard streams that may be closed (as under cron), full, or without a reader.

A message that cannot be written to stderr is dropped; data that cannot be written is an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any, TextIO

import typer

from vizpub.cli.terminal.formatting import printable_lines
from vizpub.model.errors import UseError, VizpubError

CLOSED = "standard output is closed"
_MODES = {"stdin": "r", "stdout": "r", "stderr": "w"}
"""How closed streams are opened again. Standard output is opened for reading, so that writing
data fails instead of losing it.
"""


def prepare() -> None:
    """Open closed standard streams, and make writing to stderr never fail.

    Otherwise the next file that this process or a child opens would get the stream's number.
    """
    for number, (name, mode) in enumerate(_MODES.items()):
        if getattr(sys, name) is None:
            _redirect_to_null(number, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, TextIOWrapper):
        buffer, encoding = sys.stderr.buffer, sys.stderr.encoding
        sys.stderr = _LossyStream(buffer, encoding, "backslashreplace", line_buffering=True)


def is_closed(stream: TextIO) -> bool:
    """Return True if the stream was closed when the program began (see `prepare`)."""
    return not stream.writable()


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Standard output, for data.

    Raises: VizpubError if it cannot be written, typer.Exit if its reader has ended.
    """
    if is_closed(sys.stdout):
        raise VizpubError(f"{CLOSED}; -o FILE writes elsewhere")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        raise typer.Exit(0) from None
    except OSError as error:
        _discard(sys.stdout)
        raise VizpubError(f"cannot write to standard output: {error.strerror}") from error


def terminal_width(out: TextIO) -> int | None:
    """Columns of the terminal of `out` (COLUMNS takes precedence); null if there is none."""
    if columns := os.environ.get("COLUMNS", ""):
        return int(columns) if columns.isdigit() and int(columns) else None
    # A terminal of unknown size reports 0.
    return os.get_terminal_size(out.fileno()).columns or None if out.isatty() else None


class Style:
    """Form of the messages: text, or one JSON object per line."""

    def __init__(self) -> None:
        self.json = False


STYLE = Style()
"""Of this process; the command line sets it before a command begins."""


def message(text: str, level: str = "info", *, prefix: str = "", **fields: Any) -> None:
    """Print a message for the user on stderr; only JSON has the level and the fields, and only
    text the prefix.
    """
    if not STYLE.json:
        print(_wrap_lines(printable_lines(prefix + text)), file=sys.stderr)
        return
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    print(json.dumps({"time": now, "level": level, "message": text, **fields}), file=sys.stderr)


def _wrap_lines(text: str) -> str:
    """Break lines that are too long for the terminal between words; paths stay whole."""
    width = terminal_width(sys.stderr)
    if not width or all(len(line) <= width for line in text.split("\n")):
        return text
    from textwrap import wrap

    parts = (
        wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        if len(line) > width
        else [line]
        for line in text.split("\n")
    )
    return "\n".join(line for part in parts for line in part)


def launch_pages(pages: Sequence[str], wanted: bool | None) -> None:
    """Open pages in a web browser; without a wish, only if this is a terminal."""
    if sys.stdout.isatty() if wanted is None else wanted:
        for page in pages:
            typer.launch(page)


def confirm(question: str) -> None:
    """Ask for confirmation. Raises: typer.Abort for no, UseError without an answer."""
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise UseError("no answer: standard input has ended; --yes skips the question") from None
    raise typer.Abort


def _discard(stream: TextIO) -> None:
    """Drop the rest of a stream; Python would write it at exit and fail again."""
    with suppress(OSError, ValueError):
        _redirect_to_null(stream.fileno(), os.O_WRONLY)


def _redirect_to_null(number: int, mode: int) -> None:
    null = os.open(os.devnull, mode)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)


class _LossyStream(TextIOWrapper):
    """Standard error that drops text that cannot be written (full disk, no reader)."""

    def write(self, text: str, /) -> int:
        """Write the text; on an error, drop it and all later text."""
        with suppress(OSError):
            return super().write(text)
        _discard(self)
        return len(text)
