"""The table metrics/percolation of a stored run: made when it is asked for, beside the others.

Blocks of intervals are measured in Spark tasks, which read the run themselves; a small run is
measured in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vizpub.analytics.comparison.spans import read_spans
from vizpub.analytics.own import OverlayPeriods
from vizpub.analytics.prediction.predicted import CopyCounts, GossipEvent, IntervalGossip, Row
from vizpub.ingest.spark.tasks import run_in_tasks
from vizpub.model.errors import RunChanged, UseError
from vizpub.model.metrics import METRICS_PERCOLATION
from vizpub.model.progress import Progress, silent
from vizpub.model.run import DUPLICATES, PREVIOUS_HOPS
from vizpub.questions.run import Run
from vizpub.runstore.integrity import PARQUET
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.stores.place import RunPlace, store_of_run
from vizpub.runstore.writer import writing

NAME = METRICS_PERCOLATION.name
_SMALL = 2_000_000
"""Links × intervals that are measured here; about a minute."""
_BLOCKS = 64
"""Most tasks of a large run."""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class PercolationOptions:
    """Parameters of the prediction: the layers whose links count (null = those of the run's
    metrics),
    gamma and sigma (null = as the run shows)."""

    layers: tuple[str, ...] | None = None
    gamma: float | None = None
    sigma: float | None = None

    @property
    def text(self) -> str:
        """Text of the options that run.json keeps."""
        layers = ",".join(self.layers) if self.layers else "as measured"
        gamma, sigma = ("as shown" if x is None else f"{x!r}" for x in (self.gamma, self.sigma))
        return f"message passing, layers {layers}, gamma {gamma}, sigma {sigma}"


@dataclass(frozen=True)
class _IntervalBlock:
    """Intervals `first` to `last` of a run."""

    place: RunPlace
    layers: tuple[str, ...] | None
    first: int
    last: int
    gamma: float | None = None
    sigma: float | None = None

    def situations(self) -> Iterator[IntervalGossip]:
        """Yield the overlay and the events of each interval."""
        directory = self.place.here()
        run = Run.open(directory.parents[1], directory.name)
        window = range(self.first, self.last + 1)
        links = read_spans(run, "links", ["src", "dst", "layer", "topic"], window, self.layers)
        overlay = OverlayPeriods(
            read_spans(run, "presence", ["peer"], window),
            links,
            read_spans(run, "subscriptions", ["topic", "peer"], window),
        )
        events = _events(run, self)
        for number in window:
            yield IntervalGossip(overlay.at(number), events.get(number, []))

    def count_copies(self) -> CopyCounts:
        """Count the copies of all events along links of the overlay."""
        return sum((one.count_copies() for one in self.situations()), CopyCounts())

    def rows(self) -> list[Row]:
        """Return the rows of metrics/percolation."""
        return [one.row(self.sigma, self.gamma) for one in self.situations()]


def ensure_percolation(
    workspace: Path,
    run: Run,
    options: PercolationOptions,
    *,
    progress: Progress = silent,
) -> Run:
    """Return the run with the table for these options, which is made and stored if it is missing.

    Raises: UseError if the run lacks a fact that is needed; UnknownName for a layer; RunLocked.
    """
    manifest = run.stored.manifest
    if NAME in manifest.tables and manifest.engines.get(NAME) == options.text:
        return run
    _check_options(run, options)
    layers = options.layers or run.facts.layers
    clock, is_small = run.clock, run.stored.rows("links") * run.clock.intervals <= _SMALL
    count = 1 if is_small else min(clock.intervals, _BLOCKS)
    cuts = np.linspace(clock.first, clock.last + 1, count + 1).astype(int).tolist()
    place = RunPlace(run.stored.directory, store_of_run(run.stored.directory))
    blocks = [_IntervalBlock(place, layers, first, stop - 1) for first, stop in pairwise(cuts)]

    def each(
        function: Callable[[_IntervalBlock], _Result], blocks_to_do: Sequence[_IntervalBlock]
    ) -> list[_Result]:
        if len(blocks_to_do) == 1:
            return [function(blocks_to_do[0])]
        scratch = workspace / SCRATCH
        step = "percolation"
        return run_in_tasks(function, blocks_to_do, step=step, scratch=scratch, progress=progress)

    gamma = options.gamma
    if gamma is None:
        gamma = sum(each(_IntervalBlock.count_copies, blocks), CopyCounts()).gamma
    chosen = [replace(block, gamma=gamma, sigma=options.sigma) for block in blocks]
    rows = [row for part in each(_IntervalBlock.rows, chosen) for row in part]
    _store_table(workspace, run, rows, options)
    return Run.open(workspace, run.facts.name)


def _check_options(run: Run, options: PercolationOptions) -> None:
    """Check that the run has the facts that the options need. Raises: UseError, UnknownName."""
    run.facts.check_known("presence", "links")
    run.checked_layers(options.layers)
    for option, value in (("--gamma", options.gamma), ("--sigma", options.sigma)):
        if value is not None and not 0 <= value <= 1:
            raise UseError(f"{option} is a probability, from 0 to 1, not {value:g}")
    needed = ("subscriptions", "publications", "receptions")
    if options.sigma is None and not all(map(run.facts.knows, needed)):
        raise UseError(
            f"run '{run.facts.name}' does not report who subscribes and publishes; give --sigma"
        )
    shows_gamma = all(map(run.facts.knows, (*needed, DUPLICATES, PREVIOUS_HOPS)))
    if options.gamma is None and not shows_gamma:
        raise UseError(f"run '{run.facts.name}' does not report who sent which copy; give --gamma")


def _events(run: Run, block: _IntervalBlock) -> dict[int, list[GossipEvent]]:
    """Read the messages whose topic and publisher are known, by interval of publication."""
    if not (run.stored.has("publications") and run.stored.has("receptions")):
        return {}
    inside = (pc.field("interval") >= block.first) & (pc.field("interval") <= block.last)
    inside &= pc.is_valid(pc.field("topic")) & pc.is_valid(pc.field("publisher"))
    names = ["message", "topic", "publisher", "interval"]
    published = run.stored.read("publications", names, inside)
    if not published.num_rows:
        return {}
    ends = pc.min_max(published["message"]).as_py()
    of_them = (pc.field("message") >= ends["min"]) & (pc.field("message") <= ends["max"])
    arrived = run.stored.read("receptions", ["message", "peer", "previous_hop", "first"], of_them)
    message = arrived["message"].to_numpy()
    peer = arrived["peer"].to_numpy().astype(np.int64)
    sender = pc.fill_null(arrived["previous_hop"], -1).to_numpy().astype(np.int64)
    first = np.asarray(arrived["first"].to_numpy(), np.bool_)
    events: dict[int, list[GossipEvent]] = {}
    for row in published.to_pylist():
        rows_of_message = slice(
            *np.searchsorted(message, [row["message"], row["message"] + 1]).tolist()
        )
        event = GossipEvent(
            row["topic"],
            row["publisher"],
            peer[rows_of_message],
            sender[rows_of_message],
            first[rows_of_message],
        )
        events.setdefault(row["interval"], []).append(event)
    return events


def _store_table(workspace: Path, run: Run, rows: list[Row], options: PercolationOptions) -> None:
    """Write the table and add it to run.json. An interrupted change can still be resumed.

    Raises: RunChanged if the run was changed meanwhile.
    """
    table = pa.Table.from_pylist(rows, METRICS_PERCOLATION.arrow)
    with writing(workspace, run.facts.name) as writer:
        now = writer.stored
        if now is None or not now.complete or now.identity != run.facts.tables:
            raise RunChanged(run.facts.name)
        directory = writer.fresh_directory(NAME)
        directory.mkdir(parents=True)
        pq.write_table(table, directory / "rows.parquet", **PARQUET)
        entry = writer.entry(directory)
        tables, engines = {**now.tables, NAME: entry}, {**now.engines, NAME: options.text}
        writer.commit(replace(now, tables=tables, engines=engines))
