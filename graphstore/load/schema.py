"""Constraints and indexes, and the closed lists of labels and types."""

from __future__ import annotations

import re
from dataclasses import dataclass

from neo4j import Driver, Query, Session
from neo4j.exceptions import ClientError

from vizpub import cypher
from vizpub.graphstore.load.degrees import DEGREE_CLASSES
from vizpub.graphstore.load.partitions import COPY_TYPES
from vizpub.graphstore.server import sessions

LABELS = (
    "Run",
    "LoadBatch",
    "Peer",
    "Topic",
    "Message",
    "Interval",
    "Publisher",
    "Rendezvous",
    "Hub",
    *DEGREE_CLASSES.values(),
)
TYPES = (
    "LINK",
    "SUBSCRIBES",
    "HAS_ROLE",
    "PRESENT",
    "PUBLISHED",
    "PUBLISHED_ON",
    "HOP",
    "ARRIVED_FROM_UNKNOWN",
    "MISSED",
    *COPY_TYPES,
)

_INDEX_WAIT_S = 600
_MADE = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
_OF = re.compile(r"[(\[]\w:(\w+)[)\]]")
_PROPERTY = re.compile(r"\b\w\.(\w+)")


@dataclass(frozen=True)
class Index:
    """An index, which a constraint may have."""

    of: str
    """The label or type."""
    properties: tuple[str, ...]
    unique: bool = False
    """A constraint has it: no two nodes have the same."""

    def __str__(self) -> str:
        kind = "constraint" if self.unique else "index"
        return f"{kind} on {self.of} ({', '.join(self.properties)})"


def wanted_indexes() -> list[Index]:
    """Those that cypher/schema makes."""
    return [_index(cypher.statement("schema", name).text) for name in cypher.names("schema")]


def _index(statement: str) -> Index:
    # What comes before FOR is for people.
    what, _, of = statement.partition("\nFOR ")
    (label,) = _OF.findall(of)
    return Index(label, tuple(_PROPERTY.findall(of)), "CREATE CONSTRAINT" in what)


def index_states(driver: Driver, database: str) -> dict[Index, str]:
    """All indexes of the database and their states: ONLINE = it answers."""
    text = cypher.statement("verify", "indexes").text
    return {
        Index(of, tuple(properties), unique): state
        for of, properties, unique, state in sessions.rows(driver, database, text, {})
    }


def create_constraints(driver: Driver, database: str) -> None:
    """One key, one node: what makes a load exactly once. Before the load; again is no harm."""
    _run_all(driver, database, "constraint-")


def create_indexes(driver: Driver, database: str) -> None:
    """The indexes of relationships, and wait until they answer.

    After a bulk load into an empty database: filling them at once is cheaper than row by row.
    """
    _run_all(driver, database, "index-")
    with sessions.writing(driver, database) as session:
        # The server ends what takes longer than its own limit, if it is not given another.
        wait = Query("CALL db.awaitIndexes($seconds)", timeout=_INDEX_WAIT_S)
        session.run(wait, seconds=_INDEX_WAIT_S).consume()


def _run_all(driver: Driver, database: str, prefix: str) -> None:
    with sessions.writing(driver, database) as session:
        for name in cypher.names("schema"):
            if name.startswith(prefix):
                _make(session, cypher.statement("schema", name).text)


def _make(session: Session, statement: str) -> None:
    """A constraint or an index, if it is not there. Another load may be making it just now: then
    either waits for the other and is begun again, or gets the error that it is there.
    """
    try:
        sessions.write(session, lambda transaction: transaction.run(statement).consume())
    except ClientError as error:
        if error.code != _MADE:
            raise
