"""Definitions of tables and columns, and columns that several tables have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Type = Literal["int32", "int64", "double", "string", "bool"]

_ARROW: dict[str, pa.DataType] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}


@dataclass(frozen=True)
class Column:
    """One column. `graph` and `degenerate` are for metrics of a graph only."""

    name: str
    type: Type
    meaning: str
    unit: str = ""
    nullable: bool = False
    graph: Literal["", "directed", "undirected"] = ""
    """How the links are read."""
    degenerate: str = ""
    """The value where the graph is broken, tiny or without links."""


@dataclass(frozen=True)
class Table:
    """One table of the run store. `key` names the columns that make a row unique."""

    name: str
    row: str
    """What one row stands for."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return [column.name for column in self.columns]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema its Parquet files have."""
        return pa.schema(
            [pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in self.columns]
        )

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)


def known(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    """A column that has a value in every row."""
    return Column(name, type, meaning, unit)


def maybe(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    """A column that is null where the value is unknown."""
    return Column(name, type, meaning, unit, nullable=True)


def of_graph(
    name: str, type: Type, meaning: str, way: Literal["directed", "undirected"], degenerate: str
) -> Column:
    """A metric of the graph of an interval."""
    unit = "hops" if "hops" in meaning else ""
    return Column(name, type, meaning, unit, True, way, degenerate)


PEER = known("peer", "int32", "dense index of the peer")
TOPIC = known("topic", "int32", "dense index of the topic")
INTERVAL = known("interval", "int32", "reporting interval")
TRAFFIC_OF_PEER = tuple(
    maybe(
        f"{kind}_{what}_{way}",
        "int64",
        f"{kind} {'messages' if what == 'messages' else 'traffic'} {way} in the interval",
        what,
    )
    for kind in ("control", "publication")
    for what in ("messages", "bytes")
    for way in ("sent", "received")
)
TRAFFIC_COLUMNS = tuple(column.name for column in TRAFFIC_OF_PEER)
