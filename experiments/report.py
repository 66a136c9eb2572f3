"""The report of an experiment: results and published values, tables, figures and costs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv

from vizpub.analytics.comparison.tables import compare
from vizpub.analytics.figures import save
from vizpub.experiments.claims import Claim, Verdict
from vizpub.experiments.definition import own_of
from vizpub.experiments.drawings import Drawn
from vizpub.experiments.formatting import UNKNOWN, duration, estimate_text, markdown, number, size
from vizpub.experiments.results import Results
from vizpub.graphstore.gexf.export import export_message, gexf_output
from vizpub.graphstore.gexf.table_rows import TableRows
from vizpub.machine.files import replacing
from vizpub.model.wording import amount
from vizpub.questions.run import Run

if TYPE_CHECKING:
    from vizpub.analytics.comparison.metrics import Metric
    from vizpub.experiments.definition import Experiment
    from vizpub.experiments.runs import Planned

_FORMS = ("png", "svg")
_WIDE = 4
"""Up to this many groups have a column each; more have a row each."""
_PUBLISHED = ("what", "source", "published", "ours", "outcome", "deviation", "why")


@dataclass(frozen=True)
class Judged:
    """A claim and what our runs say about it."""

    claim: Claim
    verdict: Verdict


@dataclass(frozen=True)
class Findings:
    """The results of an experiment."""

    experiment: Experiment
    runs: Sequence[Planned]
    results: Results
    judged: Sequence[Judged]

    @property
    def groups(self) -> list[str]:
        """The groups that were run, in their order."""
        return list(dict.fromkeys(run.group.name for run in self.runs))

    def count(self, outcome: str) -> int:
        """Number of claims with this outcome."""
        return sum(one.verdict.outcome == outcome for one in self.judged)

    @property
    def summary(self) -> str:
        """How many claims are met, as text."""
        met, missed = self.count("met"), self.count("not met")
        judged = [f"{met} of {amount(met + missed, 'claim')} met"] if met + missed else []
        rest = [f"{self.count(o)} {o}" for o in ("shown", "unknown") if self.count(o)]
        return ", ".join([*judged, *rest]) or "nothing to judge"


def findings(experiment: Experiment, runs: Sequence[Planned]) -> Findings:
    """Compare the complete runs with the published values."""
    replicas = [replica for run in runs if (replica := run.replica())]
    results = Results(replicas, own_of(experiment.own))
    judged = [
        Judged(claim, _verdict(claim, experiment, results))
        for claim in experiment.content.published
    ]
    return Findings(experiment, runs, results, judged)


def _verdict(claim: Claim, experiment: Experiment, results: Results) -> Verdict:
    verdict = claim.verdict(results)
    if claim.only in (None, experiment.scale) or verdict.outcome == "unknown":
        return verdict
    return Verdict(verdict.ours, "shown", f"judged at scale {claim.only}")


def write_report(found: Findings, out: Path) -> Path:
    """Write report.md, figures/ and the tables as CSV. Returns the path of report.md."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    drawn = list(_draw(found, out / "figures"))
    table = _values(found)
    pa.csv.write_csv(table, out / "values.csv")
    pa.csv.write_csv(_published_table(found.judged), out / "published.csv")
    pa.csv.write_csv(_runs_table(found.runs), out / "runs.csv")
    text = "\n".join(_lines(found, table, drawn))
    with replacing(out / "report.md") as new:
        new.write_text(f"{text}\n", "utf-8")
    return out / "report.md"


def _draw(found: Findings, folder: Path) -> Iterator[Drawn]:
    for drawing in found.experiment.content.figures:
        for drawn in drawing.drawn(found.results, found.experiment.groups):
            for form in _FORMS:
                save(drawn.figure, folder / f"{drawn.name}.{form}", form)
            pa.csv.write_csv(drawn.numbers, folder / f"{drawn.name}.csv")
            if drawn.message:
                replica, message = drawn.message
                write_message(replica.run, message, folder / f"{drawn.name}.gexf")
            yield drawn


def _values(found: Findings) -> pa.Table:
    """Every metric of every group, as a table of vizpub.analytics.comparison.tables.compare."""
    content = found.experiment.content
    measured = found.results.measured(content.metrics, content.window)
    return compare(measured, found.results.described(content.metrics))


def _published_table(judged: Sequence[Judged]) -> pa.Table:
    rows = [
        (j.claim.what, j.claim.source, j.claim.published, *_said(j.verdict), j.claim.why)
        for j in judged
    ]
    return _table(_PUBLISHED, rows)


def _said(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.ours, verdict.outcome, verdict.deviation


def _runs_table(runs: Sequence[Planned]) -> pa.Table:
    """A row for each run and kind of message."""
    rows = [
        (run.name, run.group.name, run.plan.seed, result.seconds, result.peers, *counts)
        for run in runs
        if (result := run.result())
        for kind in result.messages
        for counts in [(kind.kind, kind.traffic, kind.sent, kind.bytes, kind.received, kind.lost)]
    ]
    names = ("run", "group", "seed", "seconds", "peers", "kind", "traffic", "sent", "bytes")
    return _table((*names, "received", "lost"), rows)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


def _lines(found: Findings, table: pa.Table, drawn: Sequence[Drawn]) -> Iterator[str]:
    content = found.experiment.content
    yield f"# {content.title}"
    yield from ("", content.about.strip(), "", f"Source: {content.source}", "")
    yield f"**{found.summary}** (scale `{found.experiment.scale}`, {_seeds(found)})."
    yield from _section("Results and published values", _judgements(found.judged))
    if content.notes:
        yield from _section("Notes", (f"- {note}" for note in content.notes))
    yield from _section("Metrics", _metrics(found, table))
    yield from _section("Figures", _figures(drawn))
    yield from _section("Runs", _setup(found))
    yield from _section("Cost", _costs(found))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "", *lines)


