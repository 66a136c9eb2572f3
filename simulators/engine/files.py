"""Reads files that describe a world: lines of text, plain or gzip."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from vizpub.model.errors import InputError, cause_of

_GZIP = b"\x1f\x8b"
_DIGITS = 18


def lines(name: str) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without blank ones and comments (# or %).

    Raises: InputError if it cannot be found or is not text.
    """
    try:
        with _open_binary(find_file(name)) as stream:
            for number, line in enumerate(stream, 1):
                text = line.decode("utf-8-sig").strip()
                if text and text[0] not in "#%":
                    yield number, text
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: cannot be read: {cause_of(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not text") from error


def find_file(name: str) -> Path:
    """The file of that name, otherwise that in the folder VIZPUB_DATA.

    Raises: InputError if there is neither.
    """
    folder = os.environ.get("VIZPUB_DATA")
    places = [Path(name).expanduser(), *([Path(folder) / name] if folder else [])]
    for path in places:
        if path.is_file():
            return path
    raise InputError(f"no file {' or '.join(map(str, places))}")


def is_whole_number(text: str) -> bool:
    """Return True for a whole number that 64 bits can hold."""
    return text.isdecimal() and len(text) <= _DIGITS


def not_understood(name: str, line: int, why: str) -> InputError:
    """An error in a line of a file."""
    return InputError(f"{name}:{line}: {why}")


def _open_binary(path: Path) -> BinaryIO:
    with path.open("rb") as stream:
        is_gzip = stream.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(path)) if is_gzip else path.open("rb")
