"""`vizpub compare`: runs, systems and settings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.completion import complete_plotted, complete_runs
from cli.options import Output, Window, comma_list, command
from cli.output import Rows, output_format, show, whole_file
from cli.settings import Settings
from model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from ingest.measured import Answer, Question
    from ingest.run import Run

_WIDE = 4
"""Up to so many groups stand beside one another, more below one another."""
_MOST = 7
"""From so many decimals on a value is told by its first six digits."""
_OVER = ("runs", "intervals")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", rich_help_panel="Metrics")(command(compare))


@dataclass(frozen=True)
class Comparing:
    """What is compared, and which runs are taken together."""

    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of the metrics, or figures of whole runs; without it the usual ones.",
            autocompletion=complete_plotted,
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="protocol|run|PARAM,…",
            help="What sets groups apart; without it the protocol and what parameters differ.",
        ),
    ] = None
    over: Annotated[
        str,
        typer.Option(metavar="|".join(_OVER), help="A value per run, or one in every interval."),
    ] = "runs"
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it too: a .png, .svg or .pdf."),
    ] = None


def compare(
    settings: Settings,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Names, or patterns as 'scribe-*'.",
            autocompletion=complete_runs,
        ),
    ],
    comparing: Comparing,
    window: Window,
    output: Output,
) -> None:
    """Compare runs, systems and seeds: means with 95 % confidence intervals.

    Runs that differ in nothing but the seed are replicates of one group. Two groups are also
    set against each other, pairwise where both have the same seeds. docs/compare.md says how
    every number comes about.

    Examples:

    ```
    vizpub compare 'poldercast-*' 'scribe-*'
    vizpub compare 'poldercast-*' 'scribe-*' --metrics diameter,hit_ratio --from 100 -o table.md
    vizpub compare 'scribe-*' --by churn --format csv
    vizpub compare 'poldercast-*' 'scribe-*' --over intervals -o series.csv --plot series.pdf
    ```
    """
    from ingest.measured import measured

    form = _figure_format(comparing)
    opened = _opened(settings, runs)
    found = measured(opened, _question(opened, comparing, window))
    table = _table(found, comparing)
    if comparing.plot:
        from analytics.figures import save

        figure = _figure(found, table, comparing)
        with whole_file(comparing.plot) as place:
            save(figure, place, form)
        settings.say(f"wrote {comparing.plot}")
    show(_rows(table, comparing, output), output, settings)
    settings.say(
        f"intervals {found.first} to {found.last}; means over runs, 95 % confidence intervals"
    )
    for note in found.notes:
        settings.say(f"note: {note}")


def _figure_format(comparing: Comparing) -> str:
    """The format of the figure, if any. Raises: UseError, before anything is read."""
    if comparing.over not in _OVER:
        raise UnknownName("way to compare", comparing.over, _OVER)
    if comparing.plot is None:
        return ""
    form = comparing.plot.suffix.lower().removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise UseError(f"{comparing.plot}: a figure is written as .png, .svg, .pdf")
    return form


def _opened(settings: Settings, names: Sequence[str]) -> list[Run]:
    from ingest.run import Run

    chosen = dict.fromkeys(run for name in names for run in _matching(settings, name))
    return [Run.open(settings.workspace, name) for name in chosen]


def _matching(settings: Settings, name: str) -> list[str]:
    """The runs a name or a pattern stands for. Raises: UnknownName where there is none."""
    if not any(character in name for character in "*?["):
        return [name]
    from ingest.store import run_names

    there = run_names(settings.workspace)
    if found := [run for run in there if fnmatchcase(run, name)]:
        return found
    raise UnknownName("run like", name, there, f"vizpub runs list, in {settings.workspace}")


def _question(runs: Sequence[Run], comparing: Comparing, window: Window) -> Question:
    from ingest.measured import Question, common_clock

    return Question(
        comma_list(comparing.metrics),
        comma_list(comparing.by),
        window.intervals(common_clock(runs)),
        comparing.over == "intervals",
    )


def _table(found: Answer, comparing: Comparing) -> pa.Table:
    from analytics.comparison import compare, compare_series

    if comparing.over == "intervals":
        return compare_series(found.runs, found.metrics, found.first)
    return compare(found.runs, found.metrics)


def _figure(found: Answer, table: pa.Table, comparing: Comparing) -> Figure:
    from analytics.figures.comparison import comparison, comparison_series

    if comparing.over == "intervals":
        return comparison_series(table)
    return comparison(table, found.runs)


def _rows(table: pa.Table, comparing: Comparing, output: Output) -> Rows:
    """For programs a row per estimate; for people one per metric, where there is room."""
    records = table.to_pylist()
    groups = dict.fromkeys(r["group"] for r in records if r.get("estimate") == "mean")
    readable = output_format(output) in ("table", "md") and comparing.over == "runs"
    if readable and len(groups) <= _WIDE:
        return _side_by_side(records)
    if readable:
        return _below_one_another(records)
    return Rows.of_arrow(table.column_names, table.to_batches())


def _side_by_side(records: Sequence[dict[str, Any]]) -> Rows:
    """A row per metric, a column per group and for how two groups differ."""
    heads = list(dict.fromkeys(_head(r) for r in records))
    by_metric: dict[str, dict[str, Any]] = {}
    for record in records:
        row = by_metric.setdefault(
            record["metric"], dict.fromkeys(("metric", *heads, "unit", "over"))
        )
        row |= {name: record[name] for name in ("metric", "unit", "over")}
        row[_head(record)] = told(record)
    return Rows.of_records(list(by_metric.values()), ("metric", *heads, "unit", "over"))


def _below_one_another(records: Sequence[dict[str, Any]]) -> Rows:
    names = ("metric", "group", "mean ± 95 %", "runs", "unit", "over")
    rows = [(r["metric"], r["group"], told(r), r["runs"], r["unit"], r["over"]) for r in records]
    return Rows(names, rows)


def _head(record: dict[str, Any]) -> str:
    """'gossip (3 runs)', 'gossip / tree, paired'."""
    if record["estimate"] != "mean":
        paired = ", paired" if record["estimate"].startswith("paired") else ""
        return f"{record['group']}{paired}"
    return f"{record['group']} ({record['runs']} run{'s' if record['runs'] != 1 else ''})"


def told(record: dict[str, Any]) -> str | None:
    """An estimate for people: '22.4 ± 1.3', a ratio or difference '21.1 [19.8, 22.6]'.

    As many digits as its interval supports; how many runs it is of where some do not know it.
    """
    value, low, high = record["value"], record["low"], record["high"]
    if value is None:
        return None
    runs = f" (n = {record['n']})" if record["n"] < record["runs"] else ""
    if low is None:
        return f"{value:.6g}{runs}"
    half = (high - low) / 2
    if record["estimate"] == "mean":
        return f"{_rounded(value, half)} ± {_rounded(half, half)}{runs}"
    bounds = f"[{_rounded(low, half)}, {_rounded(high, half)}]"
    return f"{_rounded(value, half)} {bounds}{runs}"


def _rounded(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    decimals = 1 - floor(log10(half)) if half else _MOST
    if decimals >= _MOST:
        return f"{value:.6g}"
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
