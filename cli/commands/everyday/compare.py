"""`vizpub compare`: runs, systems and settings side by side."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.completion import complete_plotted, complete_runs
from vizpub.cli.options import Output, Window, comma_list, command
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import Rows, output_format, show, to_stdout, whole_file
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.analytics.comparison.per_run import Answer, Question
    from vizpub.questions.run import Run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", rich_help_panel="Metrics")(command(compare))


@dataclass(frozen=True)
class _Comparing:
    """What is compared, and how runs are grouped."""

    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of the metrics, or measures of whole runs (default: the usual ones).",
            autocompletion=complete_plotted,
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="protocol|run|PARAM,…",
            help="What distinguishes groups (default: protocol and parameters that differ).",
        ),
    ] = None
    over: Annotated[
        str,
        typer.Option(
            metavar="runs|intervals|PARAM",
            help="One value per run, per interval, or per value of a parameter.",
        ),
    ] = "runs"
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw a figure: a .png, .svg or .pdf file."),
    ] = None


def compare(
    settings: Settings,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Names, or patterns such as 'scribe-*'.",
            autocompletion=complete_runs,
        ),
    ],
    comparing: _Comparing,
    window: Window,
    output: Output,
) -> None:
    """Compare runs, systems and seeds: means with 95 % confidence intervals.

    Runs that differ only in the seed are replicates of one group. Two groups are also
    compared with each other, in pairs of runs if both have the same seeds. docs/compare.md explains
    how each number is computed.

    Examples:

    ```
    vizpub compare 'poldercast-*' 'scribe-*'
    vizpub compare 'poldercast-*' 'scribe-*' --metrics diameter,hit_ratio --from 100 -o table.md
    vizpub compare 'poldercast-*' 'scribe-*' --over churn --plot churn.pdf
    vizpub compare 'poldercast-*' 'scribe-*' --over intervals -o series.csv --plot series.pdf
    ```
    """
    from vizpub.analytics.comparison.per_run import measured

    form = _figure_format(comparing)
    opened = _opened(settings, runs)
    with settings.progress() as progress:
        found = measured(opened, _question(opened, comparing, window), progress)
    table = _table(found, comparing.over)
    if comparing.plot:
        from vizpub.analytics.figures import save

        figure = _figure(found, table, comparing.over)
        with whole_file(comparing.plot) as place:
            save(figure, place, form)
        settings.say(f"wrote {comparing.plot}")
    show(_rows(table, comparing.over, output, settings), output, settings)
    settings.say(
        f"intervals {found.first} to {found.last}; means over runs, 95 % confidence intervals"
    )
    if comparing.over == "runs" and comparing.metrics and output_format(output) == "table":
        for sentence in sentences(table.to_pylist()):
            settings.say(sentence)
    for note in found.notes:
        settings.say(f"note: {note}")


def _figure_format(comparing: _Comparing) -> str:
    """The format of the figure, if any. Raises: UseError, before anything is read."""
    if comparing.plot is None:
        return ""
    form = comparing.plot.suffix.lower().removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise UseError(f"{comparing.plot}: a figure is written as .png, .svg, .pdf")
    return form


def _opened(settings: Settings, names: Sequence[str]) -> list[Run]:
    from vizpub.questions.run import Run

    chosen = dict.fromkeys(run for name in names for run in _matching(settings, name))
    return [Run.open(settings.workspace, name) for name in chosen]


def _matching(settings: Settings, name: str) -> list[str]:
    """The runs that match a name or pattern. Raises: UnknownName if there are none."""
    if not any(character in name for character in "*?["):
        return [name]
    from vizpub.analytics.comparison.tables import ordered
    from vizpub.runstore.store import run_names

    there = run_names(settings.workspace)
    if found := [run for run in there if fnmatchcase(run, name)]:
        return ordered(found)
    raise UnknownName("run like", name, there, f"vizpub runs list, in {settings.workspace}")


def _question(runs: Sequence[Run], comparing: _Comparing, window: Window) -> Question:
    from vizpub.analytics.comparison.per_run import Question, common_clock

    return Question(
        comma_list(comparing.metrics),
        comma_list(comparing.by),
        window.intervals(common_clock(runs)),
        comparing.over == "intervals",
        None if comparing.over in ("runs", "intervals") else comparing.over,
    )


def _table(found: Answer, over: str) -> pa.Table:
    from vizpub.analytics.comparison.tables import compare, compare_series, compare_settings

    if over == "intervals":
        return compare_series(found.runs, found.metrics, found.first)
    draw = compare if over == "runs" else compare_settings
    return draw(found.runs, found.metrics)


def _figure(found: Answer, table: pa.Table, over: str) -> Figure:
    from vizpub.analytics.figures.comparison import (
        comparison,
        comparison_series,
        comparison_settings,
    )

    if over == "intervals":
        return comparison_series(table)
    return comparison(table, found.runs) if over == "runs" else comparison_settings(table, over)


def _rows(table: pa.Table, over: str, output: Output, settings: Settings) -> Rows:
    """For programs a row per estimate; for people a column per group, if they fit."""
    from vizpub.cli.terminal.streams import terminal_width

    form = output_format(output)
    if over == "intervals" or form not in ("table", "md"):
        return Rows.of_arrow(table.column_names, table.to_batches())
    width = terminal_width(sys.stdout) if form == "table" and to_stdout(output.file) else None
    rows, hidden = for_people(table.to_pylist(), () if over == "runs" else (over,), width)
    if hidden:
        settings.say(f"(no room for {'; '.join(hidden)}; --format md or csv shows all)")
    return rows


_WIDE = 4
"""Up to this many groups have a column each; more have a row each."""
_ANY = 10**6
"""A width in which every row fits."""

_Record = dict[str, Any]


def for_people(
    records: Sequence[_Record], over: tuple[str, ...] = (), width: int | None = None
) -> tuple[Rows, tuple[str, ...]]:
    """Rows of vizpub.analytics.comparison.tables.compare: a row per metric, a column per group or
    contrast.

    With `over`, the name of a parameter, the records are those of `compare_settings`: a row
    per metric and setting. Groups that do not fit side by side get a row each. Columns that do
    not fit in `width` cells are left out; their names are the second result.
    """
    runs: Counter[str] = Counter()
    for record in records:
        runs[record["group"]] = max(runs[record["group"]], record["runs"])
    every = [{**record, "runs": runs[record["group"]]} for record in records]
    groups = len({of["group"] for of in every if of["estimate"] == "mean"})
    keys = ("metric", *over)
    rows = _side_by_side(every, keys)
    needed = len(keys) + groups
    if groups > _WIDE or _width(rows, needed) > (width or _ANY):
        rows, needed = _below_one_another(every, keys), len(keys) + 2
    count = len(rows.columns)
    while count > needed and _width(rows, count) > (width or _ANY):
        count -= 1
    return _first(rows, count), rows.columns[count:]


def sentences(records: Sequence[_Record]) -> list[str]:
    """A sentence per metric that two groups have: both means, and the interval of their difference.

    "diameter: 5.8 ± 3.8 hops for gossip, 11.2 ± 3.8 hops for tree; gossip - tree is -5.3 hops,
    between -6.8 and -3.9 with 95 % confidence (3 pairs of runs)."
    """
    by_metric: dict[str, list[_Record]] = {}
    for record in records:
        by_metric.setdefault(record["metric"], []).append(record)
    return [text for found in by_metric.values() for text in _sentence(found)]


def _sentence(found: Sequence[_Record]) -> Iterator[str]:
    means = [of for of in found if of["estimate"] == "mean" and of["value"] is not None]
    for of in found:
        if of["estimate"].endswith("difference") and of["low"] is not None:
            unit = f" {of['unit']}" if of["unit"] not in ("", "share", None) else ""
            spoken = (f"{estimate_text(mean)}{unit} for {mean['group']}" for mean in means)
            half = (of["high"] - of["low"]) / 2
            value, low, high = (_rounded(of[name], half) for name in ("value", "low", "high"))
            runs = "pairs of runs" if of["estimate"].startswith("paired") else "runs"
            yield (
                f"{of['metric']}: {', '.join(spoken)}; {of['group']} is {value}{unit}, between "
                f"{low} and {high} with 95 % confidence ({of['n']} {runs})."
            )


def _side_by_side(records: Sequence[_Record], keys: tuple[str, ...]) -> Rows:
    heads = list(dict.fromkeys(map(_head, records)))
    cells: dict[tuple[str, ...], _Record] = {}
    for of in records:
        row = cells.setdefault(_place(of), {"unit": of["unit"], "over": of["over"]})
        row[_head(of)] = estimate_text(of)
    names = (*heads, "unit", "over")
    values = [(*place, *(row.get(name) for name in names)) for place, row in cells.items()]
    return Rows((*keys, *names), values)


def _below_one_another(records: Sequence[_Record], keys: tuple[str, ...]) -> Rows:
    about = ("runs", "unit", "over")
    rows = [
        (*_place(of), of["group"], estimate_text(of), *(of[name] for name in about))
        for of in records
    ]
    return Rows((*keys, "group", "estimate, 95 %", *about), rows)


def _first(rows: Rows, count: int) -> Rows:
    """The first columns."""
    return Rows(rows.columns[:count], [values[:count] for values in rows.values])


def _width(rows: Rows, count: int) -> int:
    """Width of a line of the first columns, in cells."""
    from vizpub.cli.terminal.layout import Grid

    first = _first(rows, count)
    return Grid.of(first.columns, list(first.values)).width


def _place(of: _Record) -> tuple[str, ...]:
    return (of["metric"], *([of["setting"]] if "setting" in of else []))


def _head(of: _Record) -> str:
    """'gossip (3 runs)', 'gossip / tree, paired'."""
    if of["estimate"] != "mean":
        paired = ", paired" if of["estimate"].startswith("paired") else ""
        return f"{of['group']}{paired}"
    return f"{of['group']} ({of['runs']} run{'s' if of['runs'] != 1 else ''})"


def estimate_text(record: _Record) -> str | None:
    """An estimate for people: '22.4 ± 1.3', a ratio or difference '21.1 [19.8, 22.6]'.

    Shows as many digits as the interval supports, and n if some runs lack the metric.
    """
    value, low, high = record["value"], record["low"], record["high"]
    if value is None:
        return None
    runs = f" (n = {record['n']})" if record["n"] < record["runs"] else ""
    mean = record["estimate"] == "mean"
    if low is None:
        return f"{_plain(value if mean else float(f'{value:.3g}'))}{runs}"
    half = (high - low) / 2
    if mean:
        return f"{_rounded(value, half)} ± {_rounded(half, half)}{runs}"
    bounds = f"[{_rounded(low, half)}, {_rounded(high, half)}]"
    return f"{_rounded(value, half)} {bounds}{runs}"


def _rounded(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    from vizpub.analytics.comparison.estimates import decimals

    places = decimals(half)
    return _plain(value) if places is None else f"{round(value, places):.{max(places, 0)}f}"


def _plain(value: float) -> str:
    """Six digits; millions in full."""
    return f"{value:.6g}" if abs(value) < 10**6 else f"{value:.0f}"
