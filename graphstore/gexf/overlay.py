"""An overlay as a GEXF graph: its time is the interval number.

Rows in, nodes and edges out; no Neo4j, no file. A peer or link is valid in the intervals
that sample it (vizpub.model.clock), so each interval of the file has as many nodes and edges as
metrics/overlay says: n peers and m distinct links. Of one topic, it has as many as
metrics/topics says: its subscribers, and the links whose two ends subscribe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from vizpub.graphstore.gexf.rows import AttributeRow, LinkRow, PresenceRow, SubscriptionRow
from vizpub.graphstore.gexf.spans import (
    Key,
    MetricRun,
    Span,
    common_spans,
    counts_of,
    merge_spans,
    sets_over,
    shared_sets,
)
from vizpub.graphstore.gexf.writer import (
    NODE_SIZE,
    Attribute,
    AttributeType,
    Edge,
    Node,
    Run,
    Value,
)
from vizpub.model.clock import Clock
from vizpub.model.metrics import METRICS_PEERS
from vizpub.model.naming import captions
from vizpub.model.own import OwnMetric, with_own

Periods = dict[int, list[Span]]
SampledLink = tuple[int, int, str, int | None, Span]
"""(src, dst, layer, topic, the intervals that sample it)"""
SharedTopics = tuple[int, int, frozenset[int]]
"""(first interval, last interval, the topics that both ends of a link share in them)"""

ROLES = ("rendezvous", "publisher", "relay")
"""The first of them that a peer has is drawn."""
COLOURS = {
    # Okabe and Ito's palette, which the colour-blind can distinguish.
    "rendezvous": "#009E73",
    "publisher": "#D55E00",
    "relay": "#E69F00",
    "subscriber": "#0072B2",
    "missed": "#CC79A7",
    "peer": "#7F8C8D",
}
_GEXF_TYPES: dict[str, AttributeType] = {
    "int32": "integer",
    "int64": "long",
    "double": "double",
    "bool": "boolean",
}
_SIZES = {"rendezvous": 2 * NODE_SIZE}
_ROOM_PER_PEER = 20.0
_SMALLEST_RADIUS = 100.0
_OF_NODES = ("name", "role", "roles")
_OF_GEPHI = ("id", "label", "timeset", "interval")
_OF_TOPICS = ("subscriptions", "topics_now", "topics", "topic_names")


@dataclass(frozen=True)
class OverlayRows:
    """The rows of an overlay. All but `links` are held in memory."""

    peers: Sequence[tuple[int, str]]
    """(id, name), by ascending id."""
    presence: Iterable[PresenceRow]
    subscriptions: Iterable[SubscriptionRow]
    links: Iterable[LinkRow]
    """Ordered by (src, dst); read once."""
    roles: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The roles of ROLES that peers have; a relay received what it had not subscribed to."""
    topics: Mapping[int, str] = field(default_factory=dict)
    """Names of the topics."""
    layers: Sequence[str] = ()
    """The layers that links may have."""
    attributes: Sequence[AttributeRow] = ()
    own_metrics: Sequence[str] = ()
    """Names of the run's own metrics."""


