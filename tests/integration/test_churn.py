"""Lifetimes and turnover of a gossipsub trace, against its GRAFT and PRUNE events."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ingested import ROOT
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

EPOCH_US = 946_684_800_000_000
ABOUT = {5: "onClosedOutboundStream", 10: "leave", 11: "graft", 12: "prune"}
GRAFT = 11
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Period = tuple[str, str, str, int, int | None]
"""A peer, its neighbour, the topic, and when it began and ended, in µs; null = open."""


def base58(identity: str) -> str:
    number, digits = int.from_bytes(b64decode(identity)), ""
    while number:
        number, rest = divmod(number, 58)
        digits = ALPHABET[rest] + digits
    return "1" * (len(b64decode(identity)) - len(b64decode(identity).lstrip(b"\0"))) + digits


def mesh_of(file: Path) -> Iterator[Period]:
    """The periods in which the peer of a trace has others in its mesh."""
    since: dict[tuple[str, str], int] = {}
    with gzip.open(file, "rt") as lines:
        events = sorted(map(json.loads, lines), key=lambda event: int(event["timestamp"]))
    for event in events:
        us, kind = int(event["timestamp"]) // 1000 - EPOCH_US, event["type"]
        if kind not in ABOUT:
            continue
        about = event[ABOUT[kind]]
        peer, topic = about.get("peerID"), about.get("topic")
        if kind == GRAFT:
            since.setdefault((peer, topic), us)
            continue
        for key in [k for k in since if k[0] == (peer or k[0]) and k[1] == (topic or k[1])]:
            yield base58(event["peerID"]), base58(key[0]), key[1], since.pop(key), us
    for (peer, topic), began in since.items():
        yield base58(events[0]["peerID"]), base58(peer), topic, began, None


@pytest.fixture(scope="module")
def run(gossipsub: StoredRun) -> Run:
    return Run(gossipsub)


@pytest.fixture(scope="module")
def periods(run: Run) -> list[Period]:
    """The periods of all files, cut to the time in which both peers are present."""
    present: dict[str, tuple[int, int]] = {}
    for row in run.with_names(run.table("presence")).to_pylist():
        present[row["peer_name"]] = (row["valid_from"], row["valid_to"])
    cut = []
    for file in sorted((ROOT / "examples/gossipsub").glob("*.gz")):
        for src, dst, topic, began, ended in mesh_of(file):
            first = max(began, present[src][0], present[dst][0])
            last = min(end for end in (ended, present[src][1], present[dst][1]) if end is not None)
            if first < last:
                is_over = last < (run.clock.last + 1) * 1_000_000
                cut.append((src, dst, topic, first, last if is_over else None))
    return cut


def test_lifetimes_of_the_mesh_are_those_between_graft_and_prune(
    run: Run, periods: list[Period]
) -> None:
    end = (run.clock.last + 1) * 1_000_000
    rows = {row["topic_name"]: row for row in run.lifetimes("topic", layers=["mesh"]).to_pylist()}
    assert {*rows} == {topic for _, _, topic, _, _ in periods}
    for topic, row in rows.items():
        of = [(began, ended) for *_, name, began, ended in periods if name == topic]
        over = [ended - began for began, ended in of if ended is not None]
        still_open = [end - began for began, ended in of if ended is None]
        assert (row["periods"], row["ended"], row["open"]) == (len(of), len(over), len(still_open))
        assert row["longest"] == pytest.approx(max(over + still_open) / 1e6)
        curve = stats.ecdf(stats.CensoredData(np.array(over), right=np.array(still_open))).sf
        reached = curve.quantiles[curve.probabilities <= 0.5 + 1e-9]
        assert row["median"] == (pytest.approx(reached[0] / 1e6) if len(reached) else None)


def test_turnover_of_the_mesh_is_that_of_sets_of_grafted_peers(
    run: Run, periods: list[Period]
) -> None:
    moves: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for *_, began, ended in periods:
        moves[began // 1_000_000][0] += 1
        if ended is not None:
            moves[ended // 1_000_000][1] += 1
    subscribed = run.with_names(run.table("subscriptions")).to_pylist()

    def meshes(interval: int) -> dict[tuple[str, str], set[str]]:
        tick = (interval + 1) * 1_000_000 - 1
        found: dict[tuple[str, str], set[str]] = {
            (row["peer_name"], row["topic_name"]): set()
            for row in subscribed
            if row["valid_from"] <= tick < row["valid_to"]
        }
        for src, dst, topic, began, ended in periods:
            if began <= tick and (ended is None or tick < ended) and (src, topic) in found:
                found[src, topic].add(dst)
        return found

    before: dict[Any, set[str]] = {}
    for row in run.turnover(layers=["mesh"]).to_pylist():
        now = meshes(row["interval"])
        assert [row["made"], row["ended"]] == moves[row["interval"]]
        assert row["neighbourhoods"] == len(now)
        assert row["below_d_low"] == sum(len(peers) < 4 for peers in now.values())
        assert row["above_d_high"] == sum(len(peers) > 12 for peers in now.values())
        shares = [
            len(peers & before[key]) / len(peers | before[key])
            for key, peers in now.items()
            if key in before and peers | before[key]
        ]
        assert row["compared"] == len(shares)
        assert row["jaccard_mean"] == (pytest.approx(fmean(shares)) if shares else None)
        before = now
