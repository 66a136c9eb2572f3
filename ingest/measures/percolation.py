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

from vizpub.analytics.own import Overlay, Spans
from vizpub.analytics.prediction.predicted import Event, Passed, Row, Situation
from vizpub.ingest.spark.tasks import spread
from vizpub.model.clock import OPEN
from vizpub.model.errors import RunChanged, UseError
from vizpub.model.metrics import METRICS_PERCOLATION
from vizpub.model.progress import Progress, silent
from vizpub.model.run import DUPLICATES, PREVIOUS_HOPS
from vizpub.questions.run import Run
from vizpub.runstore.integrity import PARQUET
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.writer import writing

NAME = METRICS_PERCOLATION.name
_SMALL = 2_000_000
"""Links × intervals that are measured here; about a minute."""
_BLOCKS = 64
"""Most tasks of a large run."""

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Asked:
    """What the prediction takes: the layers whose links count (null = those of the run's metrics),
    gamma and sigma (null = what the run shows)."""

    layers: tuple[str, ...] | None = None
    gamma: float | None = None
    sigma: float | None = None

    @property
    def text(self) -> str:
        """As run.json keeps it."""
        layers = ",".join(self.layers) if self.layers else "as measured"
        gamma, sigma = ("as shown" if x is None else f"{x:g}" for x in (self.gamma, self.sigma))
        return f"message passing, layers {layers}, gamma {gamma}, sigma {sigma}"


@dataclass(frozen=True)
class _Block:
    """Intervals `first` to `last` of a run."""

    workspace: Path
    run: str
    layers: tuple[str, ...] | None
    first: int
    last: int
    gamma: float | None = None
    sigma: float | None = None

    def situations(self) -> Iterator[Situation]:
        """The overlay and the events of each interval."""
        run = Run.open(self.workspace, self.run)
        overlay, events = _overlay(run, self), _events(run, self)
        for number in range(self.first, self.last + 1):
            yield Situation(overlay.at(number), events.get(number, []))


def ensure(
    workspace: Path,
    run: Run,
    asked: Asked,
    *,
    master: str | None = None,
    progress: Progress = silent,
) -> Run:
    """The run with the table as it was asked for, which is made and stored if it is not there.

    Raises: UseError where the run does not tell what is needed, UnknownName for a layer; RunLocked.
    """
    manifest = run.stored.manifest
    if NAME in manifest.tables and manifest.engines.get(NAME) == asked.text:
        return run
    _check(run, asked)
    layers = asked.layers or run.facts.layers
    blocks = _blocks(_Block(workspace.absolute(), run.facts.name, layers, 0, 0), run)

    def each(function: Callable[[_Block], _Found], given: Sequence[_Block]) -> list[_Found]:
        if len(given) == 1:
            return [function(given[0])]
        scratch = workspace / SCRATCH
        step = "percolation"
        return spread(function, given, step=step, scratch=scratch, master=master, progress=progress)

    gamma = asked.gamma
    if gamma is None:
        gamma = sum(each(_passed, blocks), Passed()).gamma
    chosen = [replace(block, gamma=gamma, sigma=asked.sigma) for block in blocks]
    rows = [row for part in each(_rows, chosen) for row in part]
    _store(workspace, run, rows, asked)
    return Run.open(workspace, run.facts.name)


def _check(run: Run, asked: Asked) -> None:
    """Raises: UseError, UnknownName."""
    run.facts.check_known("presence", "links")
    run.checked_layers(asked.layers)
    for option, value in (("--gamma", asked.gamma), ("--sigma", asked.sigma)):
        if value is not None and not 0 <= value <= 1:
            raise UseError(f"{option} is a probability, from 0 to 1, not {value:g}")
    needed = ("subscriptions", "publications", "receptions")
    if asked.sigma is None and not all(map(run.facts.knows, needed)):
        raise UseError(
            f"run '{run.facts.name}' does not report who subscribes and publishes; give --sigma"
        )
    shows_gamma = all(map(run.facts.knows, (*needed, DUPLICATES, PREVIOUS_HOPS)))
    if asked.gamma is None and not shows_gamma:
        raise UseError(f"run '{run.facts.name}' does not report who sent which copy; give --gamma")


def _blocks(whole: _Block, run: Run) -> list[_Block]:
    clock = run.clock
    count = 1
    if run.stored.rows("links") * clock.intervals > _SMALL:
        count = min(clock.intervals, _BLOCKS)
    cuts = np.linspace(clock.first, clock.last + 1, count + 1).astype(int).tolist()
    return [replace(whole, first=a, last=b - 1) for a, b in pairwise(cuts)]


def _passed(block: _Block) -> Passed:
    return sum((situation.passed() for situation in block.situations()), Passed())


def _rows(block: _Block) -> list[Row]:
    return [one.row(block.sigma, block.gamma) for one in block.situations()]


def _overlay(run: Run, block: _Block) -> Overlay:
    of_layers = pc.field("layer").isin(pa.array(block.layers)) if block.layers else None
    return Overlay(
        _spans(run, block, "presence", ["peer"]),
        _spans(run, block, "links", ["src", "dst", "layer", "topic"], of_layers),
        _spans(run, block, "subscriptions", ["topic", "peer"]),
    )


def _spans(
    run: Run,
    block: _Block,
    name: str,
    columns: list[str],
    where: pc.Expression | None = None,
) -> Spans:
    """The rows that are sampled in the block; without any if the run does not have the table."""
    k = run.clock.ticks_per_interval
    inside = (pc.field("valid_from") < (block.last + 1) * k) & (
        pc.field("valid_to") >= block.first * k
    )
    where = inside if where is None else inside & where
    rows = run.stored.read(name, [*columns, "valid_from", "valid_to"], where)
    begin, end = rows["valid_from"].to_numpy(), rows["valid_to"].to_numpy()
    stop = np.where(end == OPEN, block.last + 1, np.minimum(end // k, block.last + 1))
    start = np.maximum(begin // k, block.first)
    return Spans(rows.select(columns), start.astype(np.int32), stop.astype(np.int32))


def _events(run: Run, block: _Block) -> dict[int, list[Event]]:
    """The messages whose topic and publisher are known, by interval of publication."""
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
    found: dict[int, list[Event]] = {}
    for row in published.to_pylist():
        of = slice(*np.searchsorted(message, [row["message"], row["message"] + 1]).tolist())
        event = Event(row["topic"], row["publisher"], peer[of], sender[of], first[of])
        found.setdefault(row["interval"], []).append(event)
    return found


def _store(workspace: Path, run: Run, rows: list[Row], asked: Asked) -> None:
    """Add the table to run.json. A change that was interrupted goes on afterwards as before.

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
        tables, engines = {**now.tables, NAME: entry}, {**now.engines, NAME: asked.text}
        writer.commit(replace(now, tables=tables, engines=engines))
