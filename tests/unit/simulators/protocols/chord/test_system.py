"""Chord as a system: what its reports tell, read as anybody would."""

from __future__ import annotations

import gzip
import hashlib
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate
from vizpub.simulators.protocols.chord.ring import ChordRing

Line = dict[str, Any]


def reported(folder: Path, seed: int = 3, **chosen: Any) -> tuple[Line, list[Line]]:
    """The header, and the reports of a run of 40 peers."""
    given = {"peers": 40, "intervals": 25, "lookup_period": "1s", "bits": 64, **chosen}
    simulate(make_plan("chord", given, seed), Folder(folder))
    lines: list[Line] = []
    for path in sorted((folder / "reports").glob("*.gz")):
        lines += map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    header = next(line for line in lines if line["format"] == "vizpub.run/1")
    return header, [line for line in lines if "peer" in line]


def test_reports_alone_prove_the_ring_the_fingers_and_the_owners(tmp_path: Path) -> None:
    """Ids, keys and owners are recomputed from the header, by hashlib."""
    header, reports = reported(tmp_path, publications="every:5,first=15,last=23")
    made = header["parameters"]

    def position(name: str) -> int:
        digest = hashlib.new(made["id_hash"], (made["id_salt"] + name).encode()).digest()
        return int.from_bytes(digest[: made["bits"] // 8], "big")

    ids = {str(peer): position(f"peer/{peer}") for peer in range(40)}
    order = sorted(ids, key=ids.__getitem__)

    def owner(key: int) -> str:
        return order[bisect_left([ids[peer] for peer in order], key) % 40]

    for report in reports:
        if report["interval"] < 20:
            continue
        peer, links = report["peer"], defaultdict(list)
        for link in report["neighbors"]:
            links[link["layer"]].append(link["peer"])
        at = order.index(peer)
        assert links["successor"] == [order[(at + 1) % 40]]
        assert links["successors"] == [order[(at + i) % 40] for i in range(2, 9)]
        assert links["predecessor"] == [order[at - 1]]
        starts = ((ids[peer] + 2**i) % 2 ** made["bits"] for i in range(made["bits"]))
        assert {*links["finger"]} == {owner(start) for start in starts} - {peer}
    arrivals = [
        (arrival["hops"], arrival["message"], arrival["topic"], report["peer"])
        for report in reports
        for arrival in report["received"]
        if arrival["time_us"] > 15_000_000
    ]
    last = {message: (topic, peer) for _, message, topic, peer in sorted(arrivals)}
    wrong = [peer for topic, peer in last.values() if owner(position(f"topic/{topic}")) != peer]
    assert len(last) > 50
    assert wrong == []


@pytest.mark.parametrize("how", ["recursive", "iterative"])
def test_lookups_are_counted_in_the_gauges(tmp_path: Path, how: str) -> None:
    _, reports = reported(tmp_path, lookup=how)
    counted: Counter[str] = Counter()
    for report in reports:
        if report["interval"] >= 15:
            counted.update(report["gauges"])
    assert counted["lookups"] == pytest.approx(40 * 10, abs=10)
    assert counted["lookups"] == counted["lookups_answered"] == counted["true_owners"]
    assert counted["wrong_owners"] == 0
    assert 1.5 < counted["lookup_hops"] / counted["lookups"] < 2.6


def test_key_is_reported_by_one_owner(tmp_path: Path) -> None:
    header, reports = reported(tmp_path, keys=1000)
    last = {report["peer"]: report["gauges"]["keys"] for report in reports[-40:]}
    made = header["parameters"]
    ring = ChordRing.of(40, made["bits"], 3)
    assert sum(last.values()) == 1000
    assert [last[str(peer)] for peer in range(40)] == ring.count_owned(ring.draw_keys(1000))


def test_wrong_owners_and_timeouts_are_counted_under_churn(tmp_path: Path) -> None:
    _, reports = reported(tmp_path, churn="exponential:20s,down=5s")
    counted: Counter[str] = Counter()
    for report in reports:
        counted.update(report.get("gauges", {}))
    assert counted["lookups"] > 500
    assert counted["lookup_timeouts"] > 5
    assert 0 < counted["wrong_owners"] < counted["lookups"] / 4
    assert 0.9 * counted["lookups"] < counted["lookups_answered"] <= counted["lookups"]
    assert counted["true_owners"] + counted["wrong_owners"] == counted["lookups_answered"]


def test_lookup_without_an_answer_has_no_hops(tmp_path: Path) -> None:
    """A fifth of the answers is lost."""
    _, reports = reported(tmp_path, loss=0.2, lookup_timeout="2s")
    gauges = [report["gauges"] for report in reports if "lookups" in report.get("gauges", {})]
    failed = [of for of in gauges if of["lookups_answered"] == 0]
    assert len(failed) > 10
    assert all("lookup_hops" not in of for of in failed)
    assert all("lookup_hops" in of for of in gauges if of["lookups_answered"])


def test_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    runs = [reported(tmp_path / name, churn="exponential:10s,down=3s") for name in "ab"]
    assert runs[0] == runs[1]
    assert runs[0] != reported(tmp_path / "c", seed=4, churn="exponential:10s,down=3s")
