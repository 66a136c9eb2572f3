"""Gossip in full, through reports and ingest, against its compiled counts; the experiment on it."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from tests.support.words import tells
from vizpub.experiments.gossip import points
from vizpub.experiments.gossip.measuring import NetworkMeasures, measure_network, measure_networks
from vizpub.experiments.gossip.points import (
    HUBS,
    HUBS_PEERS,
    GossipPoint,
    NetworkCase,
    points_above,
    points_below,
)
from vizpub.experiments.measured import MeasuringRequest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.simulators.protocols.gossip.events import COUNTS, Spreading, adjacency, disseminate

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark

PEERS, EVENTS, GAMMA, TTL, SEED = 200, 30, 0.4, 6, 8
SIMULATED = (
    f"lab simulate gossip --peers {PEERS} --topology poisson:5 --workload bernoulli:0.15 "
    f"--ttl {TTL} --gamma {GAMMA} --intervals 12 --seed {SEED} --ingest gossip --no-load"
)
WORLDS = [
    NetworkCase(
        "poisson:5",
        500,
        seed,
        (GossipPoint(0.1, 0.05), GossipPoint(0.1, 0.6), GossipPoint(0.1, 1.0)),
    )
    for seed in (1, 2, 3)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, vizpub_here: Vizpub) -> StoredRun:
    """30 events, one after the other, once all peers know their neighbours."""
    place = tmp_path_factory.mktemp("gossip")
    script = place / "publications.csv"
    script.write_text("".join(f"{2 + n / 5}s,0,{6 * n}\n" for n in range(EVENTS)))
    line = f"{SIMULATED} --publications script:{script}"
    done = vizpub_here("--workspace", str(place), *shlex.split(line))
    assert done.returncode == 0, done.stderr
    return open_run(place, "gossip")


def columns(run: StoredRun, table: str) -> dict[str, np.ndarray]:
    found = run.read(table)
    return {name: found[name].to_numpy(zero_copy_only=False) for name in found.column_names}


def test_compiled_counts_are_those_of_full_reports(run: StoredRun) -> None:
    """Nothing of the full simulation but its seed, overlay, subscribers and publishers is used."""
    number = columns(run, "peers")["name"].astype(np.int64)
    links, published, copies = (
        columns(run, name) for name in ("links", "publications", "receptions")
    )
    network = adjacency(number[np.column_stack([links["src"], links["dst"]])], PEERS)
    wants = np.zeros(PEERS, np.bool_)
    wants[number[columns(run, "subscriptions")["peer"]]] = True
    message = published["name"].astype(np.int64)
    publishers = np.empty(EVENTS, np.int64)
    publishers[message] = number[published["publisher"]]
    ours = disseminate(network, wants, Spreading(GAMMA, TTL, SEED), publishers)
    for row, event in zip(published["message"].tolist(), message.tolist(), strict=True):
        of = copies["message"] == row
        peer, sender = (number[copies[name][of]] for name in ("peer", "previous_hop"))
        first = copies["first"][of] & (peer != publishers[event])
        hops = dict(zip(peer[first].tolist(), copies["hop"][of][first].tolist(), strict=True))
        parent = dict(zip(peer[first].tolist(), sender[first].tolist(), strict=True))
        hops |= {int(publishers[event]): 0}
        offered = sum(
            not wants[other]
            for holder, travelled in hops.items()
            if travelled < TTL
            for other in network.others[network.begins[holder] : network.begins[holder + 1]]
            if other != parent.get(holder)
        )
        theirs = {
            "receivers": len(hops),
            "subscribers": int(wants[[*hops]].sum()),
            "sent": peer.size,
            "offered": offered,
            "passed": int(np.count_nonzero(~wants[peer])),
            "hops": max(hops.values()),
        }
        assert {name: int(ours[name][event]) for name in COUNTS} == theirs, f"event {event}"
    assert ours["receivers"].max() > PEERS / 3
    assert ours["hops"].max() == TTL


def test_senders_of_copies_are_neighbours(run: StoredRun) -> None:
    links, copies = columns(run, "links"), columns(run, "receptions")
    linked = {*zip(links["src"], links["dst"], strict=True)}
    assert {*zip(copies["previous_hop"], copies["peer"], strict=True)} <= linked
    assert all((dst, src) in linked for src, dst in linked)


def without_times(rows: list[NetworkMeasures]) -> list[dict[str, object]]:
    return [vars(row) | {"seconds": 0} for row in rows]


@pytest.mark.usefixtures("vizpub_here")
def test_networks_measured_in_tasks_are_those_measured_here(tmp_path: Path) -> None:
    kept = tmp_path / "networks.jsonl"
    request = MeasuringRequest("small", tmp_path)
    found = measure_networks(WORLDS, request)
    assert without_times(found) == without_times(
        [row for one in WORLDS for row in measure_network(one)]
    )
    lines = kept.read_text("utf-8").splitlines()
    changed = json.loads(lines[1])
    changed[1][0]["sent"] = -1.0
    kept.write_text(f"{lines[0]}\n{json.dumps(changed)}\n", "utf-8")  # the third was not finished
    again = measure_networks(WORLDS, request)
    assert [row.sent for row in again].count(-1.0) == 1, (
        "measured again, or not taken from the file"
    )
    assert without_times(again[6:]) == without_times(found[6:])


@pytest.mark.long
def test_experiment_writes_its_report(
    tmp_path: Path, vizpub_here: Vizpub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one network of each kind, of a fiftieth of the size, at fewer points."""
    monkeypatch.setattr(points, "_LARGE", {"small": 400})
    monkeypatch.setattr(points, "_SIZES", {"small": (200, 300)})
    monkeypatch.setattr(points, "_ABOVE", (0.05, 0.2, 0.4, 0.6, 0.8, 1.0))
    monkeypatch.setattr(points, "_SIGMAS", (0.1, 0.3, 1.0))
    line = f"lab experiment run gossip-complex-networks --runs 1 --out {tmp_path}"
    done = vizpub_here("--workspace", str(tmp_path / "workspace"), *shlex.split(line))
    assert done.returncode == 0, done.stderr
    tells(done.stderr + done.stdout, tmp_path / "report.md")
    with (tmp_path / "values.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    of_hubs = [row for row in rows if row["topology"] == HUBS]
    assert len(of_hubs) == len({*points_above()})
    assert {row["peers"] for row in of_hubs} == {str(HUBS_PEERS)}
    assert len({*points_below("poisson:5")}) < len([row for row in rows if row["peers"] == "400"])
    assert (tmp_path / "report.md").read_text("utf-8").count("figures/") == 7
