"""A loaded run for notebooks that are written with py2neo.

py2neo is at its end of life: 2021.2.4 is its last release and its repository is archived, so
nothing in it will be mended. It still reads Neo4j 5.26 (`Graph.query`, subgraphs, data frames;
not the procedures Neo4j 5 took away), on Python 3.13 too. New code better takes the official
driver, as the rest of this package does, or vizpub.questions.run, which needs no server. Nothing
imports this module; it needs the extra `py2neo`.

    connection = find_connection(Path("vizpub-data/neo4j"))
    with open_run(connection, "monday") as run:
        subgraph_at(run, 12, layers=["mesh"])
        frame(run, "shortest-path", at="12.5s", **{"from": "alice", "to": "bob"})
        run.graph.query("MATCH (p:Hub) RETURN p.name").to_data_frame()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.ask.queries import prepare, shipped_query
from vizpub.graphstore.runs import LoadedRun
from vizpub.graphstore.runs import open_run as open_loaded
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import check_server, connect
from vizpub.machine.modules import needing_extra
from vizpub.model.errors import Neo4jAnswer, Neo4jUnavailable

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd


@dataclass(frozen=True)
class BridgedRun:
    """A complete run in Neo4j, with py2neo's `graph` and the driver that looks up names."""

    graph: Any
    loaded: LoadedRun
    connection: Connection
    driver: Driver

    def __enter__(self) -> BridgedRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.driver.close()
        self.graph.service.connector.close()


def graph(connection: Connection) -> Any:
    """Return py2neo's Graph of a server; it connects when it is first queried.

    Raises: UseError without the extra `py2neo`, Neo4jUnavailable.
    """
    check_server(connection)
    login = (connection.username, connection.password)
    with _translate_errors(connection):
        return _py2neo().Graph(connection.uri, auth=login, name=connection.database)


def open_run(connection: Connection, name: str) -> BridgedRun:
    """Open a loaded run; close it after use, or use it in a `with`.

    Raises: UnknownName, RunNotComplete, Neo4jUnavailable, Neo4jAnswer, UseError without
    the extra `py2neo`.
    """
    _py2neo()
    driver = connect(connection)
    try:
        loaded = open_loaded(driver, connection.database, name)
        return BridgedRun(graph(connection), loaded, connection, driver)
    except BaseException:
        driver.close()
        raise


def subgraph_at(run: BridgedRun, at: int | str, layers: Sequence[str] | None = None) -> Any:
    """Return the overlay at a time as a py2neo Subgraph: the nodes of the peers that are present,
    and a relationship for each link, layer and topic.

    `at` is an interval number, 'first', 'last' or a time as '12.5s'; `layers` null = all.
    Nodes and relationships are those of the database, so that `graph.pull` knows them.

    Raises: OutOfRange, UnknownName, UseError, Neo4jUnavailable, Neo4jAnswer.
    """
    arguments = {"at": at} if layers is None else {"at": at, "layers": list(layers)}
    answer = _query(run, cypher.statement("read", "overlay-entities"), arguments)
    nodes = {row["peer"].identity: row["peer"] for row in answer if row["peer"] is not None}
    links = [_with_ends(nodes, row["link"]) for row in answer if row["link"] is not None]
    return _py2neo().Subgraph(nodes.values(), links)


def _with_ends(nodes: dict[int, Any], link: Any) -> Any:
    """Return the relationship with the nodes that were read as its ends."""
    # Its own ends are empty: py2neo would query the server for each of them, one by one.
    ends = (nodes.setdefault(end.identity, end) for end in (link.start_node, link.end_node))
    linked = type(link)(*ends, **dict(link))
    linked.graph, linked.identity = link.graph, link.identity
    return linked


def frame(run: BridgedRun, query: str, **parameters: object) -> pd.DataFrame:
    """Return the answer of a shipped query as a data frame.

    Numbers and truth values have pandas' types that know NA, the unknown; lists stay lists.

    Parameters are given as to `vizpub query`: peers, topics and messages by name.

    Raises: UnknownName, OutOfRange, UseError, Neo4jUnavailable, Neo4jAnswer.
    """
    import pandas as pd

    statement = shipped_query(query)
    rows = _query(run, statement, parameters)
    columns = {column.name: [row[column.name] for row in rows] for column in statement.columns}
    return pd.DataFrame({n: pd.Series(v, dtype=_dtype(v)) for n, v in columns.items()})


_DTYPES = {int: "Int64", float: "Float64", bool: "boolean"}


def _dtype(values: Sequence[object]) -> str:
    """Return the type of a column, which does not depend on nulls or whole numbers in it."""
    kinds = {type(value) for value in values if value is not None}
    return _DTYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"


def _query(
    run: BridgedRun, statement: cypher.Statement, arguments: Mapping[str, object]
) -> list[Any]:
    """Run one of our statements in a session that can only read; return py2neo's records."""
    text, values = prepare(statement, arguments, run.loaded)
    with _translate_errors(run.connection):
        return list(run.graph.query(text, values))


def _py2neo() -> ModuleType:
    with needing_extra("py2neo", "the bridge to py2neo"):
        import py2neo  # type: ignore[import-untyped]
    module: ModuleType = py2neo
    return module


@contextmanager
def _translate_errors(connection: Connection) -> Iterator[None]:
    """Translate py2neo's errors. Raises: Neo4jUnavailable, Neo4jAnswer."""
    errors = _py2neo().errors
    try:
        yield
    except errors.Neo4jError as error:
        raise Neo4jAnswer(error.code, error.message) from error
    except (errors.ConnectionUnavailable, errors.ConnectionBroken, errors.ServiceUnavailable) as e:
        raise Neo4jUnavailable(connection.uri, f"py2neo: {e}") from e
