"""GEXF 1.3 files out of the rows of a run: an overlay, one topic of it, one message.

Peers, subscriptions and the metric values of one peer at a time are held in memory; links
are streamed into the file.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from vizpub.graphstore.gexf.message import MessageGraph, MessageRows
from vizpub.graphstore.gexf.overlay import OverlayGraph, OverlayRows
from vizpub.graphstore.gexf.rows import ExportRows, LinkRow
from vizpub.graphstore.gexf.spans import MetricRun
from vizpub.graphstore.gexf.writer import GexfCounts, Head, write_gexf
from vizpub.machine.files import not_writable, replacing
from vizpub.model.clock import Clock, check_window
from vizpub.model.errors import OutOfRange, UnknownName
from vizpub.model.metrics import METRICS_PEERS
from vizpub.model.naming import place_of
from vizpub.model.own import with_own
from vizpub.model.progress import Progress, silent
from vizpub.model.run import DUPLICATES, HOPS, PREVIOUS_HOPS, RunFacts


def metric_attributes(facts: RunFacts) -> list[str]:
    """Columns of metrics/peers that can become dynamic attributes of the nodes of a run."""
    # These are computed from the graph itself.
    derived = ("peer", "interval", "present", "subscriptions")
    return [name for name in with_own(METRICS_PEERS, facts.own).names if name not in derived]


DEFAULT_ATTRIBUTES = (
    "degree",
    "in_degree",
    "out_degree",
    "betweenness",
    "duplicates",
    "control_messages_sent",
    "control_messages_received",
)
_TOPICS_DESCRIBED = 100


@dataclass(frozen=True)
class OverlayExport:
    """The part of an overlay to export. None = all of the run."""

    first: int | None = None
    """First interval of the window."""
    last: int | None = None
    """Last interval of the window, inclusive."""
    layers: Sequence[str] | None = None
    """Layers whose links count; null = those the run's metrics count."""
    parallel: bool = False
    """An edge for each layer and topic of a pair, distinguished by its kind."""
    attributes: Sequence[str] = DEFAULT_ATTRIBUTES
    """Metrics of the peers that `values` holds; see metric_attributes."""
    progress: Progress = silent
    """Called with how many peers' links are written."""


def export_overlay(
    run: ExportRows,
    options: OverlayExport,
    values: Iterable[MetricRun] | None,
    out: TextIO,
) -> GexfCounts:
    """Write the overlay over a window: time is the interval number.

    `values` are the run-length encoded metrics of the peers by ascending peer, as
    `vizpub.graphstore.gexf.spans.run_lengths` gives them; null leaves these columns out.

    Raises: OutOfRange for a window outside the run, UnknownName for a layer or attribute,
    UseError where the run does not know presence or links (a topic: subscriptions);
    what reading the rows raises.
    """
    return _export(run, "the overlay", None, options, values, out)


def export_topic(
    run: ExportRows,
    topic: str,
    options: OverlayExport,
    values: Iterable[MetricRun] | None,
    out: TextIO,
) -> GexfCounts:
    """Write the overlay among a topic's subscribers: as `export_overlay`, in less of it.

    A peer is shown while it subscribes, a link while both its ends do.

    Raises: UnknownName and AmbiguousName for the topic, else as `export_overlay`.
    """
    run.facts.check_known("subscriptions")
    names = [name for _, name in run.topics]
    index = place_of("topic", topic, names, f"vizpub topic {run.facts.name}")
    return _export(run, f"topic '{names[index]}'", index, options, values, out)


def export_message(run: ExportRows, message: str, out: TextIO) -> GexfCounts:
    """Write one message's dissemination: time is the hop.

    Raises: UnknownName and AmbiguousName for the message, UseError where the run does not know
    receptions, hops or previous hops; what reading the rows raises.
    """
    run.facts.check_known("receptions", HOPS, PREVIOUS_HOPS)
    about = run.message(message)
    rows = MessageRows(
        dict(run.peers),
        about.publisher,
        about.time_us,
        run.arrivals(about.message),
        missed=run.missed_peers(about.message),
    )
    graph = MessageGraph(rows, counts=run.facts.knows(DUPLICATES))
    head = graph.head(about.name, run.facts.name)
    return write_gexf(out, head, graph.nodes(), graph.edges())


