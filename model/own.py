"""Own metrics: columns that users add to the metrics tables of a run. run.json lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from vizpub.model.columns import Column, Table, maybe
from vizpub.model.metrics import METRICS_MESSAGES, METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.model.tables import TABLES

LEVELS = {
    "overlay": METRICS_OVERLAY,
    "peer": METRICS_PEERS,
    "topic": METRICS_TOPICS,
    "message": METRICS_MESSAGES,
}
"""The metrics table of each level."""

_IN_PLANS = """
    block end first frame index interval is_reporter kind known message overlay part peer present
    repeated start stop sum tick time topic topics unclear
"""
"""Columns that an ingest has beside those of metrics, except columns of tables."""
_IN_GRAPHS = "caption generation i id key length_class name run t"
"""Properties of nodes and relationships in Neo4j, except columns of tables."""
_IN_EXPORTS = """
    colour from id interval kind label layers name position role roles shared shared_names
    shared_now shared_topics size source subscriptions target timeset timestamp to topic_names
    topics topics_now type viz weight x y z
"""
"""Columns of GEXF, and Gephi's own ones."""
_RESERVED = """
    all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by
    case cast check collate collation column concurrently constraint create cross default deferrable
    delete desc describe detach distinct do drop else end except exists explain false fetch filter
    for foreign freeze from full glob group having ilike in initially inner insert intersect into is
    isnull join lambda lateral leading left like limit match merge minus natural not notnull null
    offset on only or order outer overlaps pivot pivot_longer pivot_wider placing positional primary
    qualify references remove return returning right select semi set show similar skip some
    summarize symmetric table tablesample then to trailing true union unique unpack unpivot unwind
    update using variadic verbose when where window with xor yield
"""
"""Words that need quotes in queries of DuckDB, Spark or Cypher."""
_BEGINNINGS = ("_", "layer_", "reports_", "unreported_")
"""Beginnings of names that steps (`_`) and exports make."""
_TAKEN = frozenset(
    {name for table in TABLES for name in (*table.names, *table.name.split("/"))}
    | {f"{name}_name" for name in ("peer", "topic", "message", "publisher")}
    | {*_IN_PLANS.split(), *_IN_GRAPHS.split(), *_IN_EXPORTS.split(), *_RESERVED.split()}
)


def is_taken(name: str) -> bool:
    """Return True if an own metric cannot have a name: tables, plans or exports have such a column,
    nodes such a property, or it is a reserved word. Spark, DuckDB and Gephi ignore case.
    """
    return name.lower() in _TAKEN or name.lower().startswith(_BEGINNINGS)


@dataclass(frozen=True)
class OwnMetric:
    """An own metric, as in run.json."""

    name: str
    level: str
    """One of LEVELS."""
    meaning: str = ""
    """The first line of the function's docstring."""
    unit: str = ""
    definition: str = ""
    """The source of the function."""
    digest: str = ""
    """The digest of the file that has the function."""

    @property
    def column(self) -> Column:
        """Its column; null is unknown."""
        return maybe(self.name, "double", self.meaning, self.unit)


def with_own(table: Table, metrics: Iterable[OwnMetric]) -> Table:
    """Return the table with the columns of the own metrics of its level."""
    more = tuple(metric.column for metric in metrics if LEVELS[metric.level].name == table.name)
    return replace(table, columns=(*table.columns, *more)) if more else table
