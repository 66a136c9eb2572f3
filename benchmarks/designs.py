"""How long constructing an overlay takes, from hundreds of nodes to a million.

    python -m benchmarks.designs [LARGEST] [--ingest]

Writes results/designs.json and designs-growth.png. Each size has a process of its own, whose peak
memory counts. Nodes have 10 topics each, of 100 or a hundredth of the nodes. With `--ingest`,
CD-MAX-Ref is also written as reports in Parquet and ingested without betweenness, each by a whole
command.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.smoke import measured
from benchmarks.watched import Json
from vizpub.analytics.figures.canvas import PALETTE, figure_style, panels, save
from vizpub.simulators.designs.algorithms import Design, construct
from vizpub.simulators.designs.flat import Flat
from vizpub.simulators.designs.kernels import centres_of, edges_of, refine_centres
from vizpub.simulators.designs.stars import Interests

HERE = Path(__file__).parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SMALL = (200, 500, 1_000, 2_500)
LAWS = {"uniform": None, "zipf 0.5": 0.5, "zipf 0.75": 0.75, "zipf 1": 1.0}
RULES = {"cd-max": "cd-max", "cd-max-ref": "cd-max", "cd-oda-ii": "cd-oda-ii"}
"""How centres are chosen, by algorithm; CD-MAX-Ref then moves those of CD-MAX."""
_EACH = 10


def topics_of(nodes: int) -> int:
    """A hundredth of the nodes; 100 at least."""
    return max(100, nodes // 100)


def large(given: tuple[int, str]) -> list[Json]:
    """The compiled algorithms on one set of subscriptions of (nodes, law)."""
    nodes, law = given
    _warm()
    flat = Flat.draw(nodes, topics_of(nodes), _EACH, 1, LAWS[law])
    told: list[Json] = []
    centres: dict[str, np.ndarray] = {}
    spent: dict[str, np.ndarray] = {}
    for name, rule in RULES.items():
        begun, busy = time.perf_counter(), time.process_time()
        centres[name] = (
            refine_centres(flat, centres[rule]) if rule in centres else centres_of(flat, rule)
        )
        edges = edges_of(flat, centres[name])
        taken = np.array([time.perf_counter() - begun, time.process_time() - busy])
        spent[name] = taken + spent.get(rule, 0)  # what is refined was constructed before
        seconds, cpu = spent[name].round(3).tolist()
        degrees = np.bincount(edges.ravel(), minlength=nodes)
        told.append({
            "nodes": nodes, "law": law, "algorithm": name,
            "seconds": seconds, "cpu": cpu,
            "edges": len(edges), "maximum": int(degrees.max()),
            "largest_topic": int(np.diff(flat.firsts).max()),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        })  # fmt: skip
    return told


def commands(nodes: int) -> Json:
    """Whole commands: an overlay as reports, and a run of them without Neo4j."""
    with TemporaryDirectory(prefix="vizpub-designs-") as folder:
        reports = f"{folder}/reports"
        workload = f"uniform:topics={topics_of(nodes)},subscriptions={_EACH}"
        size = ["--peers", str(nodes), "--workload", workload, "--parquet", "--out", reports]
        ingest = ["ingest", reports, "--run", "designed", "--no-load", "--no-betweenness"]
        ways = {"construct": ["construct", "cd-max-ref", *size], "ingest": ingest}
        told: Json = {"nodes": nodes}
        for way, words in ways.items():
            run = measured(["-m", "vizpub.cli", "--workspace", f"{folder}/workspace", *words])
            told[way] = {
                "seconds": round(run.seconds, 1), "cpu": round(run.processor, 1),
                "peak_mb": round(run.megabytes),
            }  # fmt: skip
        return told


def _warm() -> None:
    """Load compiled code."""
    flat = Flat.draw(20, 10, 3, 1)
    for rule in set(RULES.values()):
        edges_of(flat, refine_centres(flat, centres_of(flat, rule)))
    construct(Design("gm"), Interests([[0], [0]], 1))


def small(nodes: int) -> list[Json]:
    """All algorithms on few nodes, beside direct implementations with numpy."""
    _warm()
    flat = Flat.draw(nodes, topics_of(nodes), _EACH, 1)
    interests = Interests(flat.topics.reshape(nodes, _EACH).tolist(), topics_of(nodes))
    ways: dict[str, Callable[[], int]] = {
        f"{name} here": lambda name=name: _edges(interests, name)  # type: ignore[misc]
        for name in ("gm", "cd-oda-ii", "2d-oda", "cd-max", "cd-max-ref")
    }
    ways["cd-max direct"] = lambda: direct_cd_max(interests)
    if nodes <= 200:
        ways["gm direct"] = lambda: direct_gm(interests)
    told = []
    for way, run in ways.items():
        begun = time.process_time()
        edges = run()
        cpu = round(time.process_time() - begun, 4)
        told.append({"nodes": nodes, "way": way, "cpu": cpu, "edges": edges})
    return told


def _edges(interests: Interests, algorithm: str) -> int:
    return sum(map(len, construct(Design(algorithm), interests).neighbours)) // 2


def direct_cd_max(interests: Interests) -> int:
    """The edges of CD-MAX, as one would write it: all nodes counted anew for every centre."""
    takes = np.zeros((interests.nodes, len(interests.subscribers)), dtype=np.float32)
    for node, own in enumerate(interests.of):
        takes[node, own] = 1
    sizes, left = takes.sum(axis=0), takes * (takes.sum(axis=0) > 1)
    edges: set[tuple[int, int]] = set()
    while left.any():
        near = (left @ left.T) > 0
        reached = near.sum(axis=1)
        able = np.flatnonzero(left.any(axis=1)).tolist()
        node = min(able, key=lambda one: (reached[one], -(left[one] @ sizes), one))
        others = np.flatnonzero(near[node]).tolist()
        edges |= {(min(node, other), max(node, other)) for other in others if other != node}
        left[:, left[node] > 0] = 0
    return len(edges)


def direct_gm(interests: Interests) -> int:
    """The edges of GM: the gain of every pair anew for every edge."""
    parts = {(t, n): n for t, of_it in enumerate(interests.subscribers) for n in of_it}
    common = {
        pair: both
        for pair in combinations(range(interests.nodes), 2)
        if (both := sorted({*interests.of[pair[0]]} & {*interests.of[pair[1]]}))
    }
    edges = 0
    while True:
        best, most = None, 0
        for pair, both in common.items():
            gain = sum(parts[topic, pair[0]] != parts[topic, pair[1]] for topic in both)
            if gain > most:
                best, most = pair, gain
        if best is None:
            return edges
        edges += 1
        for topic in common[best]:
            old, new = parts[topic, best[1]], parts[topic, best[0]]
            for node in interests.subscribers[topic]:
                if parts[topic, node] == old:
                    parts[topic, node] = new


def draw(points: Sequence[Json], out: Path) -> None:
    """Processor time over the nodes: a panel for each law."""
    with figure_style():
        figure, rows = panels(len(LAWS), "Constructing overlays (compiled, one processor)")
        for panel, law in zip(rows, LAWS, strict=True):
            names = dict.fromkeys(point["algorithm"] for point in points)
            for name, colour in zip(names, PALETTE, strict=False):
                own = [p for p in points if (p["law"], p["algorithm"]) == (law, name)]
                if len(own) > 1:
                    x, y = ([max(p[key], 1e-3) for p in own] for key in ("nodes", "cpu"))
                    slope = np.polyfit(np.log(x), np.log(y), 1)[0]
                    label = f"{name}: exponent {slope:.2f}"
                    panel.loglog(x, y, "o-", color=colour, label=label)
            panel.set_xlim(SIZES[0] / 1.5, SIZES[-1] * 1.5)
            panel.set_ylabel(f"processor s, {law}")
            if panel.lines:
                panel.legend()
        rows[-1].set_xlabel("nodes")
    save(figure, out, "png")


def main() -> None:
    """Measure what is not measured yet, and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.designs", description=__doc__)
    parser.add_argument("largest", nargs="?", type=int, default=SIZES[-1], help="nodes")
    parser.add_argument("--ingest", action="store_true", help="also whole commands, to a run")
    asked = parser.parse_args()
    sizes = [size for size in SIZES if size <= asked.largest]
    kept = HERE / "results" / "designs.json"
    told: Json = (
        json.loads(kept.read_text("utf-8")) if kept.exists() else {"large": [], "small": []}
    )
    done = {(point["nodes"], point["law"]) for point in told["large"]}
    of_small = {point["nodes"] for point in told["small"]}
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for nodes in SMALL:
            if nodes not in of_small:
                told["small"] += pool.apply(small, (nodes,))
                kept.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        for nodes in sizes:
            for law in LAWS:
                if (nodes, law) not in done:
                    told["large"] += pool.apply(large, ((nodes, law),))
                    kept.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    ingested = told.setdefault("commands", [])
    for nodes in sizes if asked.ingest else ():
        if nodes not in {point["nodes"] for point in ingested}:
            ingested.append(commands(nodes))
            kept.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    draw(told["large"], HERE / "designs-growth.png")


if __name__ == "__main__":
    main()
