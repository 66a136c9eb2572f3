"""Frequent questions about a run, answered from its files.

The answers have the columns and rows that the queries of the same names give from Neo4j.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.errors import UseError
from vizpub.questions.names import NamedRun
from vizpub.questions.run import Run
from vizpub.questions.snapshots import copies_of, distinct_links
from vizpub.questions.sql import OF_LAYERS, read_answer

ABSENT = "is not present at"

_TOPIC = pa.schema(
    [("src", pa.string()), ("dst", pa.string())]
    + [(name, pa.list_(pa.string())) for name in ("layers", "topics")]
)
_VALID = "valid_from <= $at AND valid_to > $at"

_TOPICS = f"""
WITH taken AS (SELECT DISTINCT peer, topic FROM subscriptions WHERE {_VALID}),
     pairs AS (SELECT DISTINCT src, dst FROM links WHERE {_VALID} AND {OF_LAYERS}),
     linked AS (SELECT one.topic, count(*) AS links FROM pairs
                JOIN taken one ON one.peer = src
                JOIN taken other ON other.peer = dst AND other.topic = one.topic GROUP BY ALL),
     counted AS (SELECT topic, count(*) AS subscribers FROM taken GROUP BY ALL)
SELECT name AS topic, coalesce(subscribers, 0) AS subscribers, {{rendezvous}} AS rendezvous,
       coalesce(links, 0) AS links, {{messages}} AS messages, {{publishers}} AS publishers
FROM topics LEFT JOIN counted USING (topic) LEFT JOIN linked USING (topic)
ORDER BY subscribers DESC, topics.topic
"""
_RENDEZVOUS = f"""
coalesce((SELECT list(name ORDER BY peer) FROM (
  SELECT DISTINCT peer, peer_name AS name FROM roles
  WHERE roles.topic = topics.topic AND role = 'rendezvous' AND {_VALID})), [])
"""
_PUBLISHED = """
(SELECT count({what}) FROM publications WHERE publications.topic = topics.topic AND tick <= $at)
"""


def topic(
    run: Run, name: str, at: int | str = "last", layers: Sequence[str] | None = None
) -> pa.Table:
    """src, dst, layers, topics: as the query `topic-subgraph`.

    Raises: UnknownName, AmbiguousName, OutOfRange, UseError for an invalid time, and where
    subscriptions or links are unknown.
    """
    part = run.topic(name, at, layers)
    links = [(*ends, traits["layers"], traits["topics"]) for ends, traits in part.pairs().items()]
    linked = {peer for src, dst, *_ in links for peer in (src, dst)}
    alone = {*part.peers["peer_name"].to_pylist()} - linked
    number = {name: peer for peer, name in enumerate(run.peers)}
    rows = [*links, *((peer, None, [], []) for peer in alone)]
    rows.sort(key=lambda row: number[row[0]])  # links are in order
    return pa.Table.from_pylist([dict(zip(_TOPIC.names, row, strict=True)) for row in rows], _TOPIC)


def topics(run: NamedRun, at: int | str = "last", layers: Sequence[str] | None = None) -> pa.Table:
    """topic, subscribers, rendezvous, links, messages, publishers: as the query `topics`.

    Raises: as `topic`.
    """
    run.facts.check_known("subscriptions", "links")
    has_publications = run.stored.has("publications")
    columns = {
        "rendezvous": _RENDEZVOUS if run.stored.has("roles") else "NULL",
        "messages": _PUBLISHED.format(what="*") if has_publications else "NULL",
        "publishers": _PUBLISHED.format(what="DISTINCT publisher") if has_publications else "NULL",
    }
    tick, chosen = run.tick_at(at), run.checked_layers(layers)
    return read_answer(run.stored, _TOPICS.format(**columns), at=tick, layers=chosen)


def dissemination(run: NamedRun, message: str) -> pa.Table:
    """hop, time_us, from, to, first, subscribed: as the query `dissemination-tree`.

    Raises: UnknownName, AmbiguousName, UseError where receptions are unknown.
    """
    run.facts.check_known("receptions")
    copies = run.with_names(copies_of(run, run.message_index(message)))
    columns = ["hop", "time_us", "previous_hop_name", "peer_name", "first", "subscribed"]
    names = ["hop", "time_us", "from", "to", "first", "subscribed"]
    return copies.select(columns).rename_columns(names)


def paths(
    run: NamedRun,
    ends: tuple[str, str],
    at: int | str = "last",
    layers: Sequence[str] | None = None,
    *,
    every: bool = False,
) -> list[tuple[int, list[str]]]:
    """The links on a shortest path and its peers, as the query `shortest-path`; with `every`, of
    all, as `all-shortest-paths`. Empty if there is no path.

    Raises: as `topic`, and UseError for a peer that is not present.
    """
    run.facts.check_known("presence", "links")
    tick, names = run.tick_at(at), run.peers
    chosen = run.checked_layers(layers)
    source, target = (_present_peer(run, name, tick) for name in ends)
    following: dict[int, list[int]] = defaultdict(list)
    for link in distinct_links(run, tick, chosen).to_pylist():
        following[link["src"]].append(link["dst"])
    shortest = _shortest_paths(following, source, target)
    named_paths = sorted(
        [names[peer] for peer in path] for path in islice(shortest, None if every else 1)
    )
    return [(len(path) - 1, path) for path in named_paths]


def _present_peer(run: NamedRun, name: str, at: int) -> int:
    """Return the index of a peer. Raises: UseError if it is not present at the tick."""
    peer = run.peer_index(name)
    rows = run.stored.read("presence", ["valid_from", "valid_to"], pc.field("peer") == peer)
    periods = [(row["valid_from"], row["valid_to"]) for row in rows.to_pylist()]
    if not any(begin <= at < end for begin, end in periods):
        presence = run.clock.describe_presence(periods)
        raise UseError(f"peer '{name}' {ABSENT} {run.clock.describe(at)}; it is present {presence}")
    return peer


def _shortest_paths(
    following: Mapping[int, Sequence[int]], source: int, target: int
) -> Iterator[tuple[int, ...]]:
    """Yield all shortest paths, from the target back along the predecessors of each peer."""
    predecessors: dict[int, list[int]] = {source: []}
    reached = [source]
    while reached and target not in predecessors:
        level: dict[int, list[int]] = defaultdict(list)
        for peer in reached:
            for neighbour in following.get(peer, ()):
                if neighbour not in predecessors:
                    level[neighbour].append(peer)
        predecessors |= level
        reached = list(level)
    stack: list[tuple[int, ...]] = [(target,)] if target in predecessors else []
    while stack:
        path = stack.pop()
        if path[0] == source:
            yield path
        stack += [(peer, *path) for peer in predecessors[path[0]]]
