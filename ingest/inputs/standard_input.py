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
def kept(paths: Sequence[str], stream: TextIO, scratch: Path) -> Iterator[tuple[str, ...]]:
    """The paths, with a file of all that `stream` has in place of `-`; it is in `scratch` for the
    length of the block. The file is always of the same name, so the same input is the same run.

    Raises: UseError where the stream is a terminal, and where it cannot be kept; InputError where
    it is empty; DiskFull.
    """
    if STDIN not in paths:
        yield tuple(paths)
        return
    if stream.isatty():
        raise UseError(f"{NOTHING_PIPED}: {_PIPED}")
    with ExitStack() as until_the_end:
        with _as_errors_of_ours(scratch):
            folder = until_the_end.enter_context(own_folder(scratch, OF_STDIN))
            file = _copied(stream.buffer, folder / "stdin")
        yield tuple(str(file) if path == STDIN else path for path in paths)


@contextmanager
def _as_errors_of_ours(scratch: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(scratch)) from error
        why = f"standard input cannot be kept in {scratch}: {error.strerror}"
        raise UseError(why) from error


class _Given:
    """What is piped in: an error in reading it is no error of the file that keeps it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """As of a binary stream. Raises: InputError."""
        try:
            return self._stream.read(size)
        except OSError as error:
            raise InputError(f"standard input {UNREADABLE}: {error.strerror}", _PIPED) from error


def _copied(stream: BinaryIO, path: Path) -> Path:
    """The file, with the suffix that its content should have."""
    with path.open("wb") as file:
        copyfileobj(_Given(stream), file)
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise InputError(EMPTY, _PIPED)
    for magic, (suffix, *_) in PACKED.values():
        if start.startswith(magic):
            return path.rename(path.with_suffix(suffix))
    return path
