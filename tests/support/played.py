"""Runs whose overlays change, with everything that the explorer shows; made without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.tables import write
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import CAPABILITIES, PUBLICATION_TIMES, TIMES
from vizpub.model.tables import table
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import writing

Row = dict[str, Any]
LAYERS = ("mesh", "ring")
GROUP = 150
"""Rows of a row group: tables have several, but few, as each takes a page a while to read."""


@dataclass(frozen=True)
class Played:
    """A run of this name, and what is in its tables."""

    name: str
    clock: Clock
    peers: Sequence[str]
    topics: Sequence[str]
    rows: dict[str, list[Row]]

    def present(self, tick: int) -> set[int]:
        return {row["peer"] for row in self.holding("presence", tick)}

    def pairs(self, tick: int, layers: Sequence[str] = LAYERS) -> set[tuple[int, int]]:
        """Distinct links of the layers."""
        rows = self.holding("links", tick)
        return {(row["src"], row["dst"]) for row in rows if row["layer"] in layers}

    def subscribers(self, topic: int, tick: int) -> set[int]:
        rows = self.holding("subscriptions", tick)
        return {row["peer"] for row in rows if row["topic"] == topic}

    def relays(self, topic: int, tick: int) -> set[int]:
        """Peers that are there and do not subscribe, but have a link for the topic, or received or
        forwarded a message of it in this interval while they did not subscribe.
        """
        links = [row for row in self.holding("links", tick) if row["topic"] == topic]
        active = {row[end] for row in links for end in ("src", "dst")}
        publishers = {
            row["message"]: row["publisher"]
            for row in self.rows["publications"]
            if row["topic"] == topic
        }
        for row in self.rows["receptions"]:
            if row["message"] not in publishers:
                continue
            if row["interval"] == self.clock.interval_of(tick):
                ends = {row["peer"], row["previous_hop"]} - {publishers[row["message"]], None}
                active |= ends - self.subscribers(topic, row["tick"])
        return (active & self.present(tick)) - self.subscribers(topic, tick)

    def holding(self, name: str, tick: int) -> list[Row]:
        return [row for row in self.rows[name] if row["valid_from"] <= tick < row["valid_to"]]

    @property
    def first(self) -> int:
        return self.clock.first * self.clock.ticks_per_interval

    @property
    def last(self) -> int:
        return self.clock.sampling_tick(self.clock.last)


def play(
    workspace: Path,
    name: str,
    clock: Clock,
    peers: Sequence[str],
    topics: Sequence[str],
    seed: int = 0,
    more: Callable[[Played], None] | None = None,
) -> Played:
    """Write a run in which peers come and go, and change their links and topics, at random; `more`
    adds to its tables.
    """
    rng = np.random.default_rng(seed)
    made = Played(name, clock, peers, topics, defaultdict(list))
    length = (made.last + 1 - made.first) // 3
    rows = made.rows
    rows["peers"] = _named("peer", peers, is_reporter=True)
    rows["topics"] = _named("topic", topics)
    for peer in range(len(peers)):
        begin = made.first + int(rng.integers(0, length))
        end = OPEN if rng.random() < 0.6 else begin + length + int(rng.integers(0, length))
        rows["presence"].append({"peer": peer, "valid_from": begin, "valid_to": end})
    life = {row["peer"]: (row["valid_from"], row["valid_to"]) for row in rows["presence"]}
    for src in range(len(peers)):
        others = [peer for peer in range(len(peers)) if peer != src]
        for dst in rng.choice(others, min(4, len(others)), replace=False).tolist():
            # Links of the ring are for topics, whoever subscribes.
            for layer, topic in zip(LAYERS, (None, (src + dst) % len(topics)), strict=True):
                rows["links"] += _periods(
                    rng, max(life[src][0], life[dst][0]), min(life[src][1], life[dst][1]), length,
                    {"src": src, "dst": dst, "layer": layer, "topic": topic},
                )  # fmt: skip
    for peer in range(len(peers)):
        for topic in rng.choice(len(topics), min(2, len(topics)), replace=False).tolist():
            of = {"peer": peer, "topic": topic}
            rows["subscriptions"] += _periods(rng, *life[peer], length, of)
    rows["publications"] = []
    _measure(made, rng)
    if more is not None:
        more(made)
    write_play(workspace, made)
    return made


def _named(key: str, names: Sequence[str], **more: Any) -> list[Row]:
    return [{key: place, "name": name, **more} for place, name in enumerate(names)]


def _periods(rng: np.random.Generator, first: int, last: int, length: int, of: Row) -> list[Row]:
    """Two periods at random, that do not touch, within [first, last)."""
    middle = first + max(int(rng.integers(1, length + 1)), 1)
    cuts = ((first, middle), (middle + 1 + int(rng.integers(0, length)), last))
    return [
        {**of, "valid_from": begin, "valid_to": end}
        for begin, end in ((begin, min(end, last)) for begin, end in cuts)
        if begin < end
    ]


def _measure(made: Played, rng: np.random.Generator) -> None:
    for interval in range(made.clock.first, made.clock.last + 1):
        tick = made.clock.sampling_tick(interval)
        present, pairs = sorted(made.present(tick)), made.pairs(tick)
        near: dict[int, set[int]] = defaultdict(set)
        for src, dst in pairs:
            near[src].add(dst)
            near[dst].add(src)
        made.rows["metrics/overlay"].append(
            {"interval": interval, "network_size": len(present), "links": len(pairs)}
        )
        made.rows["metrics/peers"] += [
            {"peer": peer, "interval": interval, "present": True, "degree": len(near[peer]),
             "betweenness": float(rng.uniform(0, 1e9))}
            for peer in present
        ]  # fmt: skip


def _capabilities(receptions: list[Row]) -> tuple[str, ...] | None:
    """Those of vizpub.model.run.CAPABILITIES that some arrival has."""
    if not receptions:
        return None
    timed = any(row["time_us"] is not None for row in receptions)
    return tuple(name for name in CAPABILITIES if timed or name not in (TIMES, PUBLICATION_TIMES))


def write_play(workspace: Path, made: Played) -> None:
    manifest = Manifest(
        made.name, "edges", (), {"layers": None}, clock=made.clock,
        arrival_capabilities=_capabilities(made.rows["receptions"]),
    )  # fmt: skip
    with writing(workspace, made.name) as writer:
        writer.begin(manifest)
        entries = {
            name: writer.entry(
                write(writer, name, pa.Table.from_pylist(rows, table(name).arrow), 2, GROUP)
            )
            for name, rows in made.rows.items()
        }
        writer.commit(manifest.with_stage("all", entries, state="complete"))
