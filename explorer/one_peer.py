"""Facts of one peer at a time."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from vizpub.explorer import columns
from vizpub.explorer.attributes import attributes_at
from vizpub.model.clock import OPEN, Clock
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import alive


def time_text(clock: Clock, tick: int) -> str:
    """A tick as `--at` takes it."""
    interval = clock.interval_of(tick)
    if tick == clock.sampling_tick(interval) or clock.tick_us is None:
        return str(interval)
    return f"{tick * clock.tick_us}us"


def describe_peer(run: NamedRun, peer: int, tick: int) -> dict[str, Any]:
    """Its values in the interval of the tick, periods of presence, topics, roles and attributes."""
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
        "attributes": attributes_at(run, peer, tick),
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