@contextmanager
def gexf_output(path: Path | None) -> Iterator[TextIO]:
    """Open a file that appears complete or not at all, or standard output (None).

    Raises: UseError if the file cannot be written.
    """
    if path is None:
        sys.stdout.flush()
        out = TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
        try:
            yield out
        finally:
            out.detach()
        return
    try:
        with replacing(path) as new, new.open("w", encoding="utf-8", newline="\n") as out:
            yield out
    except OSError as error:
        raise not_writable(path, error) from error


def _export(
    run: ExportRows,
    title: str,
    topic: int | None,
    options: OverlayExport,
    values: Iterable[MetricRun] | None,
    out: TextIO,
) -> GexfCounts:
    run.facts.check_known("presence", "links")
    clock = _window(run, options)
    available = metric_attributes(run.facts)
    metrics = () if values is None else _check_names("attribute", options.attributes, available)
    rows = _overlay_rows(run, topic, options, clock)
    graph = OverlayGraph(rows, clock, topic, options.parallel)
    head = Head(
        _description(run, title, clock),
        graph.node_attributes(metrics, run.facts.own),
        graph.edge_attributes(),
    )
    return write_gexf(out, head, graph.nodes(values or ()), graph.edges())


def _window(run: ExportRows, options: OverlayExport) -> Clock:
    """Return the run's clock, limited to the window."""
    clock = run.facts.clock
    first = clock.first if options.first is None else options.first
    last = clock.last if options.last is None else options.last
    check_window(first, last)
    for interval in (first, last):
        if not clock.first <= interval <= clock.last:
            raise OutOfRange("interval", str(interval), clock.describe_range())
    return replace(clock, first=first, last=last)


def _check_names(kind: str, names: Sequence[str], available: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in available:
            raise UnknownName(kind, name, available)
    return names


def _overlay_rows(
    run: ExportRows, topic: int | None, options: OverlayExport, clock: Clock
) -> OverlayRows:
    layers = run.facts.layers
    if options.layers is not None:
        layers = tuple(_check_names("layer", options.layers, run.layers))
    ticks = clock.sampling_tick(clock.first), clock.sampling_tick(clock.last)
    roles: dict[int, set[str]] = defaultdict(set)
    for peer, role in run.roles(topic):
        roles[peer].add(role)
    return OverlayRows(
        run.peers,
        run.presence(*ticks),
        run.subscriptions(*ticks),
        _report_progress(run.links(*ticks, layers), len(run.peers), options.progress),
        {peer: frozenset(of) for peer, of in roles.items()},
        dict(run.topics),
        run.layers if layers is None else layers,
        list(run.attributes(*ticks)),
        [metric.name for metric in run.facts.own],
    )


def _report_progress(links: Iterable[LinkRow], total: int, progress: Progress) -> Iterator[LinkRow]:
    source = -1
    for link in links:
        if link.src != source:
            source = link.src
            progress("links", source, total)
        yield link
    progress("links", total, total)


def _description(run: ExportRows, title: str, clock: Clock) -> str:
    facts = run.facts
    lines = [
        f"{title} of run '{facts.name}'; time is the interval number: {clock.describe_range()}"
    ]
    if facts.protocol:
        lines.append(f"protocol: {facts.protocol}")
    lines += [f"unknown to the source: {fact}" for fact in facts.unknown]
    topics = run.topics
    lines += [f"topic {index}: {name}" for index, name in topics[:_TOPICS_DESCRIBED]]
    if len(topics) > _TOPICS_DESCRIBED:
        lines.append(f"and {len(topics) - _TOPICS_DESCRIBED} more topics")
    return "\n".join(lines)
