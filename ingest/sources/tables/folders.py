"""Columns that a writer put into the names of folders: `interval=3/layer=mesh/part-0.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from vizpub.model.errors import InputError
from vizpub.reports.compressed import plain_path

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(path: str) -> dict[str, str]:
    """Return the columns in the names of a file's folders, as Hive and Spark write them; a missing
    value is empty.
    """
    columns = {}
    for folder in plain_path(path).split("/")[:-1]:
        name, is_column, value = folder.partition("=")
        if name and is_column:
            columns[unquote(name).lower()] = "" if value == _NULL else unquote(value)
    return columns


def with_folders(encoding: str, columns: Mapping[str, str]) -> str:
    """Return the encoding of a file whose folders have these columns."""
    return "".join([encoding, *(f"+{name}={quote(of, safe='')}" for name, of in columns.items())])


def without_folders(encoding: str) -> tuple[str, dict[str, str]]:
    """Split an encoding into that of the file itself and the columns of its folders."""
    own_encoding, *folders = encoding.split("+")
    pairs = (column.partition("=") for column in folders)
    return own_encoding, {name: unquote(value) for name, _, value in pairs}


def check_folders(paths: Iterable[str], columns: Iterable[str]) -> None:
    """Check that folders do not tell files apart by a column not in `columns`. Raises:
    InputError.
    """
    first: dict[str, str] = {}
    for path in paths:
        for name, value in folder_columns(path).items():
            if name not in columns and first.setdefault(name, value) != value:
                raise InputError(
                    f"{path}: its folders are called {name}={value}, others {name}={first[name]}, "
                    f"and '{name}' is none of the columns {', '.join(sorted(columns))}",
                    "ingest the files of one such folder, or rename the folders",
                )