@dataclass(frozen=True)
class OverlayGraph:
    """The nodes and edges of a window of an overlay, or of one topic's part of it."""

    rows: OverlayRows
    clock: Clock
    """The run's clock, its first and last interval narrowed to the window."""
    topic: int | None = None
    parallel: bool = False
    """One edge for each (layer, topic) of a pair instead of one for the pair."""

    @cached_property
    def topics(self) -> dict[int, Periods]:
        """The intervals of each peer's subscriptions, by peer and topic."""
        rows = (
            ((peer, topic), valid_from, valid_to)
            for peer, topic, valid_from, valid_to in self.rows.subscriptions
        )
        topics: dict[int, Periods] = {}
        for (peer, topic), spans in _sampled_periods(rows, self.clock).items():
            topics.setdefault(peer, {})[topic] = spans
        return topics

    @cached_property
    def periods(self) -> Periods:
        """The intervals in which each peer is there; of a topic, in which it subscribes."""
        present = _sampled_periods(self.rows.presence, self.clock)
        if self.topic is None:
            return present
        return {
            peer: spans
            for peer, of in self.topics.items()
            if (spans := common_spans(present.get(peer, []), of.get(self.topic, [])))
        }

    def node_attributes(
        self, metrics: Sequence[str], own_metrics: Iterable[OwnMetric] = ()
    ) -> list[Attribute]:
        """The columns of the nodes; `metrics` names columns of metrics/peers, `own` ones too."""
        types = {column.name: column.type for column in with_own(METRICS_PEERS, own_metrics)}
        measured = [Attribute(name, _GEXF_TYPES[types[name]], dynamic=True) for name in metrics]
        subscribed = [
            Attribute("subscriptions", "integer", dynamic=True),
            Attribute("topics_now", "string", dynamic=True),
            Attribute("topics", "string"),
            Attribute("topic_names", "string"),
        ]
        static = [Attribute(title, "string") for title in _OF_NODES]
        keys = [Attribute(title, "string", dynamic=True) for title in self._key_titles.values()]
        return [*measured, *keys, *(subscribed if self.topics else []), *static]

    def edge_attributes(self) -> list[Attribute]:
        """The columns of the edges."""
        shared = [
            Attribute("shared_topics", "integer", dynamic=True),
            Attribute("weight", "double", dynamic=True),
            Attribute("shared_now", "string", dynamic=True),
            Attribute("shared", "string"),
            Attribute("shared_names", "string"),
        ]
        titles = self._layer_titles.values()
        layers = [Attribute(title, "boolean", dynamic=True) for title in titles]
        static = [Attribute(title, "string") for title in ("layers", "topics", "topic_names")]
        return [*(shared if self.topics else []), *layers, *static]

    def nodes(self, values: Iterable[MetricRun] = ()) -> Iterator[Node]:
        """The peers by ascending id; `values` by ascending peer."""
        shown = self.clock
        alive = [(peer, name) for peer, name in self.rows.peers if peer in self.periods]
        size = max((peer for peer, _ in self.rows.peers), default=0) + 1
        every = captions([name for _, name in self.rows.peers])
        labels = {peer: label for (peer, _), label in zip(self.rows.peers, every, strict=True)}
        measured = _runs_by_peer([peer for peer, _ in alive], values)
        for (peer, name), runs in zip(alive, measured, strict=True):
            roles = self.rows.roles.get(peer, frozenset())
            role = next((role for role in ROLES if role in roles), "peer")
            metric_runs = [
                (attribute, max(first, shown.first), min(last, shown.last), value)
                for _, attribute, first, last, value in runs
                if first <= shown.last and last >= shown.first
            ]
            yield Node(
                id=peer,
                label=labels[peer],
                spells=self.periods[peer],
                position=circle_position(peer, size),
                colour=COLOURS[role],
                runs=[*metric_runs, *self._attribute_runs(peer), *self._subscription_runs(peer)],
                values=[
                    *(self._topic_values(self.topics.get(peer, {})) if self.topics else []),
                    ("name", name),
                    ("role", role),
                    ("roles", join_delimited(roles)),
                ],
                size=_SIZES.get(role, NODE_SIZE),
            )

    def edges(self) -> Iterator[Edge]:
        """The links in the order of their rows."""
        for (source, target), rows in groupby(self._sampled_links(), key=itemgetter(0, 1)):
            for kind, links in self._kinds(list(rows)):
                periods = merge_spans(link[4] for link in links)
                for end in (source, target) if self.topic is not None else ():
                    periods = common_spans(periods, self.periods.get(end, []))
                if periods:
                    shared = self._shared_topics(source, target, periods)
                    runs = [*_shared_runs(shared), *self._layer_runs(links, periods)]
                    topics = {link[3] for link in links if link[3] is not None}
                    values: list[tuple[str, Value]] = [
                        ("layers", join_delimited({link[2] for link in links})),
                        *(self._topic_values(topics) if topics else []),
                        *(self._shared_values(shared) if self.topics else []),
                    ]
                    yield Edge(source, target, periods, runs, values, kind)

    def _kinds(
        self, links: Sequence[SampledLink]
    ) -> Iterable[tuple[str | None, Sequence[SampledLink]]]:
        """The links of a pair by the kind of edge they become."""
        if not self.parallel:
            return [(None, links)]
        kinds: dict[str | None, list[SampledLink]] = {}
        for link in links:
            _, _, layer, topic, _ = link
            kinds.setdefault(f"{layer}:{'-' if topic is None else topic}", []).append(link)
        return sorted(kinds.items(), key=lambda kind: str(kind[0]))

    @cached_property
    def _layer_titles(self) -> dict[str, str]:
        """The layers to tell apart over time, and the titles of their columns: none where an edge
        has a single layer. Gephi takes titles that differ in case alone for one.
        """
        layers = () if self.parallel or len(self.rows.layers) < 2 else self.rows.layers
        return _distinct_titles({layer: f"layer_{layer}" for layer in layers})

    def _layer_runs(self, links: Sequence[SampledLink], periods: list[Span]) -> Iterator[Run]:
        """Yield for each layer if the pair has a link in it, over the periods of its edge."""
        for layer, title in self._layer_titles.items():
            spans = merge_spans(link[4] for link in links if link[2] == layer)
            for first, last, has_link in sets_over({layer: spans}, periods):
                yield title, first, last, bool(has_link)

    def _topic_values(self, topics: Iterable[int]) -> list[tuple[str, Value]]:
        """Return the numbers and the names of topics, in the order of their numbers."""
        return [("topics", join_delimited(topics)), ("topic_names", self._names(topics))]

    def _names(self, topics: Iterable[int]) -> str:
        return _join_escaped(self.rows.topics[topic] for topic in sorted(topics))

    @cached_property
    def _key_titles(self) -> dict[str, str]:
        """The attributes of peers, and the titles of their columns."""
        metrics = (*(column.name for column in METRICS_PEERS), *self.rows.own_metrics)
        used = [*_OF_NODES, *_OF_TOPICS, *_OF_GEPHI, *metrics]
        return _distinct_titles({row.key: row.key for row in self.rows.attributes}, used)

    @cached_property
    def _attributes(self) -> dict[int, list[AttributeRow]]:
        """The attributes of each peer."""
        by_peer: dict[int, list[AttributeRow]] = {}
        for row in self.rows.attributes:
            by_peer.setdefault(row.peer, []).append(row)
        return by_peer

    def _attribute_runs(self, peer: int) -> Iterator[Run]:
        for row in self._attributes.get(peer, []):
            steps = self.clock.sampled(row.valid_from, row.valid_to)
            for first, last in common_spans(
                [(steps[0], steps[-1])] if steps else [], self.periods[peer]
            ):
                yield self._key_titles[row.key], first, last, row.value

    def _subscription_runs(self, peer: int) -> Iterator[Run]:
        if not self.topics:
            return
        for first, last, topics in sets_over(self.topics.get(peer, {}), self.periods[peer]):
            yield "subscriptions", first, last, len(topics)
            yield "topics_now", first, last, join_delimited(topics)

    def _sampled_links(self) -> Iterator[SampledLink]:
        clock = self.clock
        for source, target, layer, topic, valid_from, valid_to in self.rows.links:
            steps = clock.sampled(valid_from, valid_to)
            if steps:
                yield source, target, layer, topic, (steps[0], steps[-1])

    def _shared_topics(self, source: int, target: int, periods: list[Span]) -> list[SharedTopics]:
        """The topics to which both ends subscribe; none where subscriptions are unknown."""
        if not self.topics:
            return []
        return shared_sets(self.topics.get(source, {}), self.topics.get(target, {}), periods)

    def _shared_values(self, shared: Sequence[SharedTopics]) -> list[tuple[str, Value]]:
        """Return the numbers and the names of all topics that are shared at some time."""
        topics = frozenset[int]().union(*(of for *_, of in shared))
        return [("shared", join_delimited(topics)), ("shared_names", self._names(topics))]


