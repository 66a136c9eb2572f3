"""A run in Python.

    run = Run.open("vizpub-data", "monday")
    run.metrics("topics", ["subscribers"]).to_pandas()
    run.overlay(12).to_networkx()
    run.topic("news", "12.5s")
    run.tree("m17")

It returns frames (vizpub.questions.frames) with the columns of vizpub.model.tables and the names of
peers, topics and messages after their dense indexes. It needs neither Neo4j nor Spark.
A time is an interval number, 'first', 'last' or a time from the start as '12.5s'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.columns import Table
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.metrics import DELIVERY_METRICS, METRICS
from vizpub.model.own import OwnMetric
from vizpub.model.tables import GAUGES, PUBLICATIONS
from vizpub.model.wording import amount
from vizpub.questions.answers import OverlaySnapshot, Tree
from vizpub.questions.arrivals.answers import RunOfArrivals
from vizpub.questions.attributes.groups import (
    BY_GROUP,
    add_groups,
    messages_by_group,
    peers_by_group,
    topics_by_group,
)
from vizpub.questions.attributes.mixing import assortativity, mixing
from vizpub.questions.churn.answers import ChurningRun
from vizpub.questions.control import control_by_kind
from vizpub.questions.deliveries import count_reasons, delays, reasons_of_message
from vizpub.questions.frames import ABOUT, Frame, choose_columns, html_table
from vizpub.questions.gauges import gauges
from vizpub.questions.names import NAMED, Where, part_of
from vizpub.questions.snapshots import alive, links_at, spread
from vizpub.questions.sql import read_answer
from vizpub.questions.summary import facts_for_people
from vizpub.runstore.store import metric_table, open_run

__all__ = ["Run", "Where"]

_ABOUT_GAUGES = ("interval", "peer", "peer_name")
_ABOUT_MESSAGE = ["message", "interval", "topic", "publisher"]
BY_OF_ALL = "reasons are counted over all messages: leave out the message, or --by"
HAS_NO_COLUMN = "has no column"
_DISTRIBUTION = "--kind ecdf, ccdf or density"
_DRAWN = {
    "metrics/overlay": "metrics/overlay (plot: a series)",
    "metrics/percolation": "metrics/percolation (plot: a series)",
    "metrics/peers": f"metrics/peers (plot: {_DISTRIBUTION}, or --peer)",
    "metrics/topics": f"metrics/topics (plot: {_DISTRIBUTION}, or --topic)",
    "metrics/messages": f"metrics/messages (plot: {_DISTRIBUTION})",
    "deliveries": f"run.delays() and, in SQL, receptions (plot: {_DISTRIBUTION})",
}
"""Tables of metrics, and the options of a figure that shows them."""
_OF_DELIVERIES = {
    "first": "about.interval >= $first",
    "last": "about.interval <= $last",
    "peer": "peer = $peer",
    "topic": "about.topic = $topic",
}
"""The condition in SQL for each part of a `Where`."""
_SHOWN_OF_A_FACT = 1_000
"""Characters in a notebook."""


@dataclass(frozen=True, repr=False)
class Run(ChurningRun, RunOfArrivals):
    """A complete run of a workspace."""

    @classmethod
    def open(cls, workspace: Path | str, name: str) -> Self:
        """The run of that name. Raises: UnknownName, StoreBroken, RunNotComplete."""
        return cls(open_run(Path(workspace), name))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table of vizpub.model.tables, or some of its columns. Raises: UnknownName."""
        definition = self.stored.definition(name)
        self._check_columns(columns or (), definition)
        return self.stored.read(name, list(columns) if columns else None)

    def metrics(
        self,
        name: str = "overlay",
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        by: str | None = None,
        receivers: bool = False,
    ) -> Frame:
        """A metrics table ('overlay', 'peers', 'topics', 'messages'), sorted by its key.

        `columns` picks some beside the key. A dense index is followed by `<column>_name`;
        messages also carry their interval of publication, topic and publisher. These are always
        returned, so `columns` may name them, too.

        `by` names an attribute of peers: rows are then those of groups of peers with the same value
        (vizpub.questions.attributes.groups), for messages of their publishers or, with `receivers`,
        of the peers that received them.

        Raises: UnknownName for a metric, column, peer or topic, UseError for a peer or topic
        where the table has none, and where its source data is not reported.
        """
        if by is not None:
            return self._metrics_by_group(name, by, columns, where or Where(), receivers)
        definition = self.stored.definition(metric_table(name).name)
        self.facts.check_known(definition.name)
        if columns:
            of_message = _ABOUT_MESSAGE if "message" in definition.key else ()
            identifying = {*definition.key, *of_message}
            identifying |= {f"{name}_name" for name in identifying & NAMED.keys()}
            self._check_columns([name for name in columns if name not in identifying], definition)
            columns = [c for c in definition.names if c in {*definition.key, *columns}]
        if "message" in definition.key:
            rows = self._messages(columns, where or Where())
        else:
            rows = self.stored.read(
                definition.name, columns, self._condition(definition, where or Where())
            )
            rows = rows.select(list(dict.fromkeys([*definition.key, *rows.column_names])))
        rows = _with_units(self.with_names(rows), self.facts.own)
        return Frame(f"{self.facts.name}, {definition.name}", rows)

    def _metrics_by_group(
        self, name: str, by: str, columns: Sequence[str] | None, where: Where, receivers: bool
    ) -> Frame:
        if name not in BY_GROUP:
            raise UnknownName("table of metrics by group", name, BY_GROUP)
        if name == "peers":
            stored = self.stored.definition("metrics/peers").names
            chosen = [c for c in columns or () if c not in ABOUT]
            metrics = [c if c in stored else c.removesuffix("_mean") for c in chosen]
            needed = [*dict.fromkeys([*metrics, "present"])] if columns else None
            rows = peers_by_group(self, by, self.metrics("peers", needed, where).rows)
        elif name == "topics":
            if where.peer is not None:
                raise UseError(
                    "metrics of topics by group cannot be those of one peer: leave out the peer"
                )
            rows = self.with_names(topics_by_group(self, by, where))
        else:
            rows = messages_by_group(self, by, where, receivers=receivers)
        return Frame(f"{self.facts.name}, {name} by {by}", choose_columns(rows, columns))

    def metrics_with_groups(
        self, columns: Sequence[str], by: str, where: Where | None = None
    ) -> Frame:
        """The rows of deliveries, messages or peers, the first that have these columns, with the
        `group` of each: of its peer, or of a message's publisher.

        Raises: UnknownName, UseError for a run without attributes.
        """
        if {*columns} <= {*DELIVERY_METRICS}:
            rows = self.delays(where).rows
        elif {*columns} <= {*self.stored.definition("metrics/messages").names}:
            rows = self.metrics("messages", columns, where).rows
        else:
            rows = self.metrics("peers", columns, where).rows
        return Frame(f"{self.facts.name}, by {by}", add_groups(self, by, rows))

    def mixing(
        self, by: str, where: Where | None = None, layers: Sequence[str] | None = None
    ) -> Frame:
        """Which groups of peers link to which; see vizpub.questions.attributes.mixing.

        Raises: UnknownName, UseError for a run without attributes, presence or links.
        """
        rows = mixing(self, by, where or Where(), layers)
        return Frame(f"{self.facts.name}, mixing by {by}", rows)

    def assortativity(
        self, by: str, where: Where | None = None, layers: Sequence[str] | None = None
    ) -> Frame:
        """The degree to which links stay within groups; see vizpub.questions.attributes.mixing.

        Raises: as `mixing`.
        """
        rows = assortativity(self, by, where or Where(), layers)
        return Frame(f"{self.facts.name}, assortativity by {by}", rows)

    def messages(self, columns: Sequence[str] | None = None, where: Where | None = None) -> Frame:
        """The messages with their metrics: `metrics("messages", columns, where)`.

        Raises: as `metrics`.
        """
        return self.metrics("messages", columns, where)

    def delays(self, where: Where | None = None) -> Frame:
        """The deliveries: message, interval and topic of its publication, peer, hop, delay_us.

        A delivery is the first arrival at an eligible peer; `where` selects by publication, and
        its peer is the one that received the message. Unknown hops and delays are null.

        Raises: UnknownName, UseError where the run's source does not report times, or eligible
        peers are unknown.
        """
        where = where or Where()
        values = {"first": where.first, "last": where.last} | part_of(self, where)
        chosen = {name: value for name, value in values.items() if value is not None}
        conditions = [_OF_DELIVERIES[name] for name in chosen]
        rows = delays(self, " AND ".join(conditions) or "true", **chosen)
        return Frame(f"{self.facts.name}, deliveries", rows)

    def missed(
        self,
        message: str | None = None,
        *,
        by: str | Sequence[str] = (),
        layers: Sequence[str] | None = None,
    ) -> Frame:
        """Why eligible peers never received a message: a row for each of these peers.

        Without a message, reasons over all messages: how many pairs of a message and a peer each
        explains, apart `by` 'topic', 'peer', 'interval' or 'message'. The columns are those of
        vizpub.questions.deliveries; neighbours are those over links of the `layers` (null = all).

        Raises: UnknownName, AmbiguousName, UseError where eligible peers are unknown.
        """
        if message is None:
            keys = [by] if isinstance(by, str) else by
            return Frame(f"{self.facts.name}, missed", count_reasons(self, keys, layers))
        if by:
            raise UseError(BY_OF_ALL)
        rows = reasons_of_message(self, message, layers)
        return Frame(f"{self.facts.name}, missed {message}", rows)

    def gauges(self, names: Sequence[str] | None = None, where: Where | None = None) -> Frame:
        """Numbers that peers reported of their own: a row per interval and peer with any, a column
        for each (null = not reported then). `names` picks some.

        Raises: UnknownName for a gauge or a peer, UseError where none are reported.
        """
        self.facts.check_known("gauges")
        # The others are returned in any case.
        names = [name for name in names or () if name not in _ABOUT_GAUGES] or names
        rows = gauges(self.stored, names, self._condition(GAUGES, where or Where()))
        return Frame(f"{self.facts.name}, gauges", self.with_names(rows))

    def control(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        by: str | None = None,
    ) -> Frame:
        """Control messages by kind, over all peers and topics or those of `where`: a row per
        interval and kind. `columns` picks some; `by` as in `metrics`.

        Raises: UnknownName, UseError for a run without control by kind, or without attributes.
        """
        rows = choose_columns(control_by_kind(self, where or Where(), by), columns)
        return Frame(f"{self.facts.name}, control", rows)

    def overlay(
        self, at: int | str = "last", layers: Sequence[str] | None = None
    ) -> OverlaySnapshot:
        """The overlay at a time: its peers and links, of the given layers (null = of all).

        Raises: OutOfRange, UnknownName, UseError for an invalid time, and if the run's
        source does not report presence or links.
        """
        self.facts.check_known("presence", "links")
        tick = self.tick_at(at)
        peers = self.stored.read("presence", where=alive(tick))
        links = links_at(self, tick, self.checked_layers(layers))
        return self._snapshot(f"overlay in {self.clock.describe(tick)}", peers, links)

    def topic(
        self, name: str, at: int | str = "last", layers: Sequence[str] | None = None
    ) -> OverlaySnapshot:
        """A topic's part of the overlay at a time: its subscribers and the links between them.

        Raises: as `overlay`.
        """
        self.facts.check_known("subscriptions", "links")
        tick = self.tick_at(at)
        of_topic = alive(tick) & (pc.field("topic") == self.topic_index(name))
        peers = self.stored.read("subscriptions", ["peer", "valid_from", "valid_to"], of_topic)
        peers = peers.sort_by("peer")
        inside = pc.field("src").isin(peers["peer"]) & pc.field("dst").isin(peers["peer"])
        links = links_at(self, tick, self.checked_layers(layers)).filter(inside)
        return self._snapshot(f"topic {name} in {self.clock.describe(tick)}", peers, links)

    def _snapshot(self, title: str, peers: pa.Table, links: pa.Table) -> OverlaySnapshot:
        title = f"{self.facts.name}, {title}"
        peer_frame = Frame(f"{title}, peers", self.with_names(peers))
        return OverlaySnapshot(title, self.with_names(links), peer_frame)

    def tree(self, message: str) -> Tree:
        """Return how a message spread: every copy that arrived, by hop and time.

        Raises: UnknownName, UseError if the run's source does not report receptions.
        """
        peers, copies = spread(self, message)
        title = f"{self.facts.name}, message {message}"
        return Tree(title, copies, Frame(f"{title}, peers", peers))

    def sql(self, statement: str) -> Frame:
        """Answer a query in SQL; see vizpub.questions.sql. Raises: UseError, StoreBroken."""
        return Frame(f"{self.facts.name}, {statement}", read_answer(self.stored, statement))

    def _messages(self, columns: Sequence[str] | None, where: Where) -> pa.Table:
        condition = self._condition(PUBLICATIONS, where)
        published = self.stored.read("publications", _ABOUT_MESSAGE, condition)
        metrics = self.stored.read("metrics/messages", columns)
        joined = published.join(metrics, "message", join_type="inner").sort_by("message")
        return joined.select(list(dict.fromkeys([*_ABOUT_MESSAGE, *metrics.column_names])))

    def _check_columns(self, columns: Iterable[str], definition: Table) -> None:
        """Check that a table has the columns.

        Raises: UnknownName, or UseError with the tables of the run that have the column.
        """
        absent = next((name for name in columns if name not in definition.names), None)
        if absent is None:
            return
        stored = [self.stored.definition(t.name) if self.stored.has(t.name) else t for t in METRICS]
        places = [_DRAWN[table.name] for table in stored if absent in table.names]
        if absent in DELIVERY_METRICS:
            places.append(_DRAWN["deliveries"])
        if not places:
            see = f"vizpub runs tables {definition.name}"
            raise UnknownName(f"{definition.name} column", absent, definition.names, see)
        raise UseError(
            f"{definition.name} {HAS_NO_COLUMN} '{absent}'; it is in {' and '.join(places)}"
        )

    def _condition(self, definition: Table, where: Where) -> pc.Expression | None:
        conditions = []
        if where.first is not None:
            conditions.append(pc.field("interval") >= where.first)
        if where.last is not None:
            conditions.append(pc.field("interval") <= where.last)
        if where.peer is not None:
            column = _one_of(("peer", "publisher"), definition)
            conditions.append(pc.field(column) == self.peer_index(where.peer))
        if where.topic is not None:
            conditions.append(
                pc.field(_one_of(("topic",), definition)) == self.topic_index(where.topic)
            )
        return reduce(and_, conditions) if conditions else None

    def __repr__(self) -> str:
        spoken = f" of {self.facts.protocol}" if self.facts.protocol else ""
        peers, range_ = amount(self.stored.rows("peers"), "peer"), self.clock.describe_range()
        return f"<run {self.facts.name}{spoken}: {peers}, {range_}>"

    def _repr_html_(self) -> str:
        """The facts that `vizpub runs show` prints."""
        facts = list(facts_for_people(self.stored))
        return html_table(repr(self)[1:-1], ("fact", "value"), facts, _SHOWN_OF_A_FACT)


def _with_units(rows: pa.Table, own_metrics: Iterable[OwnMetric]) -> pa.Table:
    """Add the units of own metrics as metadata of their columns."""
    for metric in own_metrics:
        if metric.unit and metric.name in rows.column_names:
            column = pa.field(metric.name, pa.float64(), metadata={"unit": metric.unit})
            rows = rows.set_column(rows.column_names.index(metric.name), column, rows[metric.name])
    return rows


def _one_of(columns: Sequence[str], definition: Table) -> str:
    for column in columns:
        if column in definition.names:
            return column
    raise UseError(f"the rows of {definition.name} have no {columns[0]}; see: vizpub runs tables")
