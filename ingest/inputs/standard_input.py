"""Standard input, in a file while it is ingested: all input is read more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, TextIO

from vizpub.ingest.inputs.files import UNREADABLE
from vizpub.machine.locks import OF_STDIN, own_folder
from vizpub.model.errors import FULL, DiskFull, InputError, UseError
from vizpub.reports.compressed import PACKED

EMPTY = "standard input is empty"
NOTHING_PIPED = "nothing is piped into standard input"

STDIN = "-"
"""The path that stands for standard input."""
_PIPED = "pipe it in, for example: zcat trace.json.gz | vizpub ingest - --run NAME"


@contextmanager
def stdin_as_file(
    paths: Sequence[str], stream: TextIO | None, scratch: Path
) -> Iterator[tuple[str, ...]]:
    """Copy `stream` to a file in `scratch` for the block, and yield the paths with it in place of
    `-`.

    The file always has the same name, so the same input is the same run.

    Raises: UseError if the stream is a terminal or cannot be copied; InputError if it is empty;
    DiskFull.
    """
    if STDIN not in paths:
        yield tuple(paths)
        return
    if stream is None or stream.isatty():  # null: closed
        raise UseError(f"{NOTHING_PIPED}: {_PIPED}")
    with ExitStack() as until_the_end:
        with _disk_errors(scratch):
            folder = until_the_end.enter_context(own_folder(scratch, OF_STDIN))
            file = _copy_stream(stream.buffer, folder / "stdin")
        yield tuple(str(file) if path == STDIN else path for path in paths)


@contextmanager
def _disk_errors(scratch: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(scratch)) from error
        why = f"standard input cannot be kept in {scratch}: {error.strerror}"
        raise UseError(why) from error


class _PipedInput:
    """A stream whose read errors are InputErrors, to tell them from errors of the copy."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """Read like any binary stream. Raises: InputError."""
        try:
            return self._stream.read(size)
        except OSError as error:
            raise InputError(f"standard input {UNREADABLE}: {error.strerror}", _PIPED) from error


def _copy_stream(stream: BinaryIO, path: Path) -> Path:
    """Copy the stream to a file, and return its path with the suffix of the content's packing."""
    with path.open("wb") as file:
        copyfileobj(_PipedInput(stream), file)
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise InputError(EMPTY, _PIPED)
    for magic, (suffix, *_) in PACKED.values():
        if start.startswith(magic):
            return path.rename(path.with_suffix(suffix))
    return path