def _seeds(found: Findings) -> str:
    seeds = list(dict.fromkeys(run.plan.seed for run in found.runs))
    word = "seed" if len(seeds) == 1 else "seeds"
    return f"{word} {', '.join(map(str, seeds))}"


def _judgements(judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        yield "There are no published values to compare with."
        return
    rows = [
        (
            str(place),
            j.claim.what,
            j.claim.source,
            j.claim.published,
            j.verdict.ours,
            _bold(j.verdict),
        )
        for place, j in enumerate(judged, 1)
    ]
    yield from markdown(("", "claim", "source", "published", "ours", ""), rows)
    if whys := list(_whys(judged)):
        yield from ("", "Not met, and why:", "", *whys)


def _bold(verdict: Verdict) -> str:
    word = f"**{verdict.outcome}**" if verdict.outcome == "not met" else verdict.outcome
    return f"{word} ({verdict.deviation})" if verdict.deviation else word


def _whys(judged: Sequence[Judged]) -> Iterator[str]:
    """The claims that are not met, grouped by reason."""
    places: dict[str, list[str]] = {}
    for place, one in enumerate(judged, 1):
        if one.verdict.outcome == "not met":
            why = one.claim.why or f"published is {one.claim.published}, ours {one.verdict.ours}"
            places.setdefault(" ".join(why.split()), []).append(str(place))
    yield from (f"- {', '.join(numbers)}: {why}" for why, numbers in places.items())


def _metrics(found: Findings, table: pa.Table) -> Iterator[str]:
    content = found.experiment.content
    if content.window != (0.0, 1.0):
        share = " to ".join(f"{100 * edge:g} %" for edge in content.window)
        yield from (f"Over {share} of each run.", "")
    cells: dict[tuple[str, str], str] = {}
    about: dict[str, str] = {}
    for row in table.to_pylist():
        about[row["metric"]] = row["over"]
        if row["estimate"] == "mean":
            estimate = found.results.estimate(row["metric"], row["group"], content.window)
            cells[row["metric"], row["group"]] = estimate_text(estimate)
    names = [(of.name, _with_unit(of)) for of in found.results.described(content.metrics)]
    if len(found.groups) <= _WIDE:
        rows = [
            (shown, about.get(metric, ""), *(cells.get((metric, g), UNKNOWN) for g in found.groups))
            for metric, shown in names
        ]
        yield from markdown(("metric", "over", *found.groups), rows)
    else:
        across = [
            (group, *(cells.get((metric, group), UNKNOWN) for metric, _ in names))
            for group in found.groups
        ]
        yield from markdown(("", *(shown for _, shown in names)), across)
    yield from (
        "",
        "Means over the runs with 95 % intervals (Student's t). All values: values.csv.",
    )


def _with_unit(of: Metric) -> str:
    return f"{of.name} ({of.unit})" if of.unit else of.name


def _figures(drawn: Sequence[Drawn]) -> Iterator[str]:
    for one in drawn:
        yield f"![{one.name}](figures/{one.name}.png)"
        also = [*(["GEXF"] if one.message else []), "SVG", "CSV"]
        links = ", ".join(f"[{form}](figures/{one.name}.{form.lower()})" for form in also)
        yield from ("", f"{one.caption} ({links})", "")


def _setup(found: Findings) -> Iterator[str]:
    content = found.experiment.content
    yield from markdown(("system", "type", "counted layers", "parameters"), [
        (s.name, s.system, ", ".join(s.layers or ("all",)), _parameters(s.parameters))
        for s in content.systems
    ])  # fmt: skip
    yield from ("", f"In all runs: {_parameters(content.world)}.")
    if any(setting.name for setting in content.settings):
        x = content.axis or "x"
        rows = [(s.name, number(s.x), _parameters(s.parameters)) for s in content.settings]
        yield from ("", *markdown(("setting", x, "parameters"), rows))
    if content.data:
        yield from ("", "Data that is not shipped:", "")
        yield from (f"- `{data.file}`: {data.source}" for data in content.data)


def _parameters(given: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in given.items()) or "defaults"


def _costs(found: Findings) -> Iterator[str]:
    heads = ("group", "runs", "simulation", "reports", "ingest", "run on disk")
    rows = []
    for group in found.groups:
        own = [run for run in found.runs if run.group.name == group]
        seconds = [result.seconds for run in own if (result := run.result())]
        costs = [spent for run in own if (spent := run.costs())]
        rows.append((
            group,
            str(len(own)),
            duration(_mean(seconds)),
            size(_mean([c.reports_bytes for c in costs])),
            duration(_mean([c.ingest_seconds for c in costs])),
            size(_mean([c.run_bytes for c in costs])),
        ))  # fmt: skip
    yield from markdown(heads, rows)
    yield ""
    yield (
        f"Means per run, simulated in parallel on {os.cpu_count()} cores ({platform.machine()}, "
        f"Python {platform.python_version()}, vizpub {version('vizpub')}). Messages by kind: "
        "runs.csv."
    )


def _mean(values: Sequence[float]) -> Any:
    return sum(values) / len(values) if values else None


def write_message(run: Run, message: str, path: Path) -> None:
    """Write the GEXF file of `vizpub export gexf RUN --message MESSAGE`, from the run store.

    Raises: UnknownName for the message, UseError if the file cannot be written.
    """
    with gexf_output(path) as out:
        export_message(TableRows(run.stored), message, out)
