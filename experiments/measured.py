"""Experiments that code measures in cases, without reports and runs to ingest.

Their cases are independent of each other and take seconds to minutes. What was measured is
appended to a file case by case, so an interruption loses nothing that is finished.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import import_module
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pyarrow as pa

from vizpub.experiments.formatting import estimate_text
from vizpub.experiments.groups import WHOLE, Share
from vizpub.experiments.results import estimate_difference, estimate_term
from vizpub.experiments.workers import WORKER_BYTES, worker_pool
from vizpub.model.progress import Progress, silent
from vizpub.simulators.engine.costs import Costs

if TYPE_CHECKING:
    from vizpub.analytics.comparison.estimates import Estimate
    from vizpub.experiments.report import ExperimentReport

_MODULES = {
    "cd-max": "cd_max",
    "channels": "channels",
    "gossip-complex-networks": "gossip",
}
MEASURED_NAMES = tuple(_MODULES)

_Case = TypeVar("_Case")
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class MeasuringRequest:
    """What is measured, and where it is kept."""

    scale: str
    out: Path
    seeds: int | None = None
    """Seeds of each case; those of the scale if it is null."""
    again: bool = False
    """Measure again what was measured before."""
    master: str | None = None
    """Spark's master, for what is measured in its tasks."""
    processes: int = os.cpu_count() or 2
    progress: Progress = silent

    def costs(self, processor_s: float, alone_s: float = 0, more_bytes: int = 0) -> Costs:
        """The costs of processor seconds that all processes share, then of those of one alone."""
        seconds = processor_s / self.processes + alone_s
        return Costs(seconds, self.processes * WORKER_BYTES + more_bytes)


@dataclass(frozen=True)
class MeasuredExperiment:
    """An experiment that code measures."""

    title: str
    about: str
    source: str
    notes: Sequence[str]
    cases: Callable[[str, int | None], Sequence[Any]]
    """Lists the cases of a scale, with so many seeds or the scale's own."""
    describe_cases: Callable[[str], Iterable[str]]
    estimate: Callable[[MeasuringRequest], Costs]
    """Estimates the costs of what was not measured before."""
    make_report: Callable[[MeasuringRequest], ExperimentReport]

    def describe(self, scale: str) -> Iterator[str]:
        """Yield the lines that `vizpub lab experiment show` prints."""
        yield from (self.title, "", " ".join(self.about.split()), "")
        yield from (f"source: {self.source}", *self.describe_cases(scale))
        yield from ("notes:", *(f"  {note}" for note in self.notes))


def measured_experiment(name: str) -> MeasuredExperiment:
    """Import the experiment of one of the `MEASURED_NAMES`."""
    module = import_module(f"vizpub.experiments.{_MODULES[name]}.report")
    experiment: MeasuredExperiment = module.EXPERIMENT
    return experiment


class MeasuredFile(Generic[_Case, _Row]):
    """A file of measured cases, one per line, each with its rows."""

    def __init__(self, path: Path, case: type[_Case], row: type[_Row]) -> None:
        self.path = path
        self._decoder = msgspec.json.Decoder(tuple[case, list[row]])  # type: ignore[valid-type]

    def read_rows(self) -> dict[_Case, list[_Row]]:
        """All measured cases."""
        rows: dict[_Case, list[_Row]] = {}
        for line in self._content().splitlines():
            try:
                case, measured = self._decoder.decode(line)
            except msgspec.DecodeError:  # the last line of a run that was killed
                continue
            rows[case] = measured
        return rows

    def _content(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def list_missing(self, cases: Sequence[_Case], request: MeasuringRequest) -> list[_Case]:
        """The cases that are to be measured."""
        rows = {} if request.again else self.read_rows()
        return [case for case in cases if case not in rows]

    def complete(
        self,
        cases: Sequence[_Case],
        measure: Callable[[Sequence[_Case]], Generator[tuple[_Case, list[_Row]]]],
        note: Callable[[_Case], str],
        request: MeasuringRequest,
    ) -> list[_Row]:
        """Measure the cases that the file lacks. Returns the rows of all cases, in their order."""
        if request.again:
            self.path.unlink(missing_ok=True)
        rows = self.read_rows()
        missing = [case for case in cases if case not in rows]
        # A line that was cut off by a kill must not swallow the next one.
        separator = b"" if self._content()[-1:] in (b"", b"\n") else b"\n"
        with closing(measure(missing)) as measured, self.path.open("ab") as out:
            for done, (case, of_case) in enumerate(measured, 1):
                rows[case] = of_case
                line = msgspec.json.encode(
                    (case, of_case), enc_hook=methodcaller("item")
                )  # numpy's
                out.write(separator + line + b"\n")
                separator = b""
                out.flush()
                request.progress("measure", done, len(missing), note(case))
        return [row for case in cases for row in rows[case]]

    def complete_in_processes(
        self,
        cases: Sequence[_Case],
        measure: Callable[[_Case], list[_Row]],
        note: Callable[[_Case], str],
        request: MeasuringRequest,
    ) -> list[_Row]:
        """Complete the file as `complete`, each case in one of several processes."""

        def measure_missing(missing: Sequence[_Case]) -> Generator[tuple[_Case, list[_Row]]]:
            with worker_pool(request.processes) as pool:
                futures = {pool.submit(measure, case): case for case in missing}
                for future in as_completed(futures):
                    yield futures[future], future.result()

        return self.complete(cases, measure_missing, note, request)


def rows_table(rows: Sequence[Any]) -> pa.Table:
    """A column for each field of the rows, which are dataclasses; those of their case first."""
    flat = [{**row.pop("case", {}), **row} for row in map(asdict, rows)]
    return pa.Table.from_pylist(flat)


@dataclass(frozen=True)
class RowEstimates:
    """Estimates over measured rows, each of which has a seed."""

    groups: Mapping[str, Sequence[Any]]
    """The rows of each group."""

    def of(self, metric: str, group: str) -> dict[int, float]:
        """A field, or the quotient of two fields, by seed; without unknown values."""
        values = {}
        for row in self.groups.get(group, ()):
            value, *divisors = (getattr(row, name) for name in metric.split(" / "))
            if value is not None:
                values[row.seed] = float(value / divisors[0] if divisors else value)
        return values

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """The mean of a group, or the ratio of two groups."""
        return estimate_term(lambda group: self.of(metric, group), term)

    def difference(self, metric: str, terms: tuple[str, str], during: Share = WHOLE) -> Estimate:
        """The first term minus the second."""
        return estimate_difference(lambda group: self.of(metric, group), terms)


def rows_of_means(
    groups: Mapping[tuple[str, ...], Sequence[Any]], measures: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield a table's rows: the names of each group, and its mean of each measure as text."""
    for names, rows in groups.items():
        estimates = RowEstimates({"": rows})
        yield (*names, *(estimate_text(estimates.estimate(name, "")) for name in measures))
