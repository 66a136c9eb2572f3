"""Own metrics: columns that users add to the metrics tables of a run. run.json lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from model.columns import Column, Table, maybe
from model.metrics import METRICS, METRICS_MESSAGES, METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from model.tables import PUBLICATIONS

LEVELS = {
    "overlay": METRICS_OVERLAY,
    "peer": METRICS_PEERS,
    "topic": METRICS_TOPICS,
    "message": METRICS_MESSAGES,
}
"""The metrics table of each level."""

TAKEN = frozenset(
    {name for table in (*METRICS, PUBLICATIONS) for name in table.names}
    | {"key", "run", "id", "i", "t", "name", "caption"}
    | {f"{name}_name" for name in ("peer", "topic", "message", "publisher")}
)
"""Names that an own metric cannot have: those of columns, and of properties of nodes in Neo4j."""


@dataclass(frozen=True)
class OwnMetric:
    """An own metric as run.json has it."""

    name: str
    level: str
    """One of LEVELS."""
    meaning: str = ""
    """The first line of the function's docstring."""
    unit: str = ""
    definition: str = ""
    """The function's source."""
    digest: str = ""
    """Of the file that has the function."""

    @property
    def column(self) -> Column:
        """Its column; null is unknown."""
        return maybe(self.name, "double", self.meaning, self.unit)


def with_own(table: Table, own: Iterable[OwnMetric]) -> Table:
    """The table with the columns of the own metrics of its level."""
    more = tuple(metric.column for metric in own if LEVELS[metric.level].name == table.name)
    return replace(table, columns=(*table.columns, *more)) if more else table
