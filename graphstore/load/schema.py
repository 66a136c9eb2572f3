"""Constraints and indexes, and the complete lists of labels and types."""

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
    "HAS_ATTRIBUTE",
    "PRESENT",
    "PUBLISHED",
    "PUBLISHED_ON",
    "HOP",
    "ARRIVED_FROM_UNKNOWN",
    "MISSED",
    *COPY_TYPES,
)

_INDEX_WAIT_S = 600
_EXISTS = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
_OF = re.compile(r"[(\[]\w:(\w+)[)\]]")
_PROPERTY = re.compile(r"\b\w\.(\w+)")


@dataclass(frozen=True)
class Index:
    """An index, or the one of a constraint."""

    of: str
    """The label or type."""
    properties: tuple[str, ...]
    unique: bool = False
    """True for a constraint: no two nodes have the same values."""

    def __str__(self) -> str:
        kind = "constraint" if self.unique else "index"
        return f"{kind} on {self.of} ({', '.join(self.properties)})"


def wanted_indexes() -> list[Index]:
    """Return the indexes that cypher/schema creates."""
    indexes = []
    for name in cypher.names("schema"):
        # What comes before FOR is for people.
        command, _, target = cypher.statement("schema", name).text.partition("\nFOR ")
        (label,) = _OF.findall(target)
        properties = tuple(_PROPERTY.findall(target))
        indexes.append(Index(label, properties, "CREATE CONSTRAINT" in command))
    return indexes


def index_states(driver: Driver, database: str) -> dict[Index, str]:
    """Return all indexes of the database and their states; an ONLINE one answers."""
    text = cypher.statement("verify", "indexes").text
    return {
        Index(of, tuple(properties), unique): state
        for of, properties, unique, state in sessions.rows(driver, database, text, {})
    }


def create_constraints(driver: Driver, database: str) -> None:
    """Create the constraints, before a load: unique keys make it load each row once."""
    _run_all(driver, database, "constraint-")


def create_indexes(driver: Driver, database: str) -> None:
    """Create the indexes of relationships, after a load, and wait until they answer."""
    # Filling them at once is cheaper than row by row.
    _run_all(driver, database, "index-")
    with sessions.writing(driver, database) as session:
        # Without a timeout of its own, the statement would end at the server's limit.
        wait = Query("CALL db.awaitIndexes($seconds)", timeout=_INDEX_WAIT_S)
        session.run(wait, seconds=_INDEX_WAIT_S).consume()


def _run_all(driver: Driver, database: str, prefix: str) -> None:
    with sessions.writing(driver, database) as session:
        for name in cypher.names("schema"):
            if name.startswith(prefix):
                _create(session, cypher.statement("schema", name).text)


def _create(session: Session, statement: str) -> None:
    """Create a constraint or an index unless it exists."""
    # Another load may create it just now. Then one of the two waits and is repeated by the driver,
    # or gets the error that it exists.
    try:
        sessions.write(session, lambda transaction: transaction.run(statement).consume())
    except ClientError as error:
        if error.code != _EXISTS:
            raise
