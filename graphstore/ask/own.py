"""Queries of the user's own in a file, with a header like that of a shipped one (`cypher`).

The header says what its parameters are, so they are given as for a shipped query. The text is
judged like any free text (vizpub.graphstore.ask.free_text): it can only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.ask.free_text import Stream, open_checked_stream
from vizpub.graphstore.ask.parameters import TYPES
from vizpub.graphstore.ask.queries import Limits, prepare
from vizpub.graphstore.runs import open_run
from vizpub.machine.files import text_of
from vizpub.model.errors import UseError, cause_of


def read_query(file: Path) -> cypher.Statement:
    """Read a query from a file. Raises: UseError if it cannot be read or its header is wrong."""
    try:
        text = text_of(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UseError(f"{file} cannot be read: {cause_of(error)}") from error
    query = cypher.parse_statement("own", file.name, text)
    declared = {parameter.name for parameter in query.parameters}
    for line in text.splitlines():
        words = line.removeprefix("//").split()
        if line.startswith("// $") and words[0].removeprefix("$") not in declared:
            raise UseError(
                f"{file}: '{line}' declares no parameter; write for example: // $at tick – the time"
            )
    times = {p.name for p in query.parameters if p.type == "tick" and not p.optional}
    known = {
        p.name
        for p in query.parameters
        if p.type in ("tick", "message") and (p.default or not p.optional)
    }
    for time in chain.from_iterable(query.times):
        if time not in known:
            raise UseError(f"{file}: '// partition:' needs a time that is always set, not ${time}")
    for parameter in query.parameters:
        if parameter.type not in TYPES and not parameter.words:
            raise UseError(
                f"{file}: ${parameter.name} has the type '{parameter.type}'; "
                f"there are: {', '.join(TYPES)}, and words such as in|out"
            )
        if (parameter.at or parameter.type == "levels") and parameter.at not in times:
            raise UseError(
                f"{file}: ${parameter.name} needs a time that must be given: {parameter.type}($at)"
            )
    return query


@contextmanager
def open_own_stream(
    driver: Driver,
    database: str,
    query: cypher.Statement,
    arguments: Mapping[str, object],
    run: str,
    limits: Limits,
) -> Iterator[Stream]:
    """Run a query from a file and yield its answer, row by row.

    Its text may use `$run` without declaring it.

    Raises: as vizpub.graphstore.ask.queries.ask and vizpub.graphstore.ask.free_text.open_stream.
    """
    text, values = prepare(query, arguments, open_run(driver, database, run))
    with open_checked_stream(driver, database, text, {"run": run, **values}, limits) as stream:
        yield stream
