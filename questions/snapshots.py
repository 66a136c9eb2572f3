"""Data for figures: the overlay at a tick, and the dissemination of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Integers
from vizpub.model.errors import UnknownName
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
    chosen = run.facts.layers if layers is None else run.checked_layers(layers)
    pairs = links_at(run, tick, chosen).group_by(["src", "dst"]).aggregate([])
    pairs = pairs.sort_by([("src", "ascending"), ("dst", "ascending")])
    roles = _Roles() if topic is None else _roles(run, tick, topic)
    present = peers["peer"].to_pylist()
    role = [roles.of(peer) for peer in present]
    publisher = [peer in roles.publishers for peer in present]
    peers = peers.append_column("role", pa.array(role, pa.string()))
    peers = peers.append_column("publishes", pa.array(publisher, pa.bool_()))
    index = None if topic is None else run.topic_index(topic)
    peers = _with_rendezvous(run, peers, tick, index)
    ends = zip(pairs["src"].to_pylist(), pairs["dst"].to_pylist(), strict=True)
    inside = [roles.subscribers.issuperset(pair) for pair in ends]
    return (
        run.with_names(peers),
        run.with_names(pairs.append_column("inside", pa.array(inside, pa.bool_()))),
    )


@dataclass(frozen=True)
class _Roles:
    """The peers of a topic by role."""

    publishers: frozenset[int] = frozenset()
    subscribers: frozenset[int] = frozenset()
    relays: frozenset[int] = frozenset()

    def of(self, peer: int) -> str:
        if peer in self.subscribers:
            return "subscriber"
        return "relay" if peer in self.relays else "peer"


def alive(tick: int) -> pc.Expression:
    """The condition for rows whose validity period contains a tick."""
    return (pc.field("valid_from") <= tick) & (pc.field("valid_to") > tick)


def _with_rendezvous(run: NamedRun, peers: pa.Table, tick: int, topic: int | None) -> pa.Table:
    """The peers, and whether each is in that role at a tick: for the topic, null = for any."""
    of_it = alive(tick) & (pc.field("role") == "rendezvous")
    if topic is not None:
        of_it &= pc.field("topic") == topic
    rendezvous = run.stored.read("roles", ["peer"], of_it)["peer"].combine_chunks()
    return peers.append_column("rendezvous", pc.is_in(peers["peer"], rendezvous))


def links_at(run: NamedRun, tick: int, layers: Sequence[str] | None) -> pa.Table:
    """The rows of `links` at a tick, of the given layers (null = all)."""
    of_them = alive(tick)
    if layers is not None:
        of_them &= pc.field("layer").isin(pa.array(layers, pa.string()))
    return run.stored.read("links", where=of_them)


def _roles(run: NamedRun, tick: int, topic: str) -> _Roles:
    index = pc.field("topic") == run.topic_index(topic)
    published = run.stored.read("publications", ["message", "publisher"], index)
    arrived = pc.field("message").isin(published["message"]) & ~pc.field("subscribed")
    relays = run.stored.read("receptions", ["peer"], arrived)
    subscribers = run.stored.read("subscriptions", ["peer"], index & alive(tick))
    return _Roles(
        frozenset(published["publisher"].to_pylist()),
        frozenset(subscribers["peer"].to_pylist()),
        frozenset(relays["peer"].to_pylist()),
    )


def coverage(
    run: NamedRun, messages: Sequence[str] = (), *, among: Integers | None = None
) -> pa.Table:
    """The delivery of messages (all, or those named) to eligible peers over time.

    A message begins with a row of its publication; after `delay_us` from then, `delivered`
    of the eligible peers are reached: those that subscribe at the tick of the publication,
    but the publisher (as in metrics/messages). Left out are messages without
    eligible peers or with unknown times, and, unless they are named, those that a peer
    refused, as in every pooled figure. `among` has the numbers of those that are not left out for
    another reason; null = all.

        message  message_name  delay_us  delivered  eligible  share
        0        m0            0         0          18        0
        0        m0            1200      1          18        0.056

    Raises: UnknownName, UseError where the run's source does not report these.
    """
    run.facts.check_known("subscriptions", "receptions", TIMES, PUBLICATION_TIMES, AUDIENCE)
    timed = run.stored.read("publications", where=pc.field("time_us").is_valid())
    published = _chosen(run, timed, messages, among, "message with a known time")
    return _shares(published, _deliveries(run, "time_us"), "delay_us")


def coverage_by_hop(
    run: NamedRun, messages: Sequence[str] = (), *, among: Integers | None = None
) -> pa.Table:
    """As `coverage`, without times: `hop` of the arrival in place of `delay_us`; 0 = publication.

    Eligible peers whose hop is unknown are reached, but not counted in `delivered`.

    Raises: as `coverage`.
    """
    run.facts.check_known("subscriptions", "receptions", HOPS, AUDIENCE)
    published = _chosen(run, run.stored.read("publications"), messages, among, "message")
    start = pa.array(np.zeros(len(published), np.int64))
    place = published.column_names.index("time_us")
    return _shares(published.set_column(place, "time_us", start), _deliveries(run, "hop"), "hop")


def _chosen(
    run: NamedRun,
    published: pa.Table,
    messages: Sequence[str],
    among: Integers | None,
    kind: str,
) -> pa.Table:
    """message, name, time_us, eligible of those named, or of those that nobody refused."""
    published = _named(published, messages, kind) if messages else _without_refused(run, published)
    if among is not None:
        published = published.filter(pc.is_in(published["message"], pa.array(among, pa.int64())))
    asked = run.stored.read("metrics/messages", ["message", "eligible"], pc.field("eligible") > 0)
    return published.select(["message", "name", "time_us"]).join(
        asked, "message", join_type="inner"
    )


def _deliveries(run: NamedRun, column: str) -> pa.Table:
    """message, arrival: the column of first receptions at eligible peers, where it is known."""
    delivered = pc.field("first") & pc.field("eligible") & pc.field(column).is_valid()
    found = run.stored.read("receptions", ["message", column], delivered)
    found = found.set_column(1, "arrival_us", found[column].cast(pa.int64()))
    return found.select(["message", "arrival_us"])


def _shares(published: pa.Table, arrivals: pa.Table, along: str) -> pa.Table:
    """A row for each publication and each arrival, in order, with what is delivered by then."""
    arrived = arrivals.join(published, "message", join_type="inner")
    starts = published.append_column("arrival_us", published["time_us"])
    rows = pa.concat_tables(
        [_with_arrival(starts, 0), _with_arrival(arrived.select(starts.column_names), 1)]
    )
    rows = rows.sort_by([(key, "ascending") for key in ("message", "arrival", "arrival_us")])
    delivered = _place_in_group(rows["message"].to_numpy())
    return pa.table(
        {
            "message": rows["message"],
            "message_name": rows["name"],
            along: pc.subtract(rows["arrival_us"], rows["time_us"]),
            "delivered": delivered,
            "eligible": rows["eligible"],
            "share": delivered / rows["eligible"].to_numpy(),
        }
    )


def _with_arrival(rows: pa.Table, arrival: int) -> pa.Table:
    return rows.append_column("arrival", pa.array([arrival] * len(rows), pa.int8()))


def _without_refused(run: NamedRun, published: pa.Table) -> pa.Table:
    nobody_refused = pc.coalesce(pc.field("rejections"), pc.scalar(0)) == 0
    accepted = run.stored.read("metrics/messages", ["message"], nobody_refused)["message"]
    return published.filter(pc.field("message").isin(accepted))


def _named(published: pa.Table, messages: Sequence[str], kind: str) -> pa.Table:
    known = set(published["name"].to_pylist())
    for name in messages:
        if name not in known:
            raise UnknownName(kind, name, sorted(known))
    return published.filter(pc.field("name").isin(messages))


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
    published = _message(run, message)
    of_it = pc.field("message") == published["message"][0]
    copies = copies_of(run, published["message"][0].as_py()).drop_columns(["eligible"])
    missed = frozenset(run.stored.read("missed", ["peer"], of_it)["peer"].to_pylist())
    counts = run.facts.knows(DUPLICATES)
    rows = list(_peer_rows(copies, published["publisher"][0].as_py(), missed, counts=counts))
    peers = pa.Table.from_pylist(rows, _REACHED)
    # A message of an unknown topic has no rendezvous.
    topic = published["topic"][0].as_py()
    peers = _with_rendezvous(
        run, peers, published["tick"][0].as_py(), -1 if topic is None else topic
    )
    return run.with_names(peers), run.with_names(copies)


def copies_of(run: NamedRun, message: int) -> pa.Table:
    """Each copy of a message that arrived, by hop and time: as `spread`, without names, and whether
    the peer was `eligible` (vizpub.model.tables).
    """
    columns = ["hop", "time_us", "previous_hop", "peer", "first", "subscribed", "eligible"]
    order = ["hop", "time_us", "peer", "previous_hop"]
    copies = run.stored.read("receptions", columns, pc.field("message") == message)
    return copies.sort_by([(column, "ascending") for column in order])


_REACHED = pa.schema(
    [
        ("peer", pa.int32()),
        ("role", pa.string()),
        ("hop", pa.int32()),
        ("duplicates", pa.int64()),
    ]
)


def _message(run: NamedRun, name: str) -> pa.Table:
    """The row of a message. Raises: UnknownName, AmbiguousName."""
    return run.stored.read("publications", where=pc.field("message") == run.message_index(name))


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
        hop = 0 if peer == publisher else first and first["hop"]
        role = "publisher" if peer == publisher else _role(first, peer in missed)
        duplicates = copied[peer] - (first is not None) if counts else None
        yield {"peer": peer, "role": role, "hop": hop, "duplicates": duplicates}


def _role(first: dict[str, Any] | None, missed: bool) -> str:
    if first is None:
        return "missed" if missed else "peer"
    return {True: "subscriber", False: "relay", None: "peer"}[first["subscribed"]]


def _place_in_group(sorted_groups: np.ndarray) -> np.ndarray:
    """0, 1, 2, … within each run of equal values."""
    _, first, counts = np.unique(sorted_groups, return_index=True, return_counts=True)
    places: np.ndarray = np.arange(len(sorted_groups)) - np.repeat(first, counts)
    return places
