"""Definitions of tables and columns, and columns that several tables have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    """A column. `graph` and `degenerate` are for metrics of a graph only."""

    name: str
    type: Type
    meaning: str
    unit: str = ""
    nullable: bool = False
    graph: Literal["", "directed", "undirected"] = ""
    """The reading of its links."""
    degenerate: str = ""
    """The value if the graph is disconnected, tiny or without links."""


@dataclass(frozen=True)
class Table:
    """A table of the run store. `key` names the columns that make a row unique."""

    name: str
    row: str
    """The meaning of a row."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of its Parquet files."""
        return pa.schema(
            [pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in self.columns]
        )

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)


def always(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    """Define a column that has a value in every row."""
    return Column(name, type, meaning, unit)


def maybe(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    """Define a column that is null if the value is unknown."""
    return Column(name, type, meaning, unit, nullable=True)


def of_digraph(name: str, type: Type, meaning: str, degenerate: str) -> Column:
    """Define a metric of an interval's graph whose links have directions."""
    unit = "hops" if "hops" in meaning else ""
    return Column(name, type, meaning, unit, True, "directed", degenerate)


def of_graph(name: str, type: Type, meaning: str, degenerate: str) -> Column:
    """Define a metric of an interval's graph whose links have no direction."""
    return replace(of_digraph(name, type, meaning, degenerate), graph="undirected")


PEER = always("peer", "int32", "dense index of the peer")
TOPIC = always("topic", "int32", "dense index of the topic")
INTERVAL = always("interval", "int32", "reporting interval")
TRAFFIC_OF_PEER = tuple(
    maybe(
        f"{kind}_{unit}_{direction}",
        "int64",
        f"{kind} {'messages' if unit == 'messages' else 'traffic'} {direction} in the interval",
        unit,
    )
    for kind in ("control", "publication")
    for unit in ("messages", "bytes")
    for direction in ("sent", "received")
)
TRAFFIC_COLUMNS = tuple(column.name for column in TRAFFIC_OF_PEER)
CONTROL_OF_KIND = tuple(
    maybe(f"{unit}_{way}", "int64", f"{meaning} {way} in the interval", unit)
    for unit, meaning in (
        ("messages", "control messages of the kind"),
        ("ids", "ids that these name"),
        ("bytes", "traffic of the kind"),
    )
    for way in ("sent", "received", "dropped")
)
CONTROL_COLUMNS = tuple(column.name for column in CONTROL_OF_KIND)
