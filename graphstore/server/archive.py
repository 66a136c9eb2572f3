"""A database as one file, and back: to keep it, or to move it to another server."""

from __future__ import annotations

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

from vizpub.graphstore.server.offline import StoppableServer, hold_load_lock, last_transaction
from vizpub.machine.private import new_file
from vizpub.model.errors import InputError, UseError
from vizpub.model.progress import Progress

ALREADY_THERE = "already exists"
NO_DUMP = "is not a dump of a Neo4j database"

_MAGICS = (b"DZV1", b"DGV1")
"""First bytes of a dump, one for each kind of compression."""


def dump(
    place: StoppableServer,
    database: str,
    file: Path,
    progress: Progress,
    *,
    overwrite: bool = False,
) -> int:
    """Dump a database into a file, and return the size of the file in bytes.

    The server is stopped meanwhile, after a load that is going on. The file appears when it is
    complete; only its owner can read it.

    Raises: UseError if the file exists already or cannot be written, Neo4jUnavailable.
    """
    if os.path.lexists(file) and not overwrite:
        raise UseError(f"{file} {ALREADY_THERE}; name another file, or give --force")
    new = file.with_name(f".{file.name}.new")
    try:
        with os.fdopen(new_file(new), "wb") as stdout:
            with hold_load_lock(place.load_lock(), progress), place.offline_tool() as tool:
                tool.run("database", "dump", database, "--to-stdout", stdout=stdout)
            os.fsync(stdout.fileno())
        _open_dump(new).close()  # the tool may have printed something else
        new.replace(file)
    except OSError as error:
        raise UseError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            new.unlink()
    return file.stat().st_size


def restore(place: StoppableServer, database: str, file: Path, progress: Progress) -> None:
    """Replace a database by the one in a dump. The server is stopped meanwhile, after a load that
    is going on.

    If this fails, the database stays as it was.

    Raises: InputError if the file is not a dump, Neo4jUnavailable if it cannot be used.
    """
    with (
        _open_dump(file) as stdin,
        hold_load_lock(place.load_lock(), progress),
        place.offline_tool() as tool,
        tool.replacement(database) as new,
    ):
        tool.run("database", "load", new, "--from-stdin", "--verbose", stdin=stdin)
        last_transaction(tool, new)  # fails if no server could open it


def _open_dump(file: Path) -> FileIO:
    """Open a dump at its beginning. Raises: InputError if it does not look like a dump."""
    try:
        dump_file = FileIO(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    magic = dump_file.read(len(_MAGICS[0]))
    if magic not in _MAGICS:
        dump_file.close()
        raise InputError(f"{file} {NO_DUMP}", "make one: vizpub neo4j dump")
    dump_file.seek(0)
    return dump_file
