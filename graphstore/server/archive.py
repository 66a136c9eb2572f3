"""A database as one file, and back: to keep it, or to move it to another server."""

from __future__ import annotations

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

from vizpub.graphstore.server.offline import Place, last_transaction
from vizpub.machine.private import new_file
from vizpub.model.errors import InputError, UseError

ALREADY_THERE = "already exists"
NO_DUMP = "is not a dump of a Neo4j database"

_MAGICS = (b"DZV1", b"DGV1")
"""How dumps begin, by how they are compressed."""


def dump(place: Place, database: str, file: Path, *, overwrite: bool = False) -> int:
    """Write a database into a file, with its server stopped meanwhile; how many bytes it has.

    The file is there when it is whole, and only its owner reads it.

    Raises: UseError where the file is there already or cannot be written, Neo4jUnavailable.
    """
    if os.path.lexists(file) and not overwrite:
        raise UseError(f"{file} {ALREADY_THERE}; name another file, or give --force")
    new = file.with_name(f".{file.name}.new")
    try:
        with os.fdopen(new_file(new), "wb") as stdout:
            with place.stopped() as tool:
                tool.run("database", "dump", database, "--to-stdout", stdout=stdout)
            os.fsync(stdout.fileno())
        _opened(new).close()  # whatever else the tool may have printed is no dump
        new.replace(file)
    except OSError as error:
        raise UseError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            new.unlink()
    return file.stat().st_size


def restore(place: Place, database: str, file: Path) -> None:
    """Put what a file has into the place of a database, with its server stopped meanwhile.

    The database is as it was where this does not come to its end.

    Raises: InputError for what is not a dump, Neo4jUnavailable where it cannot be used.
    """
    with _opened(file) as stdin, place.stopped() as tool, tool.remaking(database) as new:
        tool.run("database", "load", new, "--from-stdin", "--verbose", stdin=stdin)
        last_transaction(tool, new)  # else it is nothing that a server can open


def _opened(file: Path) -> FileIO:
    """The file, from its begin. Raises: InputError where it does not look like a dump."""
    try:
        opened = FileIO(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    begin = opened.read(len(_MAGICS[0]))
    if begin not in _MAGICS:
        opened.close()
        raise InputError(f"{file} {NO_DUMP}", "make one: vizpub neo4j dump")
    opened.seek(0)
    return opened
