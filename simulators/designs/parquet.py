"""Constructs overlays of up to millions of nodes, and writes them as reports in Parquet."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.machine.files import replacing
from vizpub.model.errors import UseError
from vizpub.reports.records import RunEnd, RunHeader
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.kernels import RULES, centres_of, edges_of
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.world.subscriptions import UniformWorkload, Workload, ZipfWorkload

_SUBSCRIPTION_S, _SUBSCRIPTION_BYTES = 4e-6, 150
"""Measured with 100,000 to 3 million subscriptions; those of a workload that is not drawn at once
take more.
"""
_ROWS = 100_000
"""Reports in a row group, the unit in which they are read."""


@dataclass(frozen=True)
class WrittenOverlay:
    """An overlay that was written."""

    nodes: int
    edges: int
    maximum: int
    """Maximum degree."""
    drawing: float
    """Seconds for subscriptions, centres and the file."""
    constructing: float
    writing: float


def parquet_costs(peers: int, workload: Workload) -> Costs:
    """Estimate the costs of `write_parquet`; files and other workloads count as ten topics each."""
    subscriptions = peers * getattr(workload, "subscriptions_", 10)
    return Costs(subscriptions * _SUBSCRIPTION_S, subscriptions * _SUBSCRIPTION_BYTES)


def write_parquet(
    design: Design, peers: int, workload: Workload, header: RunHeader, folder: Path
) -> WrittenOverlay:
    """Construct the overlay of one interval, and write `reports.parquet` in the folder.

    `uniform` and `zipf` are drawn all at once: other subscriptions than those of a simulation with
    the same seed, by the same law.

    Raises: UseError for an algorithm that is not compiled.
    """
    rule = design.algorithm.removesuffix("-ref")
    if rule not in RULES:
        compiled = ", ".join([*RULES, "cd-max-ref"])
        raise UseError(f"{design.algorithm} is not compiled for --parquet: use {compiled}")
    start = time.perf_counter()
    flat, names = _subscriptions(peers, workload, header.seed or 0)
    drawn = time.perf_counter()
    centres = centres_of(flat, rule, refined=design.refines)
    edges = edges_of(flat, centres)
    built = time.perf_counter()
    degrees = np.bincount(edges.ravel(), minlength=flat.nodes)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "reports.parquet") as new:
        table = _reports(flat, centres, edges, names)
        about = {
            "vizpub.run": json.dumps(header.to_json()),
            "vizpub.end": json.dumps(RunEnd(0, header.run).to_json()),
        }
        pq.write_table(table.replace_schema_metadata(about), new, row_group_size=_ROWS)
    done = time.perf_counter()
    most = int(degrees.max(initial=0))
    spent = (drawn - start, built - drawn, done - built)
    return WrittenOverlay(flat.nodes, len(edges), most, *spent)


def _subscriptions(
    peers: int, workload: Workload, seed: int
) -> tuple[FlatInterests, list[str] | None]:
    """The subscriptions, and the names of the topics if they are not their numbers."""
    if isinstance(workload, UniformWorkload):
        return FlatInterests.draw(peers, workload.topics, workload.subscriptions_, seed), None
    if isinstance(workload, ZipfWorkload) and not workload.communities:
        law = (workload.topics, workload.subscriptions_, seed, workload.exponent)
        return FlatInterests.draw(peers, *law), None
    drawn = workload.subscriptions(peers, stream(seed, "workload"))
    interests = Interests([drawn.of(peer) for peer in range(peers)], drawn.topics)
    return FlatInterests.of(interests), None if drawn.names is None else list(drawn.names)


def _reports(
    flat: FlatInterests, centres: np.ndarray, edges: np.ndarray, names: list[str] | None
) -> pa.Table:
    """A report of every node, in which it names its neighbours, topics and roles."""
    ends = np.concatenate([edges[:, 0], edges[:, 1]]), np.concatenate([edges[:, 1], edges[:, 0]])
    pairs = ends[0] * flat.nodes + ends[1]
    pairs.sort()  # by node, then by neighbour
    centred = np.flatnonzero(centres >= 0)
    order = np.lexsort((centred, centres[centred]))
    role = pa.StructArray.from_arrays(
        [pa.array(["center"] * len(centred)), _topics(centred[order], names)], ["role", "topic"]
    )
    return pa.table(
        {
            "peer": np.arange(flat.nodes, dtype=np.int32),
            "interval": np.zeros(flat.nodes, dtype=np.int32),
            "neighbors": _lists(flat.nodes, pairs // flat.nodes, pa.array(pairs % flat.nodes)),
            "topics": pa.ListArray.from_arrays(
                pa.array(flat.begins.astype(np.int32)), _topics(flat.topics, names)
            ),
            "roles": _lists(flat.nodes, centres[centred], role),
        }
    )


def _topics(numbers: np.ndarray, names: list[str] | None) -> pa.Array:
    return pa.array(numbers) if names is None else pa.array(names).take(pa.array(numbers))


def _lists(nodes: int, owners: np.ndarray, values: pa.Array) -> pa.ListArray:
    """The values of every node; they are in the order of the nodes."""
    counts = np.bincount(owners, minlength=nodes)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values)
