"""Figures of a whole run from its tables: over all messages, and over a range of intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import alive, not_refused
from vizpub.runstore.store import StoredRun

Figures = dict[str, float | None]


@dataclass(frozen=True)
class Span:
    """Intervals `first` to `last` of a run."""

    run: NamedRun
    first: int
    last: int

    def read(self, table: str, columns: Iterable[str], where: pc.Expression) -> pa.Table:
        """Some rows of a table of the run, in no order."""
        return self.run.stored.read_unordered(table, list(columns), where)

    @property
    def inside(self) -> pc.Expression:
        """Rows of these intervals."""
        return (pc.field("interval") >= self.first) & (pc.field("interval") <= self.last)

    @property
    def alive(self) -> pc.Expression:
        """The condition for validity periods that overlap these intervals."""
        k = self.run.clock.ticks_per_interval
        return (pc.field("valid_from") < (self.last + 1) * k) & (
            pc.field("valid_to") > self.first * k
        )

    @cached_property
    def publications(self) -> pa.Table:
        """message, interval of what was published in these intervals."""
        return self.read("publications", ["message", "interval"], self.inside)

    @cached_property
    def messages(self) -> pa.Table:
        """metrics/messages with `interval`, of those published in these intervals."""
        measured = self.run.stored.read("metrics/messages")
        return measured.join(self.publications, "message", join_type="inner")


def whole_run(span: Span, wanted: Iterable[str]) -> Figures:
    """The `wanted` figures of vizpub.analytics.comparison.metrics.WHOLE, by name; null =
    unknown."""
    wanted = set(wanted)
    results: Figures = {}
    for names, figures in _FAMILIES.items():
        if wanted.intersection(names):
            results |= dict(zip(names, figures(span), strict=True))
    return {name: value for name, value in results.items() if name in wanted}


def _distinct(span: Span) -> Iterable[float | None]:
    """Number of distinct peers and links, links per peer, and density."""
    stored, layers = span.run.stored, span.run.facts.layers
    peers = links = None
    if stored.has("presence"):
        peers = len(pc.unique(span.read("presence", ["peer"], span.alive)["peer"]))
    if stored.has("links"):
        counted = span.alive & (pc.field("src") != pc.field("dst"))
        counted = counted if layers is None else counted & pc.field("layer").isin(layers)
        ends = span.read("links", ["src", "dst"], counted)
        links = ends.group_by(["src", "dst"]).aggregate([]).num_rows
    if not peers or links is None:
        return peers, links, None, None
    return peers, links, links / peers, links / (peers * (peers - 1)) if peers > 1 else None


def _outcome(span: Span) -> Iterable[float | None]:
    """Publications, hit ratios, duplicates per delivery, share of relay receptions."""
    if not span.run.stored.has("metrics/messages"):
        return (None,) * 5
    messages = span.messages
    counted = messages.filter(not_refused())
    return (
        None if span.run.facts.is_sample else messages.num_rows,
        _quotient(counted, "delivered", "eligible"),
        pc.mean(counted["hit_ratio"]).as_py(),
        _quotient(counted, "duplicates", "delivered"),
        _quotient(messages, "relay_receptions", "receptions"),
    )


def _quotient(rows: pa.Table, above: str, below: str) -> float | None:
    """Σ above / Σ below over the rows that have both; null where Σ below is 0 or unknown."""
    complete = rows.filter(pc.is_valid(pc.field(above)) & pc.is_valid(pc.field(below)))
    total = pc.sum(complete[below]).as_py()
    return pc.sum(complete[above]).as_py() / total if total else None


def _hops(span: Span) -> Iterable[float | None]:
    """Mean and largest hop of first receptions."""
    of_span = pc.field("message").isin(span.publications["message"])
    with_hop = pc.field("first") & pc.field("hop").is_valid() & of_span
    hops = span.read("receptions", ["hop"], with_hop)["hop"]
    return pc.mean(hops).as_py(), pc.max(hops).as_py()


def _convergence(span: Span) -> Iterable[float | None]:
    """µs from the first publication to the last first reception of what was published."""
    starts = span.read("publications", ["time_us"], span.inside)["time_us"]
    first_receptions = pc.field("first") & pc.field("message").isin(span.publications["message"])
    arrived = span.read("receptions", ["time_us"], first_receptions)["time_us"]
    if starts.null_count or arrived.null_count or not len(starts) or not len(arrived):
        return (None,)
    return (pc.max(arrived).as_py() - pc.min(starts).as_py(),)


_TENTH = 10
_TRAFFIC = [
    f"{kind}_{{}}_{direction}"
    for kind in ("control", "publication")
    for direction in ("sent", "received")
]
"""Columns of traffic, with a place for the unit."""


def _busiest(span: Span) -> Iterable[float | None]:
    """Of the tenth of peers (rounded up) that send and receive most messages: messages of each in
    an interval, and their share of all; the share of those with most bytes. Null where a direction
    is not reported.
    """
    messages, of_bytes = (_loads(span, unit) for unit in ("messages", "bytes"))
    most, intervals = _busy(messages), span.last + 1 - span.first
    each = sum(most) / len(most) / intervals if most else None
    return each, _share_of_busy(messages), _share_of_busy(of_bytes)


def _loads(span: Span, unit: str) -> list[int]:
    """Return the messages or bytes of each peer, most first; empty if a direction is unknown."""
    columns = [template.format(unit) for template in _TRAFFIC]
    rows = span.read("traffic", ["peer", *columns], span.inside)
    if any(rows[column].null_count == rows.num_rows for column in columns):
        return []
    for column in columns:  # 64 bits do not hold every sum
        rows = rows.set_column(
            rows.column_names.index(column), column, rows[column].cast(pa.decimal128(38))
        )
    peers = rows.group_by("peer").aggregate([(column, "sum") for column in columns])
    loads = [int(sum(filter(None, row.values()))) for row in peers.drop("peer").to_pylist()]
    return sorted(loads, reverse=True)


def _busy(loads: list[int]) -> list[int]:
    return loads[: -(-len(loads) // _TENTH)]


def _share_of_busy(loads: list[int]) -> float | None:
    return sum(_busy(loads)) / sum(loads) if sum(loads) else None


def _rooted_topics(span: Span) -> Iterable[float | None]:
    """Least, mean and most topics of which a peer is the rendezvous, of the peers present at the
    end of the span; null where no peer ever reports to be one.
    """
    tick = span.run.clock.sampling_tick(span.last)
    is_root = (pc.field("role") == "rendezvous") & pc.field("topic").is_valid()
    if not span.run.stored.has("presence") or not span.read("roles", ["peer"], is_root).num_rows:
        return (None,) * 3
    present = span.read("presence", ["peer"], alive(tick))["peer"].to_pylist()
    pairs = span.read("roles", ["peer", "topic"], is_root & alive(tick)).group_by(["peer", "topic"])
    rooted = Counter(pairs.aggregate([])["peer"].to_pylist())
    counts = [rooted[peer] for peer in present]
    return (min(counts), sum(counts) / len(counts), max(counts)) if counts else (None,) * 3


_FAMILIES: dict[tuple[str, ...], Callable[[Span], Iterable[float | None]]] = {
    (
        "distinct_peers",
        "distinct_links",
        "distinct_links_per_peer",
        "distinct_density",
    ): _distinct,
    (
        "publications",
        "hit_ratio",
        "hit_ratio_mean",
        "duplicates_per_delivery",
        "relay_share",
    ): _outcome,
    ("hops_mean", "hops_max"): _hops,
    ("convergence_us",): _convergence,
    ("busiest_tenth_messages", "busiest_tenth_share", "busiest_tenth_bytes_share"): _busiest,
    ("rooted_topics_min", "rooted_topics_mean", "rooted_topics_max"): _rooted_topics,
}


@dataclass(frozen=True)
class Pooled:
    """Counts over the messages of a run. Null is unknown.

    `eligible`, `delivered`, `hit_ratio_mean` and `late` leave out messages that a peer
    refused; `refused` counts these.
    """

    messages: int
    unreported: int
    """Messages without a reported publication; known from their arrivals."""
    refused: int
    eligible: int | None
    delivered: int | None
    hit_ratio: float | None
    """delivered / eligible; null where no peer was eligible."""
    hit_ratio_mean: float | None
    late: int | None
    hops: dict[int | None, int]
    """Number of first receptions by hops travelled; null = unknown."""


def hit_ratio(run: StoredRun) -> float | None:
    """The hit ratio over the messages of a run; null where it is unknown."""
    columns = ["delivered", "eligible"]
    return _quotient(run.read_unordered("metrics/messages", columns, not_refused()), *columns)


def pool_messages(run: StoredRun) -> Pooled | None:
    """The figures of a complete run; null where messages are unknown."""
    if not run.has("metrics/messages"):
        return None
    measured = run.read("metrics/messages")
    counted = measured.filter(not_refused())
    sums = {name: pc.sum(counted[name]).as_py() for name in ("eligible", "delivered")}
    return Pooled(
        messages=measured.num_rows,
        unreported=unreported_count(run),
        refused=measured.num_rows - counted.num_rows,
        hit_ratio=_quotient(counted, "delivered", "eligible"),
        hit_ratio_mean=pc.mean(counted["hit_ratio"]).as_py(),
        late=pc.sum(counted["late_deliveries"]).as_py(),
        hops=_hop_counts(run),
        **sums,
    )


def unreported_count(run: StoredRun) -> int:
    """The number of messages without a reported publication; known from their arrivals."""
    is_known = run.read("publications", ["publication_known"])["publication_known"]
    return len(is_known) - (pc.sum(is_known).as_py() or 0)


def reporter_count(run: StoredRun) -> int:
    """The number of reporters; other peers are only named by them."""
    return pc.sum(run.read("peers", ["is_reporter"])["is_reporter"]).as_py() or 0


def _hop_counts(run: StoredRun) -> dict[int | None, int]:
    """The number of first receptions by hop, ascending; null is last."""
    counts: Counter[int | None] = Counter()
    for batch in run.scan("receptions", ["hop"], pc.field("first")):
        for hop in pc.value_counts(batch["hop"]).to_pylist():
            counts[hop["values"]] += hop["counts"]
    return dict(sorted(counts.items(), key=lambda item: (item[0] is None, item[0] or 0)))
