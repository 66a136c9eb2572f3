"""The report of an experiment: results and published values, tables, figures and costs."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv

from vizpub.analytics.comparison.tables import compare_groups
from vizpub.analytics.figures import save
from vizpub.experiments.claims import JudgedClaim, summarize_claims
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
from vizpub.questions.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vizpub.experiments.definition import Experiment
    from vizpub.experiments.runs import PlannedRun

_FORMS = ("png", "svg")
_UNTOLD = (
    "Their 95 % intervals are partly within the bounds of the claim and partly outside; "
    "more runs (`--runs N`) make intervals narrower."
)
_WIDE = 4
"""Up to this many groups have a column each; more have a row each."""


@dataclass(frozen=True)
class ExperimentReport:
    """What the report of any experiment consists of."""

    title: str
    about: str
    source: str
    summary: str
    """How much is met."""
    circumstances: str
    """Scale, seeds and the like."""
    claims: Sequence[JudgedClaim]
    notes: Sequence[str]
    sections: Mapping[str, Iterable[str]]
    """What follows, as lines of Markdown by title."""
    tables: Mapping[str, pa.Table]
    """CSV files by name."""
    figures: Mapping[str, Figure]

    def write(self, out: Path) -> Path:
        """Write report.md, figures/ and the tables. Returns the path of report.md."""
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, figure in self.figures.items():
            for form in _FORMS:
                save(figure, out / "figures" / f"{name}.{form}", form)
        for name, table in self.tables.items():
            pa.csv.write_csv(table, out / f"{name}.csv")
        published = [claim for claim in self.claims if not claim.expected]
        sections: dict[str, Iterable[str]] = {
            "Results and published values": _claim_lines(published, "published")
            if published
            else ["There are no published values to compare with."]
        }
        if expected := [claim for claim in self.claims if claim.expected]:
            sections["Results and our own expectations"] = _claim_lines(expected, "expected")
        if self.notes:
            sections["Notes"] = (f"- {note}" for note in self.notes)
        lines = [f"# {self.title}", "", self.about.strip(), "", f"Source: {self.source}", ""]
        lines.append(f"**{self.summary}** ({self.circumstances}).")
        for title, section in (*sections.items(), *self.sections.items()):
            lines += ["", f"## {title}", "", *section]
        with replacing(out / "report.md") as new:
            new.write_text("\n".join(lines) + "\n", "utf-8")
        return out / "report.md"


def claims_table(claims: Sequence[JudgedClaim]) -> pa.Table:
    """A row for each claim."""
    names = [field.name for field in fields(JudgedClaim)]
    return pa.table({name: [getattr(claim, name) for claim in claims] for name in names})


def _claim_lines(claims: Sequence[JudgedClaim], claimed: str) -> Iterator[str]:
    """A table of the claims, which are `claimed`: published or expected."""
    rows, places, untold = [], defaultdict[str, list[str]](list), []
    for place, claim in enumerate(claims, 1):
        outcome = bold_outcome(claim.outcome)
        outcome += f" ({claim.deviation})" if claim.deviation else ""
        rows.append((str(place), claim.what, claim.source, claim.published, claim.ours, outcome))
        if claim.outcome == "not met":
            why = claim.why or f"{claimed} is {claim.published}, ours {claim.ours}"
            places[" ".join(why.split())].append(str(place))
        if claim.outcome == "cannot be told":
            untold.append(str(place))
    yield from markdown_table(("", "claim", "source", claimed, "ours", ""), rows)
    if places:
        yield from ("", "Not met, and why:", "")
        yield from (f"- {', '.join(numbers)}: {why}" for why, numbers in places.items())
    if untold:
        yield from ("", f"Cannot be told: {', '.join(untold)}. {_UNTOLD}")


def bold_outcome(outcome: str) -> str:
    """The outcome as Markdown, in bold if a claim is not met."""
    return f"**{outcome}**" if outcome == "not met" else outcome


@dataclass(frozen=True)
class Findings:
    """The results of an experiment that makes runs."""

    experiment: Experiment
    runs: Sequence[PlannedRun]
    results: ExperimentResults
    judged: Sequence[JudgedClaim]

    @property
    def groups(self) -> list[str]:
        """The groups that were run, in their order."""
        return list(dict.fromkeys(run.group.name for run in self.runs))

    @property
    def summary(self) -> str:
        """Number of claims that are met, as text."""
        return summarize_claims(self.judged)


def evaluate_runs(experiment: Experiment, runs: Sequence[PlannedRun]) -> Findings:
    """Compare the complete runs with the published values."""
    replicas = [replica for run in runs if (replica := run.replica())]
    results = ExperimentResults(replicas, own_metrics_of(experiment.own_functions))
    content = experiment.content
    judged = []
    claims = [*((claim, False) for claim in content.published)]
    claims += [(claim, True) for claim in content.expected]
    for claim, is_expected in claims:
        result = replace(claim.judge(results), expected=is_expected)
        if claim.only not in (None, experiment.scale) and result.outcome != "unknown":
            deviation = f"judged at scale {claim.only}"
            result = replace(result, outcome="shown", deviation=deviation)
        judged.append(result)
    return Findings(experiment, runs, results, judged)


def write_report(findings: Findings, out: Path) -> Path:
    """Write report.md, figures/ and the tables as CSV. Returns the path of report.md."""
    content = findings.experiment.content
    (out / "figures").mkdir(parents=True, exist_ok=True)
    figures = list(_draw(findings, out / "figures"))
    run_metrics = findings.results.run_metrics(content.metrics, content.window)
    values = compare_groups(run_metrics, findings.results.describe(content.metrics))
    seeds = list(dict.fromkeys(run.plan.seed for run in findings.runs))
    word = "seed" if len(seeds) == 1 else "seeds"
    return ExperimentReport(
        content.title,
        content.about,
        content.source,
        findings.summary,
        f"scale `{findings.experiment.scale}`, {word} {', '.join(map(str, seeds))}",
        findings.judged,
        content.notes,
        {
            "Metrics": _metric_lines(findings, values),
            "Figures": _figure_lines(figures),
            "Runs": _setup_lines(findings),
            "Cost": _cost_lines(findings),
        },
        {
            "values": values,
            "published": claims_table(findings.judged),
            "runs": _runs_table(findings.runs),
        },
        {figure.name: figure.figure for figure in figures},
    ).write(out)


def _draw(findings: Findings, folder: Path) -> Iterator[DrawnFigure]:
    """The figures; what they show is written beside them."""
    for drawing in findings.experiment.content.figures:
        for drawn in drawing.draw(findings.results, findings.experiment.groups):
            pa.csv.write_csv(drawn.numbers, folder / f"{drawn.name}.csv")
            if drawn.message:
                replica, message = drawn.message
                write_message(replica.run, message, folder / f"{drawn.name}.gexf")
            yield drawn


def _runs_table(runs: Sequence[PlannedRun]) -> pa.Table:
    """A row for each run and kind of message."""
    rows = [
        (run.name, run.group.name, run.plan.seed, result.seconds, result.peers, *counts)
        for run in runs
        if (result := run.result())
        for kind in result.messages
        for counts in [(kind.kind, kind.traffic, kind.sent, kind.bytes, kind.received, kind.lost)]
    ]
    names = ("run", "group", "seed", "seconds", "peers", "kind", "traffic", "sent", "bytes",
             "received", "lost")  # fmt: skip
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


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
        (metric.name, f"{metric.name} ({metric.unit})" if metric.unit else metric.name)
        for metric in findings.results.describe(content.metrics)
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
