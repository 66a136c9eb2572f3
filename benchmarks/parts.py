"""The parts of the benchmark. Each runs alone, checks its results, and returns its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.inputs import Inputs
from benchmarks.reference import (
    Measured,
    Versions,
    read_versions,
    reference,
    require_same,
    rows_of,
    sample,
)
from benchmarks.sizes import Size
from benchmarks.watched import ROOT, Json, Program, measure
from vizpub.model.errors import UseError
from vizpub.questions.run import Run

WORK = ROOT / ".bench"
OTHERS = WORK / "env" / "bin" / "python"
CHECKED = 5
"""Intervals in which our own ways are compared with the kernels."""


@dataclass(frozen=True)
class Bench:
    """A size to measure at, and how thoroughly."""

    size: Size
    full: bool = False
    """Other programs measure every interval, however long it takes."""

    @cached_property
    def inputs(self) -> Inputs:
        """The input."""
        return Inputs(self.size, WORK)

    @cached_property
    def versions(self) -> Versions:
        """The versions tables, in memory."""
        return read_versions(self.inputs.versions, self.size.intervals)

    def reference(self, count: int) -> Measured:
        """The kernels' results in that many intervals."""
        return reference(self.versions, sample(self.size, count))

    def folder(self, part: str) -> Path:
        """An empty folder for the files of a part."""
        folder = WORK / "made" / f"{self.size.key}-{part}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def program(self, module: str, *arguments: object) -> Json:
        """Run one of our programs and measure it."""
        return measure(Program(f"benchmarks.{module}", [str(a) for a in arguments]))

    def other(self, module: str, *arguments: object) -> Json:
        """Run another program and measure it. Raises: UseError without its environment."""
        if not OTHERS.exists():
            raise UseError("the other programs are not installed; run: make .bench/ready")
        name = f"benchmarks.others.{module}"
        return measure(Program(name, [str(a) for a in arguments], OTHERS))


Part = Callable[[Bench], Json]

KEYS = {"peers": ("interval", "peer"), "topics": ("interval", "topic"), "overlay": ("interval",)}
"""The parts of the metrics tables that describe the overlay."""


def kernels(bench: Bench) -> Json:
    """The kernels alone. All others are compared with their results."""
    return bench.program("kernels", bench.inputs.versions, bench.size.intervals)


def spark(bench: Bench) -> Json:
    """The stage of metrics in local mode."""
    out = bench.folder("spark")
    outcome = bench.program("structure", bench.inputs.versions, bench.size.intervals, out)
    ours, chosen = bench.reference(CHECKED), sample(bench.size, CHECKED)
    for name, keys in KEYS.items():
        metrics = rows_of(out / "all/metrics" / name, chosen)
        require_same(f"metrics/{name}", getattr(ours, name), metrics, *keys)
    return outcome


def one_by_one(name: str, count: int) -> Part:
    """Another program that measures one interval at a time: so many of them, or all."""

    def run(bench: Bench) -> Json:
        number = bench.size.intervals if bench.full else count
        path = bench.folder(name) / "peers.parquet"
        outcome = bench.other(
            f"by_{name}",
            path,
            bench.inputs.versions,
            bench.size.peers,
            *sample(bench.size, number),
        )
        ours, theirs = bench.reference(number).peers, pq.read_table(path)
        require_same(name, ours, theirs, "interval", "peer")
        return outcome

    return run


def periods(bench: Bench) -> Json:
    """The periods of links from the same reports, by DuckDB."""
    out = bench.folder("periods") / "links.parquet"
    outcome = bench.program("periods", bench.inputs.reports, out, bench.size.intervals - 1)
    inside = pq.read_table(bench.inputs.versions / "links.parquet")
    require_same("periods", inside, pq.read_table(out), "src", "dst", "valid_from")
    return outcome


def ingest_part(name: str, betweenness: str, rewritten: str = "") -> Part:
    """A whole ingest of the reports, or of them in other words."""

    def run(bench: Bench) -> Json:
        workspace, inputs = bench.folder(name), bench.inputs
        reports = inputs.rewritten(rewritten) if rewritten else inputs.reports
        outcome = bench.program("ingested", workspace, betweenness, "new", reports)
        check_run(bench, workspace)
        return outcome

    return run


def check_run(bench: Bench, workspace: Path) -> None:
    """The run holds the versions, metrics and messages of the reports."""
    run = Run.open(workspace, "benchmark")
    check_links(bench, run)
    ours, chosen = bench.reference(CHECKED), pa.array(sample(bench.size, CHECKED))
    for name, keys in KEYS.items():
        rows = run.table(f"metrics/{name}")
        rows = rows.filter(pc.is_in(rows["interval"], chosen))
        filled = [column for column in rows.column_names if rows[column].null_count < len(rows)]
        require_same(f"metrics/{name}", getattr(ours, name), rows.select(filled), *keys)
    check_messages(bench.size, run.table("metrics/messages"))


def check_links(bench: Bench, run: Run) -> None:
    """The run has the links of the input."""
    inside = pq.read_table(bench.inputs.versions / "links.parquet")
    require_same("links", inside, run.table("links"), "src", "dst", "valid_from")


def check_messages(size: Size, metrics: pa.Table) -> None:
    """The metrics of messages are those of the input."""
    from benchmarks.dissemination import messages

    _, arrivals = messages(size)
    by_message = pa.table(arrivals._asdict()).group_by("message")
    ours = by_message.aggregate([("peer", "count"), ("hop", "max"), ("hop", "mean")])
    ours = ours.rename_columns(["message", "receptions", "hops_max", "hops_mean"])
    require_same("metrics/messages", ours, metrics, "message")
