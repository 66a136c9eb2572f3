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

from vizpub.analytics.comparison.tables import compare_groups
from vizpub.analytics.figures import save
from vizpub.experiments.claims import Claim, ClaimVerdict
from vizpub.experiments.definition import own_metrics_of
from vizpub.experiments.drawings import DrawnFigure
from vizpub.experiments.formatting import (
    UNKNOWN,
    duration_text,
    estimate_text,
    markdown_table,
    number_text,
    size_text,
)
from vizpub.experiments.results import ExperimentResults
from vizpub.graphstore.gexf.export import export_message, gexf_output
from vizpub.graphstore.gexf.table_rows import TableRows
from vizpub.machine.files import replacing
from vizpub.model.wording import amount
from vizpub.questions.run import Run

if TYPE_CHECKING:
    from vizpub.analytics.comparison.metrics import Metric
    from vizpub.experiments.definition import Experiment
    from vizpub.experiments.runs import PlannedRun

_FORMS = ("png", "svg")
_WIDE = 4
"""Up to this many groups have a column each; more have a row each."""
_PUBLISHED = ("what", "source", "published", "ours", "outcome", "deviation", "why")


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what our runs say about it."""

    claim: Claim
    verdict: ClaimVerdict


@dataclass(frozen=True)
class Findings:
    """The results of an experiment."""

    experiment: Experiment
    runs: Sequence[PlannedRun]
    results: ExperimentResults
    judged: Sequence[JudgedClaim]

    @property
    def groups(self) -> list[str]:
        """The groups that were run, in their order."""
        return list(dict.fromkeys(run.group.name for run in self.runs))

    def count(self, outcome: str) -> int:
        """Number of claims with this outcome."""
        return sum(judged.verdict.outcome == outcome for judged in self.judged)

    @property
    def summary(self) -> str:
        """Number of claims that are met, as text."""
        met, missed = self.count("met"), self.count("not met")
        judged = [f"{met} of {amount(met + missed, 'claim')} met"] if met + missed else []
        rest = [f"{self.count(o)} {o}" for o in ("shown", "unknown") if self.count(o)]
        return ", ".join([*judged, *rest]) or "nothing to judge"


def evaluate_runs(experiment: Experiment, runs: Sequence[PlannedRun]) -> Findings:
    """Compare the complete runs with the published values."""
    replicas = [replica for run in runs if (replica := run.replica())]
    results = ExperimentResults(replicas, own_metrics_of(experiment.own))
    judged = [
        JudgedClaim(claim, _verdict(claim, experiment, results))
        for claim in experiment.content.published
    ]
    return Findings(experiment, runs, results, judged)


def _verdict(claim: Claim, experiment: Experiment, results: ExperimentResults) -> ClaimVerdict:
    verdict = claim.verdict(results)
    if claim.only in (None, experiment.scale) or verdict.outcome == "unknown":
        return verdict
    return ClaimVerdict(verdict.ours, "shown", f"judged at scale {claim.only}")


def write_report(findings: Findings, out: Path) -> Path:
    """Write report.md, figures/ and the tables as CSV. Returns the path of report.md."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    figures = list(_draw(findings, out / "figures"))
    table = _values_table(findings)
    pa.csv.write_csv(table, out / "values.csv")
    pa.csv.write_csv(_published_table(findings.judged), out / "published.csv")
    pa.csv.write_csv(_runs_table(findings.runs), out / "runs.csv")
    text = "\n".join(_report_lines(findings, table, figures))
    with replacing(out / "report.md") as new:
        new.write_text(f"{text}\n", "utf-8")
    return out / "report.md"


def _draw(findings: Findings, folder: Path) -> Iterator[DrawnFigure]:
    for drawing in findings.experiment.content.figures:
        for drawn in drawing.draw(findings.results, findings.experiment.groups):
            for form in _FORMS:
                save(drawn.figure, folder / f"{drawn.name}.{form}", form)
            pa.csv.write_csv(drawn.numbers, folder / f"{drawn.name}.csv")
            if drawn.message:
                replica, message = drawn.message
                write_message(replica.run, message, folder / f"{drawn.name}.gexf")
            yield drawn


def _values_table(findings: Findings) -> pa.Table:
    """Every metric of every group, as a table of `compare_groups`."""
    content = findings.experiment.content
    run_metrics = findings.results.run_metrics(content.metrics, content.window)
    return compare_groups(run_metrics, findings.results.describe(content.metrics))


def _published_table(judged: Sequence[JudgedClaim]) -> pa.Table:
    rows = [
        (
            j.claim.what,
            j.claim.source,
            j.claim.published_text,
            j.verdict.ours,
            j.verdict.outcome,
            j.verdict.deviation,
            j.claim.why,
        )
        for j in judged
    ]
    return _table(_PUBLISHED, rows)


def _runs_table(runs: Sequence[PlannedRun]) -> pa.Table:
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


def _report_lines(
    findings: Findings, table: pa.Table, figures: Sequence[DrawnFigure]
) -> Iterator[str]:
    content = findings.experiment.content
    yield f"# {content.title}"
    yield from ("", content.about.strip(), "", f"Source: {content.source}", "")
    yield f"**{findings.summary}** (scale `{findings.experiment.scale}`, {_seeds(findings)})."
    yield from _section("Results and published values", _claim_lines(findings.judged))
    if content.notes:
        yield from _section("Notes", (f"- {note}" for note in content.notes))
    yield from _section("Metrics", _metric_lines(findings, table))
    yield from _section("Figures", _figure_lines(figures))
    yield from _section("Runs", _setup_lines(findings))
    yield from _section("Cost", _cost_lines(findings))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "", *lines)


