"""Columns that a writer put into the names of folders: `interval=3/layer=mesh/part-0.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from vizpub.model.errors import InputError

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(path: str) -> dict[str, str]:
    """The columns in the names of a file's folders, as Hive and Spark write them; the value is
    empty where there is none.
    """
    told = {}
    for folder in path.split("/")[:-1]:
        name, is_column, value = folder.partition("=")
        if name and is_column:
            told[unquote(name).lower()] = "" if value == _NULL else unquote(value)
    return told


def with_folders(encoding: str, columns: Mapping[str, str]) -> str:
    """The encoding of a file whose folders have these columns."""
    return "".join([encoding, *(f"+{name}={quote(of, safe='')}" for name, of in columns.items())])


def without_folders(encoding: str) -> tuple[str, dict[str, str]]:
    """An encoding as `with_folders` takes it, and the columns."""
    own, *folders = encoding.split("+")
    pairs = (column.partition("=") for column in folders)
    return own, {name: unquote(value) for name, _, value in pairs}


def check_folders(paths: Iterable[str], known: Iterable[str]) -> None:
    """Raises: InputError where folders tell files apart by a column that is not known."""
    first: dict[str, str] = {}
    for path in paths:
        for name, value in folder_columns(path).items():
            if name not in known and first.setdefault(name, value) != value:
                raise InputError(
                    f"{path}: its folders are called {name}={value}, others {name}={first[name]}, "
                    f"and '{name}' is none of the columns {', '.join(sorted(known))}",
                    "ingest the files of one such folder, or rename the folders",
                )