def _shared_runs(shared: Sequence[SharedTopics]) -> Iterator[Run]:
    counts = counts_of(shared)
    yield from (("shared_topics", *count) for count in counts)
    # Gephi throws an edge of weight 0 away.
    yield from (("weight", first, last, 1 + count) for first, last, count in counts)
    yield from (("shared_now", first, last, join_delimited(of)) for first, last, of in shared)


def _distinct_titles(wanted: Mapping[str, str], used: Iterable[str] = ()) -> dict[str, str]:
    """Return titles that differ from each other, and from those in use, also without case: with a
    number behind them where necessary.
    """
    titles, taken = dict[str, str](), {title.casefold() for title in used}
    for name, wanted_title in wanted.items():
        title, number = wanted_title, 1
        while title.casefold() in taken:
            number += 1
            title = f"{wanted_title}_{number}"
        taken.add(title.casefold())
        titles[name] = title
    return titles


def _sampled_periods(rows: Iterable[tuple[Key, int, int]], clock: Clock) -> dict[Key, list[Span]]:
    """Return the intervals that sample the validity periods of each key."""
    spans: dict[Key, list[Span]] = {}
    for key, valid_from, valid_to in rows:
        if steps := clock.sampled(valid_from, valid_to):
            spans.setdefault(key, []).append((steps[0], steps[-1]))
    return {key: merge_spans(of) for key, of in spans.items()}


def _runs_by_peer(
    peers: Iterable[int], values: Iterable[MetricRun]
) -> Iterator[Sequence[MetricRun]]:
    """The rows of each peer in turn; both by ascending peer, read once."""
    groups = groupby(values, key=itemgetter(0))
    end: tuple[float, Iterable[MetricRun]] = (math.inf, ())
    peer, runs = next(groups, end)
    for wanted in peers:
        while peer < wanted:
            peer, runs = next(groups, end)
        yield list(runs) if peer == wanted else []


def circle_position(peer: int, size: int) -> tuple[float, float]:
    """Return a peer's place on a circle ordered by id, anticlockwise from the right."""
    radius = max(_SMALLEST_RADIUS, size * _ROOM_PER_PEER / math.tau)
    angle = math.tau * peer / size
    return radius * math.cos(angle), radius * math.sin(angle)


def join_delimited(items: Iterable[int] | Iterable[str]) -> str:
    """Join items like `|3|17|`, so that a search for `|1|` never finds 17; no items are `|`.

    In names, `|` and backslashes are escaped by a backslash.
    """
    return _join_escaped(map(str, sorted(items)))


def _join_escaped(items: Iterable[str]) -> str:
    escaped = (item.replace("\\", "\\\\").replace("|", "\\|") for item in items)
    return "|".join(["", *escaped, ""])
