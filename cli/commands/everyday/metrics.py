"""`vizpub metrics`: the metrics of a run, from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.commands.everyday.metric_options import MetricOptions, check_options
from vizpub.cli.completion import complete_metrics
from vizpub.cli.options import Output, RunName, Window, comma_list, correct_runs
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.model.clock import duration, parse_duration_us
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa

    from vizpub.questions.frames import Frame
    from vizpub.questions.run import Run, Where

_ESSENTIAL = (
    *("peers", "messages"),
    *("network_size", "subscribers", "eligible", "degree", "links", "topic_links", "degree_mean"),
    *("hit_ratio", "diameter", "topic_diameter", "components", "delay_us_p95", "hops_max"),
    *("average_path_length", "clustering", "clustering_mean", "betweenness", "publications"),
    *("delivered", "redundancy", "subscriptions", "receptions", "duplicates"),
)
"""Metrics that a narrow table shows before all others, the most important first."""
_STORED = ("overlay", "peers", "topics", "messages", "percolation")


def metric_tables() -> tuple[str, ...]:
    """The names of the tables of metrics: those that a run stores, and those that are computed."""
    from vizpub.questions.arrivals import ARRIVALS
    from vizpub.questions.attributes.mixing import MIXING
    from vizpub.questions.churn import CHURN

    return (*_STORED, *ARRIVALS, "control", "gauges", *MIXING, *CHURN)


def metrics(
    ctx: typer.Context,
    run: RunName,
    part: MetricOptions,
    window: Window,
    output: Output,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="overlay, peers, topics, messages, coverage, duplicates, amplification, "
            "reachability, clocks, control, mixing, assortativity, lifetimes, survival, turnover, "
            "percolation or gauges.",
            autocompletion=complete_metrics,
        ),
    ] = "overlay",
) -> None:
    """Print metrics of a run: per interval, peer, topic or message.

    With `--by client`, a row is of all peers whose attribute `client` is the same, or of their
    messages; `mixing` and `assortativity` then show which of these groups link to which.
    `lifetimes` and `survival` show how long links, peers and subscriptions last, `turnover` how
    neighbourhoods change; `--by topic` or `--by client` splits them by topic or group.
    `coverage` shows for each message when 50, 66, 90, 95 and 99 % of the eligible peers had it
    (a dash: they never did), and with `--within 4s` the share that had it by then. `duplicates`
    shows how many peers get a message more than once, and how soon after its first copy; `--by
    message`, `peer`, `topic`, `interval`, `size` or an attribute has a row for each.
    `amplification` sums up the bytes of all copies, beside those that the receivers needed; `--by
    size` separates messages by size. `reachability` counts the eligible peers that a message could
    have reached over links, beside those that had it; `--by peer` counts, for each peer, the
    messages that could have reached it. `clocks` shows how far each peer's clock is ahead of
    another's, at least and at most; `coverage` and `messages` take this into account only with
    `--correct-clocks`, and say what they corrected.
    `control` counts control messages by kind, such as IHAVE and GRAFT. `gauges` are the system's
    own numbers that peers report, such as lookups.
    `percolation` predicts how far gossip spreads on the overlay of each interval, beside what
    happened; the table is stored with the run, for compare and plot. `vizpub runs tables
    metrics/overlay` explains every column. A dash means unknown, 0 a measured zero.

    Examples:

    ```
    vizpub metrics monday
    vizpub metrics monday --from 10 --to 20 --columns network_size,diameter
    vizpub metrics monday topics --topic news --format csv
    vizpub metrics monday messages --sort -delay_us_max --limit 10
    vizpub metrics monday peers --layers mesh --from 12 --to 12
    vizpub metrics monday peers --totals --sort -publication_messages_sent
    vizpub metrics monday messages -o messages.json
    vizpub metrics monday messages --by country --receivers
    vizpub metrics monday coverage --within 4s --topic news
    vizpub metrics monday duplicates --by topic
    vizpub metrics monday amplification --by size
    vizpub metrics monday clocks --reference alice
    vizpub metrics monday coverage --correct-clocks
    vizpub metrics monday reachability --within 4s --layers mesh
    vizpub metrics monday reachability --by peer --sort -reachable_missed
    vizpub metrics monday mixing --by client --layers mesh --from last
    vizpub metrics monday lifetimes --layers mesh --by topic
    vizpub metrics monday turnover --layers mesh --d-low 5 --from 10
    vizpub metrics monday control --totals --by client
    vizpub metrics monday gauges --columns lookups,hops --peer 17
    vizpub metrics monday percolation --layers mesh --gamma 0.3
    ```
    """
    from vizpub.model.metrics import OF_MESSAGES
    from vizpub.questions.arrivals import ARRIVALS
    from vizpub.questions.attributes.mixing import MIXING
    from vizpub.questions.churn import CHURN, LENGTHS
    from vizpub.questions.frames import choose_columns
    from vizpub.questions.run import Run, Where
    from vizpub.questions.sums.additions import add_intervals

    if table not in (tables := metric_tables()):
        raise UnknownName("table of metrics", table, tables, "vizpub metrics --help")
    settings: Settings = ctx.obj
    part = check_options(ctx, table, part)
    opened = Run.open(settings.workspace, run)
    first, last = window.intervals(opened.clock, opened.facts.epoch)
    if part.correct_clocks:
        [opened] = correct_runs([opened], window, settings, part.reference)
    chosen = comma_list(part.layers)
    if table == "percolation":
        from vizpub.ingest.measures.percolation import PercolationOptions, ensure_percolation

        options = PercolationOptions(chosen or None, part.gamma, part.sigma)
        with settings.progress() as progress:
            opened = ensure_percolation(settings.workspace, opened, options, progress=progress)
    elif chosen and table not in (*MIXING, *CHURN, "reachability"):
        from vizpub.analytics.comparison.layers import RunOfLayers

        opened = RunOfLayers.of(opened, chosen)
    where, columns = Where(first, last, part.peer, part.topic), comma_list(part.columns)
    table_rows = _read_frame(opened, table, part, where).to_arrow()
    table_rows = add_intervals(table_rows) if part.totals else table_rows
    if columns and table in (*ARRIVALS, *MIXING, *CHURN):
        table_rows = choose_columns(table_rows, columns)
    sort = comma_list(part.sort) or ()
    table_rows = _sort_rows(table_rows, sort).slice(0, part.limit or None)
    rows = OutputRows.of_table(table_rows)
    provisional = opened.facts.provisional(last) if OF_MESSAGES & {*rows.columns} else ""
    is_chosen = columns is not None or table not in _STORED
    leaving = _dispensable_columns(rows.columns, sort, chosen=is_chosen)
    rows = replace(rows, leaving=leaving, provisional=provisional)
    show_rows(rows, output, settings)
    if table in LENGTHS and (interval_us := opened.clock.interval_us):
        settings.say(f"(lengths in intervals of {duration(interval_us)})")


def _read_frame(opened: Run, table: str, part: MetricOptions, where: Where) -> Frame:
    """The rows of a table. Raises: UseError for options that do not apply."""
    from vizpub.questions.arrivals import ARRIVALS
    from vizpub.questions.attributes.mixing import MIXING
    from vizpub.questions.churn import CHURN

    columns = comma_list(part.columns)
    if table in ARRIVALS:
        return _read_arrivals(opened, table, part, where)
    if table == "control":
        return opened.control(columns, where, by=part.by)
    if table == "gauges" and part.by is None:
        return opened.gauges(columns, where)
    if table in CHURN:
        return _read_churn(opened, table, part, where)
    if table not in MIXING:
        return opened.metrics(table, columns, where, by=part.by, receivers=part.receivers)
    if part.by is None:
        raise UseError(
            f"{table} is about groups of peers: give their attribute, such as --by client"
        )
    if part.peer or part.topic:
        raise UseError(f"--peer and --topic do not apply to {table}")
    answer = opened.mixing if table == "mixing" else opened.assortativity
    return answer(part.by, where, comma_list(part.layers))


def _read_arrivals(opened: Run, table: str, part: MetricOptions, where: Where) -> Frame:
    """The rows of a table of arrivals. Raises: UseError for options that do not apply."""
    if part.totals:
        raise UseError(f"--totals does not apply to {table}")
    if part.layers and table != "reachability":
        raise UseError(f"--layers does not apply to {table}")
    if table in ("duplicates", "amplification"):
        answer = opened.duplicates if table == "duplicates" else opened.amplification
        return answer(part.by, where)
    within_us = parse_duration_us(part.within) if part.within else None
    if table == "reachability":
        layers = comma_list(part.layers)
        return opened.reachability(where, within_us, layers, part.by or "message")
    if part.by:
        raise UseError(f"--by does not apply to {table}")
    if table == "clocks":
        return opened.clocks(where, part.reference)
    return opened.coverage(where, within_us)


def _read_churn(opened: Run, table: str, part: MetricOptions, where: Where) -> Frame:
    """The rows of lifetimes, survival or turnover. Raises: UseError for options not of these."""
    from vizpub.questions.churn.turnover import DEGREES

    layers = comma_list(part.layers)
    if table != "turnover":
        answer = opened.lifetimes if table == "lifetimes" else opened.survival
        return answer(part.by, where, layers)
    low, high = (
        default if given is None else given
        for given, default in zip((part.d_low, part.d_high), DEGREES, strict=True)
    )
    return opened.turnover(part.by, where, layers, (low, high))


def _dispensable_columns(
    columns: Sequence[str], sort: Sequence[str], *, chosen: bool
) -> tuple[str, ...]:
    """Columns that a narrow table leaves out first.

    A table keeps the columns by which it is sorted, and unless its columns are `chosen`, the
    essential ones. A table of messages drops its identifying columns before these.
    """
    from vizpub.questions.frames import IDENTIFYING

    about = ("interval", "publisher") if "message" in columns else ()
    metric_names = [name for name in columns if name not in IDENTIFYING]
    essential = metric_names if chosen else [name for name in _ESSENTIAL if name in metric_names]
    others = [name for name in metric_names if name not in essential]
    sorted_by = {name.removeprefix("-") for name in sort}
    leaving = (*others[::-1], *about, *essential[::-1])
    return tuple(name for name in leaving if name not in sorted_by)


def _sort_rows(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows by these columns, those with '-' descending; rows that are equal stay in order.

    Raises: UnknownName for a column that is not printed.
    """
    if not columns:
        return rows
    for name in columns:
        if name.removeprefix("-") not in rows.column_names:
            raise UnknownName("column to sort by", name.removeprefix("-"), rows.column_names)
    place = "place in the table"
    placed = rows.append_column(place, [range(rows.num_rows)])
    orders = [(n.removeprefix("-"), "descending" if n[0] == "-" else "ascending") for n in columns]
    return placed.sort_by([*orders, (place, "ascending")]).drop_columns([place])
