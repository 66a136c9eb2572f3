"""What is known of one peer at a time, and what gives the same elsewhere."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from vizpub.explorer import columns
from vizpub.model.clock import OPEN, Clock
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import alive

_VALID = "valid_from <= {1} AND valid_to > {1}{2}"
SQL = (
    f"SELECT dst_name AS neighbour FROM links WHERE src_name = {{0}} AND {_VALID} "
    f"UNION SELECT src_name FROM links WHERE dst_name = {{0}} AND {_VALID} ORDER BY ALL"
)
CYPHER = """MATCH (:Peer {{run: {0}, name: {1}}})-[link:LINK]-(other:Peer)
WHERE link.valid_from <= {2} AND link.valid_to > {2}{3}
RETURN DISTINCT other.name AS neighbour ORDER BY neighbour"""


def time_text(clock: Clock, tick: int) -> str:
    """A tick as `--at` takes it."""
    interval = clock.interval_of(tick)
    if tick == clock.sampling_tick(interval) or clock.tick_us is None:
        return str(interval)
    return f"{tick * clock.tick_us}us"


def describe_peer(
    run: NamedRun, peer: int, tick: int, layers: Sequence[str] | None = None
) -> dict[str, Any]:
    """Its values in the interval of the tick, its periods, topics and roles, and commands for the
    same; those for neighbours are of the layers (null = of those that the metrics count).
    """
    interval = run.clock.interval_of(tick)
    of_peer = (pc.field("peer") == peer) & alive(tick)
    topics, subscriptions = run.topics, run.stored.read("subscriptions", ["topic"], of_peer)
    return {
        "name": run.peers[peer],
        "interval": interval,
        "values": _values(run, peer, interval),
        "present": _presence(run, peer),
        "topics": sorted({topics[topic] for topic in subscriptions["topic"].to_pylist()}),
        "roles": _roles(run, peer, tick),
        "commands": _commands(run, peer, tick, layers or run.facts.layers or ()),
    }


def _values(run: NamedRun, peer: int, interval: int) -> dict[str, float | int | bool | None]:
    in_interval = (pc.field("peer") == peer) & (pc.field("interval") == interval)
    wanted = [column["name"] for column in columns.of_peers(run)]
    plain = [name for name in wanted if not name.startswith(columns.GAUGE)]
    values: dict[str, float | int | bool | None] = {}
    if plain:
        rows = run.stored.read("metrics/peers", plain, in_interval).to_pylist()
        values |= rows[0] if rows else dict.fromkeys(plain)
    if run.stored.has("gauges"):
        gauges = run.stored.read("gauges", ["gauge", "value"], in_interval).to_pylist()
        values |= {columns.GAUGE + row["gauge"]: row["value"] for row in gauges}
    return values


def _presence(run: NamedRun, peer: int) -> list[tuple[int, int | None]]:
    """Begin and end in ticks; null = open."""
    columns = ["valid_from", "valid_to"]
    rows = run.stored.read("presence", columns, pc.field("peer") == peer).to_pylist()
    periods = sorted((row["valid_from"], row["valid_to"]) for row in rows)
    return [(begin, None if end == OPEN else end) for begin, end in periods]


def _roles(run: NamedRun, peer: int, tick: int) -> list[dict[str, str | None]]:
    rows = run.stored.read("roles", ["role", "topic"], (pc.field("peer") == peer) & alive(tick))
    names = run.topics
    return [
        {"role": row["role"], "topic": None if row["topic"] is None else names[row["topic"]]}
        for row in rows.to_pylist()
    ]


def _commands(run: NamedRun, peer: int, tick: int, layers: Sequence[str]) -> dict[str, str]:
    """Commands, and a query to Neo4j, that give the same."""
    run_name, name = run.facts.name, run.peers[peer]
    interval = str(run.clock.interval_of(tick))
    values = ["metrics", run_name, "peers", "--peer", name, "--from", interval, "--to", interval]
    in_sql = f" AND layer IN ({', '.join(map(sql_text, layers))})" if layers else ""
    listed = ", ".join(map(cypher_text, layers))
    in_cypher = f" AND link.layer IN [{listed}]" if layers else ""
    statement = SQL.format(sql_text(name), tick, in_sql)
    return {
        "values": shell_command(["vizpub", *values]),
        "neighbours": shell_command(["vizpub", "sql", run_name, statement]),
        "cypher": CYPHER.format(cypher_text(run_name), cypher_text(name), tick, in_cypher),
    }


def shell_command(words: Sequence[str]) -> str:
    """A command as a shell takes it."""
    return shlex.join(words)


def sql_text(text: str) -> str:
    """A text as it stands in SQL."""
    return "'" + text.replace("'", "''") + "'"


def cypher_text(text: str) -> str:
    """A text as it stands in Cypher."""
    return json.dumps(text, ensure_ascii=False)
