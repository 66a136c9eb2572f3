"""Arrivals of messages as rows, and their hops by plain Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

Row = dict[str, Any]
PEERS = 14


def random_arrivals(rng: np.random.Generator, message: int, publisher: int | None) -> list[Row]:
    """Arrivals of one message from any peer: chains, circles, gaps, reported hops, duplicates."""
    rows: list[Row] = []
    tells = rng.random() < 0.2
    for peer in rng.permutation(PEERS)[: rng.integers(0, PEERS + 1)]:
        for copy in range(int(rng.choice([1, 1, 2, 3]))):
            previous = None if rng.random() < 0.05 else int(rng.integers(0, PEERS))
            if publisher is not None and rng.random() < 0.15:
                previous = publisher
            rows.append(
                {
                    "message": message,
                    "peer": int(peer),
                    "previous_hop": previous,
                    "publisher": publisher,
                    "first": copy == 0,
                    "hop": int(rng.integers(0, 9)) if tells and rng.random() < 0.5 else None,
                }
            )
    return [rows[i] for i in rng.permutation(len(rows))]


def naive_hop(row: Row, firsts: dict[int, Row], seen: frozenset[int] = frozenset()) -> int | None:
    """The hop of an arrival, found by following it back to the publisher."""
    if row["hop"] is not None:
        return int(row["hop"])
    previous = row["previous_hop"]
    if previous is None or previous in seen:
        return None
    if previous == row["publisher"]:
        return 1
    if previous not in firsts:
        return None
    before = naive_hop(firsts[previous], firsts, seen | {previous})
    return None if before is None else before + 1


def naive_hops(rows: list[Row]) -> list[int | None]:
    firsts: dict[int, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        if row["first"]:
            firsts[row["message"]][row["peer"]] = row
    return [naive_hop(row, firsts[row["message"]]) for row in rows]


def random_messages(seed: int, count: int) -> list[Row]:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for message in range(count):
        publisher = None if rng.random() < 0.1 else int(rng.integers(0, PEERS))
        rows += random_arrivals(rng, message, publisher)
    return [rows[i] for i in rng.permutation(len(rows))]