def _seeds(findings: Findings) -> str:
    seeds = list(dict.fromkeys(run.plan.seed for run in findings.runs))
    word = "seed" if len(seeds) == 1 else "seeds"
    return f"{word} {', '.join(map(str, seeds))}"


def _claim_lines(judged: Sequence[JudgedClaim]) -> Iterator[str]:
    if not judged:
        yield "There are no published values to compare with."
        return
    rows = [
        (
            str(place),
            j.claim.what,
            j.claim.source,
            j.claim.published_text,
            j.verdict.ours,
            _outcome_text(j.verdict),
        )
        for place, j in enumerate(judged, 1)
    ]
    yield from markdown_table(("", "claim", "source", "published", "ours", ""), rows)
    if whys := list(_reason_lines(judged)):
        yield from ("", "Not met, and why:", "", *whys)


def _outcome_text(verdict: ClaimVerdict) -> str:
    word = f"**{verdict.outcome}**" if verdict.outcome == "not met" else verdict.outcome
    return f"{word} ({verdict.deviation})" if verdict.deviation else word


def _reason_lines(judged: Sequence[JudgedClaim]) -> Iterator[str]:
    """The claims that are not met, grouped by reason."""
    places: dict[str, list[str]] = {}
    for place, item in enumerate(judged, 1):
        if item.verdict.outcome == "not met":
            why = (
                item.claim.why
                or f"published is {item.claim.published_text}, ours {item.verdict.ours}"
            )
            places.setdefault(" ".join(why.split()), []).append(str(place))
    yield from (f"- {', '.join(numbers)}: {why}" for why, numbers in places.items())


def _metric_lines(findings: Findings, table: pa.Table) -> Iterator[str]:
    content = findings.experiment.content
    if content.window != (0.0, 1.0):
        share = " to ".join(f"{100 * edge:g} %" for edge in content.window)
        yield from (f"Over {share} of each run.", "")
    cells: dict[tuple[str, str], str] = {}
    about: dict[str, str] = {}
    for row in table.to_pylist():
        about[row["metric"]] = row["over"]
        if row["estimate"] == "mean":
            estimate = findings.results.estimate(row["metric"], row["group"], content.window)
            cells[row["metric"], row["group"]] = estimate_text(estimate)
    names = [
        (metric_.name, _with_unit(metric_))
        for metric_ in findings.results.describe(content.metrics)
    ]
    if len(findings.groups) <= _WIDE:
        rows = [
            (
                shown,
                about.get(metric, ""),
                *(cells.get((metric, g), UNKNOWN) for g in findings.groups),
            )
            for metric, shown in names
        ]
        yield from markdown_table(("metric", "over", *findings.groups), rows)
    else:
        across = [
            (group, *(cells.get((metric, group), UNKNOWN) for metric, _ in names))
            for group in findings.groups
        ]
        yield from markdown_table(("", *(shown for _, shown in names)), across)
    yield from (
        "",
        "Means over the runs with 95 % intervals (Student's t). All values: values.csv.",
    )


def _with_unit(metric: Metric) -> str:
    return f"{metric.name} ({metric.unit})" if metric.unit else metric.name


def _figure_lines(figures: Sequence[DrawnFigure]) -> Iterator[str]:
    for figure in figures:
        yield f"![{figure.name}](figures/{figure.name}.png)"
        forms = [*(["GEXF"] if figure.message else []), "SVG", "CSV"]
        links = ", ".join(f"[{form}](figures/{figure.name}.{form.lower()})" for form in forms)
        yield from ("", f"{figure.caption} ({links})", "")


def _setup_lines(findings: Findings) -> Iterator[str]:
    content = findings.experiment.content
    yield from markdown_table(("system", "type", "counted layers", "parameters"), [
        (s.name, s.system, ", ".join(s.layers or ("all",)), _parameters(s.parameters))
        for s in content.systems
    ])  # fmt: skip
    yield from ("", f"In all runs: {_parameters(content.world)}.")
    if any(setting.name for setting in content.settings):
        x = content.axis or "x"
        rows = [(s.name, number_text(s.x), _parameters(s.parameters)) for s in content.settings]
        yield from ("", *markdown_table(("setting", x, "parameters"), rows))
    if content.data:
        yield from ("", "Data that is not shipped:", "")
        yield from (f"- `{data.file}`: {data.source}" for data in content.data)


def _parameters(parameters: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in parameters.items()) or "defaults"


def _cost_lines(findings: Findings) -> Iterator[str]:
    heads = ("group", "runs", "simulation", "reports", "ingest", "run on disk")
    rows = []
    for group in findings.groups:
        group_runs = [run for run in findings.runs if run.group.name == group]
        seconds = [result.seconds for run in group_runs if (result := run.result())]
        costs = [spent for run in group_runs if (spent := run.costs())]
        rows.append((
            group,
            str(len(group_runs)),
            duration_text(_mean(seconds)),
            size_text(_mean([c.reports_bytes for c in costs])),
            duration_text(_mean([c.ingest_seconds for c in costs])),
            size_text(_mean([c.run_bytes for c in costs])),
        ))  # fmt: skip
    yield from markdown_table(heads, rows)
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
