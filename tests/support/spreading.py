"""Messages that spread over the links of a run that plays, some of them refused, some lost."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tests.support.played import Played

Row = dict[str, Any]


def spread(
    made: Played,
    names: Sequence[str],
    seed: int,
    *,
    timed: bool = True,
    patient: Container[int] = (),
) -> None:
    """Add a publication for each name, at random, and what became of it.

    A peer that got a first copy passes it on to most of its neighbours after a random delay,
    whether they want it or not; the `patient` ones do so with the second copy, as peers on the way
    to Scribe's root. Some copies are refused. Without times, arrivals have hops alone.
    """
    rng = np.random.default_rng(seed)
    rows = made.rows
    for table in ("publications", "receptions", "missed", "rejections", "metrics/messages"):
        rows[table] = []
    for message, name in enumerate(names):
        tick = int(rng.integers((2 * made.first + made.last) // 3 + 1, made.last + 1))
        topic = int(rng.integers(len(made.topics)))
        publisher = int(rng.choice(sorted(made.present(tick))))
        rows["publications"].append({
            "message": message, "name": name, "topic": topic, "publisher": publisher,
            "interval": made.clock.interval_of(tick), "tick": tick, "publication_known": True,
            "time_us": tick * (made.clock.tick_us or 0) if timed else None,
        })  # fmt: skip
        eligible = made.subscribers(topic, tick) - {publisher}
        refused, copies = _copies(made, rng, publisher, tick, patient)
        _tell(made, rows["publications"][-1], eligible, copies, refused)


_Copy = tuple[int, int, int, int, bool]
"""Time since the publication in µs, hop, from, to, whether it is the first."""


def _copies(
    made: Played, rng: np.random.Generator, publisher: int, tick: int, patient: Container[int]
) -> tuple[list[_Copy], list[_Copy]]:
    """The copies that were refused, and those that were not."""
    near: dict[int, list[int]] = defaultdict(list)
    for src, dst in sorted(made.pairs(tick)):
        near[src].append(dst)
    came, waiting = Counter[int](), [(0, 0, publisher, publisher)]
    refused: list[_Copy] = []
    copies: list[_Copy] = []
    while waiting:
        delay, hop, source, peer = heapq.heappop(waiting)
        if hop and rng.random() < 0.01:
            refused.append((delay, hop, source, peer, False))
            continue
        if hop:
            copies.append((delay, hop, source, peer, peer != publisher and not came[peer]))
        came[peer] += 1
        if came[peer] == (2 if peer in patient and peer != publisher else 1):
            for other in near[peer]:
                if rng.random() < 0.6 and other != source:
                    arrives = delay + int(rng.integers(1_000, 90_000))
                    heapq.heappush(waiting, (arrives, hop + 1, peer, other))
    return refused, copies


def _tell(
    made: Played, published: Row, eligible: set[int], copies: list[_Copy], refused: list[_Copy]
) -> None:
    rows, message, start = made.rows, published["message"], published["time_us"]
    subscribers = made.subscribers(published["topic"], published["tick"])

    def told(copy: _Copy) -> Row:
        delay, _, source, peer, _ = copy
        return {
            "message": message, "peer": peer, "previous_hop": source,
            "time_us": None if start is None else start + delay, "interval": published["interval"],
        }  # fmt: skip

    arrived = [
        told(copy) | {
            "tick": published["tick"], "first": copy[4], "hop": copy[1],
            "subscribed": copy[3] in subscribers, "eligible": copy[3] in eligible,
        }
        for copy in copies
    ]  # fmt: skip
    rows["receptions"] += arrived
    rows["rejections"] += [told(copy) | {"reason": "bad <b>signature</b>"} for copy in refused]
    firsts = {copy[3]: copy for copy in copies if copy[4]}
    missed = sorted(eligible - set(firsts))
    rows["missed"] += [{"message": message, "peer": peer} for peer in missed]
    delays = [copy[0] for copy in firsts.values()]
    known = start is not None and bool(delays)
    delivered = len(eligible) - len(missed)
    rows["metrics/messages"].append({
        "message": message, "eligible": len(eligible), "delivered": delivered,
        "hit_ratio": delivered / len(eligible) if eligible else None,
        "receptions": len(copies), "first_receptions": len(firsts),
        "duplicates": len(copies) - len(firsts), "rejections": len(refused),
        "hops_max": max((copy[1] for copy in firsts.values()), default=None),
        "delay_us_p50": float(np.quantile(delays, 0.5)) if known else None,
        "delay_us_p95": float(np.quantile(delays, 0.95)) if known else None,
        "delay_us_max": float(max(delays)) if known else None,
    })  # fmt: skip
