"""Who may write to Neo4j, and with what: read from the code itself, so that none is missed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache

import pytest
from neo4j import GraphDatabase
from neo4j.exceptions import Neo4jError

from tests.support.project import PACKAGES, ROOT
from vizpub import cypher
from vizpub.graphstore.server import sessions
from vizpub.model.errors import UseError

WRITERS = {
    "graphstore/load/transactions.py",
    "graphstore/load/growth.py",
    "graphstore/load/remove.py",
    "graphstore/load/schema.py",
}
"""What makes a copy of a run, and what takes it away."""
OPENERS = {"graphstore/server/connection.py", "graphstore/server/sessions.py"}
"""The one makes drivers and sees that a server answers, the other gives sessions."""
BRIDGE = "graphstore/ask/py2neo_bridge.py"
"""It is for another driver."""
READING = ("browser", "queries", "read", "verify")
WRITES = re.compile(
    r"\b(CREATE|MERGE|SET|DELETE|REMOVE|DROP|ALTER|FOREACH|LOAD\s+CSV|IN\s+TRANSACTIONS)\b"
)
DYNAMIC = {"label-peers", "link-copies", "subscription-copies"}
"""Statements that take a label or a type as a parameter: from DEGREE_CLASSES and partitions, which
are numbers."""


OPENING = ("driver", "session", "execute_query", "begin_transaction")


@cache
def every_call() -> list[tuple[str, str, str]]:
    """(name, file, what is called there) of all calls of methods or functions of these names."""
    names, found = {*OPENING, "writing", "write", "execute_write"}, []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                match node:
                    case ast.Call(func=ast.Attribute(attr=name) as function) if name in names:
                        place = file.relative_to(ROOT).as_posix()
                        found.append((name, place, ast.unparse(function)))
    return found


def calls(name: str) -> Iterator[tuple[str, str]]:
    return ((file, called) for known, file, called in every_call() if known == name)


def test_writing_sessions_occur_only_in_load_remove_and_schema() -> None:
    writing = {file for file, called in calls("writing") if called == "sessions.writing"}
    assert writing == WRITERS
    assert {file for file, called in calls("write") if called == "sessions.write"} <= WRITERS
    # A growth counts its transactions itself.
    writing = {file for file, _ in calls("execute_write")}
    assert writing == {"graphstore/server/sessions.py", "graphstore/load/growth.py"}


@pytest.mark.parametrize("name", OPENING)
def test_drivers_and_sessions_are_opened_only_in_their_modules(name: str) -> None:
    assert {file for file, _ in calls(name)} <= {*OPENERS, BRIDGE}


@pytest.mark.parametrize(
    ("folder", "name"), [(folder, name) for folder in READING for name in cypher.names(folder)]
)
def test_reading_statements_contain_no_write_clause(folder: str, name: str) -> None:
    assert not WRITES.search(code(cypher.statement(folder, name).text))


def test_dynamic_labels_and_types_occur_only_in_known_statements() -> None:
    dynamic = {
        name
        for folder in (*READING, "load", "remove", "schema")
        for name in cypher.names(folder)
        if "$(" in code(cypher.statement(folder, name).text)
    }
    assert dynamic <= DYNAMIC


@pytest.mark.parametrize("opening", [sessions.reading, sessions.writing])
def test_transaction_beyond_the_time_of_the_server_is_told_with_what_to_do(
    opening: Callable[..., AbstractContextManager[object]],
) -> None:
    """Less cannot be loaded; only a question can ask for less."""
    raised = Neo4jError._hydrate_neo4j(
        code="Neo.ClientError.Transaction.TransactionTimedOut", message="late"
    )
    with (
        GraphDatabase.driver("bolt://127.0.0.1:1") as driver,
        pytest.raises(UseError) as told,
        opening(driver, "neo4j"),
    ):
        raise raised
    is_load = opening is sessions.writing
    assert str(told.value) == (sessions.LATE_WRITE if is_load else sessions.LATE)
    assert ("db.transaction.timeout" in str(told.value)) == is_load


def code(text: str) -> str:
    """A statement without its comments and its texts."""
    return re.sub(r"//[^\n]*|'[^']*'|\"[^\"]*\"", "", text)
