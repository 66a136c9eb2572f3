"""Runs whose peers have attributes that change, and messages; made without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.played import Played, play
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.model.tables import ATTRIBUTES, CONTROL
from vizpub.runstore.manifest import TableEntry, write_manifest
from vizpub.runstore.store import open_run

KEY = 'it\'s "client"'
"""An attribute with a hostile name."""
CLOCKS = (Clock(1, None, 2, 7), Clock(1000, 1, 0, 5))


def play_groups(workspace: Path, seed: int, key: str = KEY) -> Played:
    """Write the run `groups`: every fourth peer lacks the attribute, others have one or two values,
    also numbers; most messages reach some of the subscribers.
    """
    draw = Random(seed)

    def add_messages(made: Played) -> None:
        give_attributes(made, draw, key)
        for row in made.rows["metrics/peers"]:
            row["duplicates"] = draw.choice([None, draw.randrange(9)])
            row["component"] = 0
        _publish(made, draw, made.clock.ticks_per_interval)

    clock = CLOCKS[seed % 2]
    names = [f"p{number}" for number in range(draw.choice([3, 12, 20]))]
    return play(workspace, "groups", clock, names, ["t", "u"], seed, add_messages)


def give_attributes(made: Played, draw: Random, key: str = KEY) -> None:
    """Add four attributes: every fourth peer lacks the first; `load` is a number, and `zone` has
    more values than the page has colours.
    """
    rows = made.rows
    rows["attributes"] = []
    for peer in range(len(made.peers)):
        if peer % 4 == 3:
            continue
        change = draw.randrange(made.first + 1, made.last)
        ends = [(made.first, change), (change, OPEN)]
        for begin, end in ends[: draw.choice([1, 2, 2])]:
            value = draw.choice(["prysm", "teku", "1", "2.5", "7"])
            number = None if value.isalpha() else float(value)
            of = {"peer": peer, "key": key, "value": value, "number": number}
            rows["attributes"].append({**of, "valid_from": begin, "valid_to": end})
    always = {"valid_from": 0, "valid_to": OPEN}
    rows["attributes"].append({"peer": 0, "key": "country", "value": "CH", **always})
    for peer in range(len(made.peers)):
        of = {"peer": peer, **always}
        rows["attributes"] += [
            {**of, "key": "load", "value": f"{peer / 2}", "number": peer / 2},
            {**of, "key": "zone", "value": f"zone {min(peer, 9)}"},
        ]


def _publish(made: Played, draw: Random, ticks: int) -> None:
    """Add messages with their arrivals, who missed them, and their metrics."""
    rows = made.rows
    for name in ("receptions", "missed", "rejections", "metrics/messages"):
        rows[name] = []
    for message in range(15):
        tick = draw.randrange(made.first, made.last)
        topic, present = draw.randrange(2), sorted(made.present(tick))
        publisher = draw.choice(present) if present else 0
        about = {"message": message, "interval": tick // ticks, "tick": tick, "topic": topic}
        rows["publications"].append(
            {**about, "name": f"m{message}", "publisher": publisher, "time_us": tick,
             "publication_known": True}
        )  # fmt: skip
        eligible = made.subscribers(topic, tick) - {publisher}
        counts: dict[str, Any] = {"message": message, "eligible": len(eligible), "delivered": 0}
        counts |= {"receptions": 0, "first_receptions": 0, "duplicates": 0, "relay_receptions": 0}
        hops: list[int] = []
        for peer in range(len(made.peers)):
            copies = draw.choice([0, 1, 1, 3])
            if peer in eligible and not copies:
                rows["missed"].append({"message": message, "peer": peer})
            for copy in range(copies):
                arrival = min(tick + draw.randrange(3 * ticks), made.last)
                rows["receptions"].append(
                    {"message": message, "peer": peer, "time_us": arrival, "tick": arrival,
                     "interval": arrival // ticks, "first": copy == 0,
                     "hop": draw.choice([None, 1, 2]), "subscribed": peer in eligible,
                     "eligible": peer in eligible, "after_idontwant": draw.choice([True, False]),
                     "before_idontwant": draw.choice([True, False]),
                     "by_iwant": draw.choice([True, False])}
                )  # fmt: skip
            if copies and (hop := rows["receptions"][-copies]["hop"]) is not None:
                hops.append(hop)
            counts["relay_receptions"] += copies * (peer not in eligible)
            counts["delivered"] += bool(copies) and peer in eligible
            counts["receptions"] += copies
            counts["first_receptions"] += bool(copies)
            counts["duplicates"] += max(copies - 1, 0)
        counts["hit_ratio"] = counts["delivered"] / len(eligible) if eligible else None
        counts |= {"hops_known": len(hops) or None, "hops_max": max(hops, default=None)}
        counts["hops_mean"] = sum(hops) / len(hops) if hops else None
        counts["rejections"] = draw.choice([0, 0, 0, 1])
        rows["metrics/messages"].append(counts)


def value_at(made: Played, peer: int, tick: int, key: str = KEY) -> str | None:
    """The value of a peer's attribute, null if it has none then."""
    values = [
        row["value"]
        for row in made.holding("attributes", tick)
        if (row["peer"], row["key"]) == (peer, key)
    ]
    return values[0] if values else None


def add_attributes(workspace: Path, name: str, **values: str) -> None:
    """Give peers 0, 1, … of a run the values of each key, such as client="ab": of single letters; a
    blank is none.
    """
    rows = [
        {"peer": peer, "key": key, "value": value, "valid_from": 0, "valid_to": OPEN}
        for key, of_peers in values.items()
        for peer, value in enumerate(of_peers)
        if value != " "
    ]
    add_table(workspace, name, ATTRIBUTES, rows)


def add_table(workspace: Path, name: str, table: Table, rows: list[dict[str, Any]]) -> None:
    """Give a run one more table."""
    run = open_run(workspace, name)
    folder = run.directory / f"data/{table.name}/0"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, table.arrow), folder / "part-0.parquet")
    entry = TableEntry(f"data/{table.name}/0", len(rows))
    tables = {**run.manifest.tables, table.name: entry}
    write_manifest(run.directory, replace(run.manifest, tables=tables))


def add_control(workspace: Path, name: str) -> None:
    """Give a run control messages of two kinds and peers, one of which has no topic."""
    of = ("peer", "interval", "kind", "topic", "messages_sent", "ids_sent")
    rows = [
        (0, 0, "graft", 0, 2, None),
        (0, 1, "ihave", None, 3, 40),
        (1, 1, "graft", 1, 5, None),
        (1, 1, "ihave", None, 4, 50),
    ]
    add_table(workspace, name, CONTROL, [dict(zip(of, row, strict=True)) for row in rows])
