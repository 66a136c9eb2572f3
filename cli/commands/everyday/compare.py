"""`vizpub compare`: runs, systems and settings side by side."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.everyday.judgements import (
    JUNIT,
    ConditionOptions,
    JudgementOutput,
    check_format,
    show_judgements,
)
from vizpub.cli.commands.figures.drawing import FigureLook
from vizpub.cli.completion import complete_compared, complete_runs
from vizpub.cli.options import (
    Output,
    Window,
    comma_list,
    correct_runs,
    drop_defaults,
    match_runs,
    refuse_options,
)
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import estimate_text, round_by_interval
from vizpub.cli.terminal.output import (
    OutputRows,
    figure_format,
    output_format,
    show_rows,
    to_stdout,
    write_figure,
)
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.analytics.comparison.per_run import ComparedRuns
    from vizpub.questions.run import Run


@dataclass(frozen=True)
class _Comparison:
    """The metrics to compare, and the grouping of the runs."""

    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of metrics, or measures of whole runs (default: a selection).",
            autocompletion=complete_compared,
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="protocol|run|pattern|PARAM|KEY,…",
            help="What distinguishes groups (default: protocol and parameters that differ; with "
            "conditions, the pattern RUN); KEY is an attribute of peers.",
        ),
    ] = None
    over: Annotated[
        str,
        typer.Option(
            metavar="runs|intervals|PARAM|KEY",
            help="One value per run, per interval, or per value of a parameter or attribute.",
        ),
    ] = "runs"
    receivers: Annotated[
        bool,
        typer.Option(
            "--receivers",
            help="With an attribute: group messages by who received them, not by publisher.",
        ),
    ] = False
    common: Annotated[
        bool,
        typer.Option(
            "--common", help="Measure every run over the intervals that all of them have."
        ),
    ] = False
    correct_clocks: Annotated[
        bool,
        typer.Option(
            "--correct-clocks",
            help="Correct delays by the offsets of clocks that messages bound on both sides.",
        ),
    ] = False
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw a figure: a .png, .svg or .pdf file."),
    ] = None


@dataclass(frozen=True)
class _CompareOptions(FigureLook, ConditionOptions, _Comparison):
    """Conditions and the look of the figure, too."""


def compare(
    ctx: typer.Context,
    settings: Settings,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Names, or patterns such as 'scribe-*'.",
            autocompletion=complete_runs,
        ),
    ],
    options: _CompareOptions,
    window: Window,
    output: JudgementOutput,
) -> None:
    """Compare runs, systems and seeds, with 95 % confidence intervals.

    Runs that differ only in the seed are replicates of one group. Two groups are also
    compared with each other, in pairs of runs if both have the same seeds. A run is measured over
    all of its intervals, or those of --from and --to; with --common, over those that all runs have.
    docs/compare.md explains each number.

    Metrics of groups of peers are compared by an attribute of theirs: --by client for one group per
    client, --over client for the groups of runs at each client.

    With --fail-if, the answer says for each condition whether it holds for the groups after the
    first; the exit code is 1 if one holds for certain, or cannot be judged.

    Examples:

    ```
    vizpub compare 'poldercast-*' 'scribe-*'
    vizpub compare 'poldercast-*' 'scribe-*' --metrics diameter,hit_ratio --from 100 -o table.md
    vizpub compare 'poldercast-*' 'scribe-*' --over churn --plot churn.pdf --style paper
    vizpub compare 'poldercast-*' 'scribe-*' --over intervals -o series.csv --plot series.pdf
    vizpub compare 'old-*' 'new-*' --fail-if 'delay_us_p95 > 1.1x' --fail-if 'hit_ratio < 0.99'
    vizpub compare 'new-*' --by client --receivers --metrics delay_us_p95,hit_ratio
    vizpub compare 'old-*' 'new-*' --over client --fail-if 'delay_us_p95 > 1.1x'
    vizpub compare monday tuesday --metrics delay_us_p95 --correct-clocks
    vizpub compare 'old-*' 'new-*' --fail-if-possible 'hops_mean > 1.2x' -o report.xml
    ```
    """
    from vizpub.analytics.comparison.conditions import judge_conditions
    from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs
    from vizpub.analytics.figures.styles import figure_style

    if options.plot:  # errors now, not after the work
        figure_format(options.plot)
    else:
        refuse_options(ctx, "a comparison without --plot", "--title", "--size", "--style")
    figure_options = options.figure_options()
    conditions = options.parse()
    options, output = _drop_others(ctx, options, output)
    check_format(output, conditions)
    over, metrics, by = options.over, comma_list(options.metrics), comma_list(options.by)
    if conditions:
        refuse_options(ctx, "a comparison with conditions", "--metrics")
        if over == "intervals":
            raise UseError("conditions are not judged by interval: leave out --over intervals")
        metrics = tuple(condition.metric for condition in conditions)
        by = by or ("pattern",)
    setting = None if over in ("runs", "intervals") else over
    selected = _select_runs(runs, settings)
    opened = _open_runs(selected, options, window, settings)
    request = ComparisonRequest(
        metrics,
        by,
        _window(window, opened, shared=options.common or over == "intervals"),
        options.common,
        over == "intervals",
        setting,
        tuple(selected.values()),
        options.receivers,
    )
    with settings.progress() as progress:
        answer = measure_runs(opened, request, progress)
    table = _table(answer, over)
    if options.plot:
        with figure_style(figure_options):
            write_figure(_figure(answer, table, over), options.plot, settings)
    if not conditions:
        show_rows(_rows(table, over, output, settings), output, settings)
    settings.say(f"{answer.scope}; means over runs, 95 % confidence intervals")
    if over == "runs" and metrics and not conditions and output_format(output) == "table":
        for sentence in sentences(table.to_pylist()):
            settings.say(sentence)
    for note in answer.notes:
        settings.say(f"note: {note}")
    if conditions:
        judgements = judge_conditions(answer.runs, answer.metrics, conditions, setting)
        show_judgements(judgements, f"vizpub compare {' '.join(runs)}", output, settings)


def _drop_others(
    ctx: typer.Context, options: _CompareOptions, output: JudgementOutput
) -> tuple[_CompareOptions, JudgementOutput]:
    """The options without defaults that do not apply with conditions, or without."""
    if not options.parse():
        return options, drop_defaults(ctx, output, "--format") if output.format == JUNIT else output
    if options.over == "intervals":
        options = drop_defaults(ctx, options, "--over")
    return options, output


def _select_runs(patterns: Sequence[str], settings: Settings) -> dict[str, str]:
    """The names of the runs, with the pattern that selects each: the first that does."""
    from vizpub.analytics.comparison.tables import sort_settings
    from vizpub.runstore.store import run_names

    existing = run_names(settings.workspace)
    selected: dict[str, str] = {}
    for pattern in patterns:
        for name in sort_settings(match_runs(pattern, existing)):
            selected.setdefault(name, pattern)
    return selected


def _open_runs(
    names: Iterable[str], options: _CompareOptions, window: Window, settings: Settings
) -> list[Run]:
    from vizpub.questions.run import Run

    runs = [Run.open(settings.workspace, name) for name in names]
    return correct_runs(runs, window, settings) if options.correct_clocks else runs


def _window(window: Window, runs: Sequence[Run], *, shared: bool) -> tuple[int | None, int | None]:
    """First and last interval, of those that all runs have if `shared`, otherwise of those that any
    has; null = no limit. Raises: OutOfRange, UseError.
    """
    from vizpub.analytics.comparison.per_run import common_clock, joint_clock

    if window == Window():
        return None, None
    clock = common_clock(runs) if shared else joint_clock(runs)
    epochs = {run.facts.epoch for run in runs}
    return window.intervals(clock, epochs.pop() if len(epochs) == 1 else None)


def _table(answer: ComparedRuns, over: str) -> pa.Table:
    from vizpub.analytics.comparison.tables import compare_groups, compare_series, compare_settings

    if over == "intervals":
        return compare_series(answer.runs, answer.metrics, answer.first)
    draw = compare_groups if over == "runs" else compare_settings
    return draw(answer.runs, answer.metrics)


def _figure(answer: ComparedRuns, table: pa.Table, over: str) -> Figure:
    from vizpub.analytics.figures.comparison import (
        comparison,
        comparison_series,
        comparison_settings,
    )

    if over == "intervals":
        return comparison_series(table)
    return comparison(table, answer.runs) if over == "runs" else comparison_settings(table, over)


def _rows(table: pa.Table, over: str, output: Output, settings: Settings) -> OutputRows:
    """For programs a row per estimate; for people a column per group, if they fit."""
    from vizpub.cli.terminal.streams import terminal_width

    form = output_format(output)
    if over == "intervals" or form not in ("table", "md"):
        return OutputRows.of_table(table)
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
) -> tuple[OutputRows, tuple[str, ...]]:
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
    groups = len({record["group"] for record in every if record["estimate"] == "mean"})
    keys = ("metric", *over)
    rows = _columns_by_group(every, keys)
    needed = len(keys) + groups
    if groups > _WIDE or _width(rows, needed) > (width or _ANY):
        rows, needed = _rows_by_group(every, keys), len(keys) + 2
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
    return [text for estimates in by_metric.values() for text in _difference_sentences(estimates)]


def _difference_sentences(estimates: Sequence[_Record]) -> Iterator[str]:
    means = [
        estimate
        for estimate in estimates
        if estimate["estimate"] == "mean" and estimate["value"] is not None
    ]
    for estimate in estimates:
        if estimate["estimate"].endswith("difference") and estimate["low"] is not None:
            unit = f" {estimate['unit']}" if estimate["unit"] not in ("", "share", None) else ""
            spoken = (f"{estimate_text(mean)}{unit} for {mean['group']}" for mean in means)
            half = (estimate["high"] - estimate["low"]) / 2
            value, low, high = (
                round_by_interval(estimate[name], half) for name in ("value", "low", "high")
            )
            runs = "pairs of runs" if estimate["estimate"].startswith("paired") else "runs"
            yield (
                f"{estimate['metric']}: {', '.join(spoken)}; {estimate['group']} is "
                f"{value}{unit}, between {low} and {high} with 95 % confidence "
                f"({estimate['n']} {runs})."
            )


def _columns_by_group(records: Sequence[_Record], keys: tuple[str, ...]) -> OutputRows:
    heads = list(dict.fromkeys(map(_head, records)))
    cells: dict[tuple[str, ...], _Record] = {}
    for record in records:
        row = cells.setdefault(_place(record), {"unit": record["unit"], "over": record["over"]})
        row[_head(record)] = estimate_text(record)
    names = (*heads, "unit", "over")
    values = [(*place, *(row.get(name) for name in names)) for place, row in cells.items()]
    return OutputRows((*keys, *names), values)


def _rows_by_group(records: Sequence[_Record], keys: tuple[str, ...]) -> OutputRows:
    about = ("runs", "unit", "over")
    rows = [
        (*_place(record), record["group"], estimate_text(record), *(record[name] for name in about))
        for record in records
    ]
    return OutputRows((*keys, "group", "estimate, 95 %", *about), rows)


def _first(rows: OutputRows, count: int) -> OutputRows:
    """The first columns."""
    return OutputRows(rows.columns[:count], [values[:count] for values in rows.values])


def _width(rows: OutputRows, count: int) -> int:
    """Width of a line of the first columns, in cells."""
    from vizpub.cli.terminal.layout import Grid

    first = _first(rows, count)
    return Grid.of(first.columns, list(first.values)).width


def _place(record: _Record) -> tuple[str, ...]:
    return (record["metric"], *([record["setting"]] if "setting" in record else []))


def _head(record: _Record) -> str:
    """'gossip (3 runs)', 'gossip / tree, paired'."""
    if record["estimate"] != "mean":
        paired = ", paired" if record["estimate"].startswith("paired") else ""
        return f"{record['group']}{paired}"
    return f"{record['group']} ({record['runs']} run{'s' if record['runs'] != 1 else ''})"
