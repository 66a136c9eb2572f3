"""The world of the recorded gossipsub network, to simulate gossipsub in it, and what both did.

`python -m tests.support.replayed` prints the table of docs/results/gossipsub.md.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.ingested import SMALL
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

SECONDS = 110
SAMPLED = range(30, SECONDS, 10)
"""Seconds at which the recorded meshes are known, from the first messages on."""
IDONTWANT_BYTES = 1024
"""Larger messages are announced before they are sent on, in the recorded version of gossipsub."""
RECORDED = {"dials": 5, "topic_peers": 0, "flood_publish": False, "scores": "none"}
"""The library's defaults. The recorded peers dialled six others, but none later for those that they
lost: five that are kept open give as many connections.
"""

with gzip.open(SMALL / "truth.json.gz") as file:
    TRUTH: dict[str, Any] = json.load(file)
START = TRUTH["start_ns"]
NORMAL = {m["label"]: m for m in TRUTH["messages"] if m["kind"] in ("normal", "burst")}


def _seconds(time_ns: int) -> str:
    return f"{(time_ns - START) / 1e9:.6f}"


def _latencies() -> list[str]:
    """One-way µs between all pairs: those of the fastest delivery between their regions."""
    region = {node["idx"]: node["region"] for node in TRUTH["nodes"]}
    fastest: dict[frozenset[int], int] = {}
    for message in NORMAL.values():
        had = {message["publisher"]: message["t_ns"]}
        had |= {delivery["node"]: delivery["t_ns"] for delivery in message["deliveries"]}
        for delivery in message["deliveries"]:
            ends = frozenset((region[delivery["from"]], region[delivery["node"]]))
            took = (delivery["t_ns"] - had[delivery["from"]]) // 1000
            fastest[ends] = min(took, fastest.get(ends, took))
    return [
        "\t".join(str(fastest[frozenset((one, other))]) for other in region.values())
        for one in region.values()
    ]


def write_world(folder: Path) -> dict[str, Any]:
    """Write who was up, subscribed and published when; return the parameters of that world."""
    sessions, changes = [], []
    for node in TRUTH["nodes"]:
        spells = [span for pair in node.get("offline_ns", ()) for span in pair]
        end = node.get("left_ns", START + SECONDS * 1_000_000_000)
        times = [_seconds(at) for at in (node["joined_ns"], *spells, end)]
        sessions.append(f"{node['idx']} {len(times) // 2} {' '.join(times)}")
    joined = {node["idx"]: node["joined_ns"] for node in TRUTH["nodes"]}
    first = {
        (entry["node"], entry["topic"]): None
        for entry in TRUTH["subscription_log"]
        if entry["op"] == "sub" and entry["t_ns"] == joined[entry["node"]]
    }
    for entry in TRUTH["subscription_log"]:
        node, topic, word = entry["node"], entry.get("topic"), entry["op"]
        if word != "crash" and not (word == "sub" and entry["t_ns"] == joined[node]):
            changes.append(f"{_seconds(entry['t_ns'])}s,{node},{word}scribe,{topic}")
    written = {
        "latencies.txt": _latencies(),
        "sessions.avt": sessions,
        "subscriptions.csv": [f"{node},{topic}" for node, topic in first],
        "interest.csv": changes,
        "publications.csv": [
            f"{_seconds(m['t_ns'])}s,{m['topic']},{m['publisher']}" for m in NORMAL.values()
        ],
    }
    for name, lines in written.items():
        (folder / name).write_text("\n".join(lines), "utf-8")
    return {
        "peers": len(sessions),
        "intervals": SECONDS,
        "churn": f"trace:{folder}/sessions.avt,to={SECONDS}",
        "workload": f"file:{folder}/subscriptions.csv",
        "interest": f"script:{folder}/interest.csv",
        "publications": f"script:{folder}/publications.csv",
        "latency": f"matrix:{folder}/latencies.txt,unit=us,times=one-way",
    }


def figures(
    connections: Iterable[int],
    degrees: Iterable[int],
    hops: Iterable[int],
    duplicates: int,
    control: Counter[str],
) -> dict[str, float]:
    """Return what both networks are compared by."""
    degrees, hops = [*degrees], [*hops]
    return {
        "connections of a peer, mean": fmean(connections),
        "mesh degree, mean": fmean(degrees),
        "share of meshes of 4 to 12": fmean(4 <= degree <= 12 for degree in degrees),
        "mesh degree, largest": max(degrees),
        "deliveries": len(hops),
        "duplicates per delivery": duplicates / len(hops),
        "hops, mean": fmean(hops),
        "share of deliveries after 1 hop": fmean(one == 1 for one in hops),
        "hops, most": max(hops),
        **{f"{kind} sent": control[kind] for kind in ("graft", "prune", "ihave", "iwant")},
    }


def recorded() -> dict[str, float]:
    """Return the figures of the recorded network."""
    small = [m for m in NORMAL.values() if m["size"] < IDONTWANT_BYTES]
    snapshots = [s for s in TRUTH["snapshots"] if (s["t_ns"] - START) // 10**9 in SAMPLED]
    facts = json.loads((SMALL / "facts.json").read_text())["rpc_meta"]
    return figures(
        [len(others) for snapshot in snapshots for others in snapshot["pubsub_peers"].values()],
        [
            len(mesh)
            for snapshot in snapshots
            for topic in ("news", "news/sport")
            for mesh in snapshot["mesh"][topic].values()
        ],
        [delivery["hops"] for m in small for delivery in m["deliveries"]],
        sum(sum(m["duplicates_per_node"].values()) for m in small),
        Counter({kind: facts[f"sendRPC.{kind}"] for kind in ("graft", "prune", "ihave", "iwant")}),
    )


def _reports(folder: Path) -> Iterator[Report]:
    for path in sorted(folder.iterdir()):
        for line in ReportReader(path):
            if isinstance(line.record, Report):
                yield line.record


def simulated(world: dict[str, Any], seed: int, folder: Path) -> dict[str, float]:
    """Return the figures of a simulation in that world, of the same messages."""
    out = Folder(folder / f"seed-{seed}")
    simulate(make_plan("gossipsub", {**world, **RECORDED}, seed), out)
    small = {
        str(at)
        for at, m in enumerate(sorted(NORMAL.values(), key=lambda m: m["t_ns"]))
        if m["size"] < IDONTWANT_BYTES
    }
    connections, degrees = list[int](), list[int]()
    first, copies = dict[tuple[str, str], tuple[int, int]](), 0
    control: Counter[str] = Counter()
    for report in _reports(out.reports):
        if report.interval in SAMPLED:
            connections.append(sum(link.layer == "streams" for link in report.neighbors or ()))
            mesh = Counter(link.topic for link in report.neighbors or () if link.layer == "mesh")
            topics = {*(report.topics or ())} & {"news", "news/sport"}
            degrees += [mesh[topic] for topic in topics]
        for kind in report.control_kinds or ():
            control[kind.kind] += kind.messages_sent or 0
        for copy in report.received or ():
            if copy.message in small and copy.publisher != report.peer and copy.subscribed:
                copies += 1
                arrived = (copy.time_us or 0, copy.hops or 0)
                held = (copy.message, report.peer)
                first[held] = min(arrived, first.get(held, arrived))
    hops = [hops for _, hops in first.values()]
    return figures(connections, degrees, hops, copies - len(first), control)


def main() -> None:
    """Print both, with the mean and the range of five seeds."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        world = write_world(folder)
        runs = [simulated(world, seed, folder) for seed in range(1, 6)]
    print("| figure | recorded | simulated, mean | range |\n| --- | --- | --- | --- |")
    for name, value in recorded().items():
        ours = [run[name] for run in runs]
        print(f"| {name} | {value:.4g} | {fmean(ours):.4g} | {min(ours):.4g} to {max(ours):.4g} |")


if __name__ == "__main__":
    main()
