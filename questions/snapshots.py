"""Data for figures: the overlay at a tick, and the dissemination of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Integers
from vizpub.model.run import AUDIENCE, DUPLICATES, HOPS, PUBLICATION_TIMES, TIMES

if TYPE_CHECKING:
    from vizpub.questions.names import NamedRun


def snapshot(
    run: NamedRun, tick: int, topic: str | None = None, layers: Sequence[str] | None = None
) -> tuple[pa.Table, pa.Table]:
    """The peers and the distinct links of the overlay at a tick.

    Links are of the given layers; null = those that the metrics count.

    Peers have `peer`, `peer_name`, `role`: subscriber or relay of the topic (it subscribes at
    the tick; ever received of it unsubscribed), else peer, `publishes`: it ever published to
    the topic, and `rendezvous`: it is in this role, for the topic or any. Links have `src`,
    `dst`, their names, and `inside`: both ends subscribe.

        peer  peer_name  role  publishes  rendezvous    src  src_name  dst  dst_name  inside
        0     alice      peer  true       false         0    alice     1    bob       true

    Raises: OutOfRange, UnknownName, UseError where the run's source does not report presence or
    links, or, with a topic, subscriptions.
    """
    run.facts.check_known("presence", "links", *(["subscriptions"] if topic is not None else []))
    run.clock.check_tick(tick)
    peers = run.stored.read("presence", ["peer"], alive(tick))
    links = distinct_links(run, tick, run.counted_layers(layers))
    index = None if topic is None else run.topic_index(topic)
    publishers, subscribers, relays = _roles(run, tick, index)
    relaying = pc.if_else(pc.is_in(peers["peer"], relays), "relay", "peer")
    role = pc.if_else(pc.is_in(peers["peer"], subscribers), "subscriber", relaying)
    peers = peers.append_column("role", role)
    peers = peers.append_column("publishes", pc.is_in(peers["peer"], publishers))
    peers = _with_rendezvous(run, peers, tick, index)
    ends_inside = (pc.is_in(links[end], subscribers) for end in ("src", "dst"))
    return (
        run.with_names(peers),
        run.with_names(links.append_column("inside", pc.and_(*ends_inside))),
    )


def alive(tick: int) -> pc.Expression:
    """The condition for rows whose validity period contains a tick."""
    return (pc.field("valid_from") <= tick) & (pc.field("valid_to") > tick)


def not_refused() -> pc.Expression:
    """The condition for rows of metrics/messages that pooled figures count: without a known
    refusal. analytics/sql/hits.sql has the same.
    """
    return pc.coalesce(pc.field("rejections"), pc.scalar(0)) == 0


def _with_rendezvous(run: NamedRun, peers: pa.Table, tick: int, topic: int | None) -> pa.Table:
    """The peers, and whether each is in that role at a tick: for the topic, null = for any."""
    is_rendezvous = alive(tick) & (pc.field("role") == "rendezvous")
    if topic is not None:
        is_rendezvous &= pc.field("topic") == topic
    rendezvous = run.stored.read("roles", ["peer"], is_rendezvous)["peer"].combine_chunks()
    return peers.append_column("rendezvous", pc.is_in(peers["peer"], rendezvous))


def links_at(run: NamedRun, tick: int, layers: Sequence[str] | None) -> pa.Table:
    """The rows of `links` at a tick, of the given layers (null = all)."""
    where = alive(tick)
    if layers is not None:
        where &= pc.field("layer").isin(pa.array(layers, pa.string()))
    return run.stored.read("links", where=where)


def distinct_links(run: NamedRun, tick: int, layers: Sequence[str] | None) -> pa.Table:
    """src, dst: the pairs of peers with a link at a tick, in order."""
    pairs = links_at(run, tick, layers).group_by(["src", "dst"]).aggregate([])
    return pairs.sort_by([("src", "ascending"), ("dst", "ascending")])


def _roles(run: NamedRun, tick: int, topic: int | None) -> tuple[pa.Array, ...]:
    """The publishers, subscribers (at the tick) and relays of a topic; of none, nobody."""
    if topic is None:
        return (pa.array([], pa.int32()),) * 3
    of_topic = pc.field("topic") == topic
    published = run.stored.read("publications", ["message", "publisher"], of_topic)
    relayed = pc.field("message").isin(published["message"]) & ~pc.field("subscribed")
    columns = (
        published["publisher"].drop_null(),
        run.stored.read("subscriptions", ["peer"], of_topic & alive(tick))["peer"],
        run.stored.read("receptions", ["peer"], relayed)["peer"],
    )
    return tuple(column.combine_chunks() for column in columns)


COVERAGE_NEEDS = {
    along: ("subscriptions", "receptions", *capabilities, AUDIENCE)
    for along, capabilities in (("delay_us", (TIMES, PUBLICATION_TIMES)), ("hop", (HOPS,)))
}
"""What a run must know for its coverage along each."""


def coverage(
    run: NamedRun,
    messages: Sequence[str] = (),
    along: str = "delay_us",
    among: Integers | None = None,
) -> pa.Table:
    """The delivery of messages (all, or those named) to eligible peers over time, or along `hop`.

    A message begins with a row of its publication; after `delay_us` from then, `delivered`
    of the eligible peers are reached: those that subscribe at the tick of the publication,
    but the publisher (as in metrics/messages). Left out are messages without
    eligible peers or with unknown times, and, unless they are named, those that a peer
    refused, as in every pooled figure. `among` has the numbers of those that are not left out for
    another reason; null = all.

        message  message_name  delay_us  delivered  eligible  share
        0        m0            0         0          18        0
        0        m0            1200      1          18        0.056

    Along hops, no time needs to be known, and the publication has hop 0. Eligible peers whose hop
    is unknown are reached, but not counted in `delivered`.

    Raises: UnknownName, UseError where the run's source does not report these.
    """
    by_time = along == "delay_us"
    run.facts.check_known(*COVERAGE_NEEDS[along])
    published = run.stored.read("publications", ["message", "name", "time_us"])
    if by_time:
        published = published.filter(pc.field("time_us").is_valid())
    if messages:
        named = [run.message_index(name) for name in messages]
        published = published.filter(pc.field("message").isin(named))
    if among is not None:
        published = published.filter(pc.is_in(published["message"], pa.array(among, pa.int64())))
    wanted = pc.field("message").isin(published["message"]) if messages else pc.scalar(True)
    has_eligible = (pc.field("eligible") > 0) & wanted
    counted = has_eligible if messages else has_eligible & not_refused()
    eligible = run.stored.read("metrics/messages", ["message", "eligible"], counted)
    start = published["time_us"] if by_time else pa.array(np.zeros(len(published), np.int64))
    published = published.drop_columns(["time_us"]).append_column("start", start)
    published = published.join(eligible, "message", join_type="inner")
    column = "time_us" if by_time else "hop"
    is_delivery = pc.field("first") & pc.field("eligible") & wanted
    arrivals = run.stored.read("receptions", ["message", column], is_delivery)
    if by_time:
        untimed = arrivals.filter(pc.field(column).is_null())["message"].combine_chunks()
        published = published.filter(pc.invert(pc.is_in(published["message"], untimed)))
    arrivals = arrivals.filter(pc.field(column).is_valid())
    arrivals = arrivals.set_column(1, "at", arrivals[column].cast(pa.int64()))
    return _shares(published, arrivals, along)


def _shares(published: pa.Table, arrivals: pa.Table, along: str) -> pa.Table:
    """A row for each publication and each arrival, in order, with what is delivered by then."""
    arrived = arrivals.join(published, "message", join_type="inner")
    starts = published.append_column("at", published["start"])
    parts = (starts, arrived.select(starts.column_names))
    rows = pa.concat_tables(
        part.append_column("is_arrival", pa.array([is_arrival] * len(part), pa.int8()))
        for is_arrival, part in enumerate(parts)
    )
    rows = rows.sort_by([(key, "ascending") for key in ("message", "is_arrival", "at")])
    _, first, counts = np.unique(rows["message"], return_index=True, return_counts=True)
    delivered = np.arange(len(rows)) - np.repeat(first, counts)
    return pa.table(
        {
            "message": rows["message"],
            "message_name": rows["name"],
            along: pc.subtract(rows["at"], rows["start"]),
            "delivered": delivered,
            "eligible": rows["eligible"],
            "share": delivered / rows["eligible"].to_numpy(),
        }
    )


def spread(run: NamedRun, message: str) -> tuple[pa.Table, pa.Table]:
    """The peers that a message reached or missed, and each copy of it that arrived.

    Peers are the publisher, who received it, who is only known to have passed it on, and who
    missed it. They have `peer`, `peer_name`, `role`: publisher, missed (eligible, but never
    reached), subscriber or relay (subscribed or not at the first reception), else peer; `hop`
    of the first reception (0 = publisher, null = unknown or missed), `duplicates`, the copies
    after the first (null where the source lists first arrivals alone), and `rendezvous`: in this
    role for the topic at the publication.

    Copies by hop and time have `hop`, `time_us`, `previous_hop` and `peer` with their names,
    `first` and `subscribed`, as vizpub.model.tables says.

        peer  peer_name  role        hop  duplicates    hop  time_us  previous_hop  peer  first
        0     alice      publisher   0    0             1    130000   0             1     true
        1     bob        subscriber  1    1             3    600000   2             1     false

    Raises: UnknownName, UseError if the run's source does not report receptions.
    """
    run.facts.check_known("receptions")
    peers, copies = spread_of(run, run.message_index(message))
    return run.with_names(peers), run.with_names(copies.drop_columns(["eligible"]))


def spread_of(run: NamedRun, message: int) -> tuple[pa.Table, pa.Table]:
    """The peers and copies of a message, as `spread` gives them, without names; copies also have
    `eligible`: the peer was.
    """
    copies, published = copies_of(run, message), run.publication(message)
    missed = run.stored.read("missed", ["peer"], pc.field("message") == message)["peer"].to_pylist()
    counts = run.facts.knows(DUPLICATES)
    rows = list(_peer_rows(copies, published["publisher"], frozenset(missed), counts=counts))
    # A message of an unknown topic has no rendezvous.
    topic = -1 if published["topic"] is None else published["topic"]
    peers = pa.Table.from_pylist(rows, _REACHED)
    return _with_rendezvous(run, peers, published["tick"], topic), copies


def copies_of(run: NamedRun, message: int) -> pa.Table:
    """The copies of a message that arrived, as `spread_of` gives them."""
    columns = ["hop", "time_us", "previous_hop", "peer", "first", "subscribed", "eligible"]
    order = ["hop", "time_us", "peer", "previous_hop"]
    copies = run.stored.read("receptions", columns, pc.field("message") == message)
    return copies.sort_by([(column, "ascending") for column in order])


_ROLES = {True: "subscriber", False: "relay", None: "peer"}
"""Roles of receivers by whether they subscribe; null = unknown."""
_REACHED = pa.schema(
    [
        ("peer", pa.int32()),
        ("role", pa.string()),
        ("hop", pa.int32()),
        ("duplicates", pa.int64()),
    ]
)


def _peer_rows(
    copies: pa.Table, publisher: int | None, missed: frozenset[int], *, counts: bool
) -> Iterator[dict[str, Any]]:
    """The rows of the peers, by peer; `counts` = all copies are reported, not only the first."""
    receivers = copies["peer"].to_pylist()
    copied = Counter(receivers)
    firsts = {row["peer"]: row for row in copies.to_pylist() if row["first"]}
    peers = {*receivers, *copies["previous_hop"].to_pylist(), publisher} - {None}
    for peer in sorted({*peers, *missed}):
        first = firsts.get(peer)
        if peer == publisher:
            role, hop = "publisher", 0
        elif first is None:
            role, hop = "missed" if peer in missed else "peer", None
        else:
            role, hop = _ROLES[first["subscribed"]], first["hop"]
        duplicates = copied[peer] - (first is not None) if counts else None
        yield {"peer": peer, "role": role, "hop": hop, "duplicates": duplicates}
