"""`vizpub plot`: figures of a run; the plotted numbers are written as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.figures import film, grouped
from vizpub.cli.commands.figures.drawing import (
    FILMS,
    METRIC_KINDS,
    Drawing,
    PlotOptions,
    check_options,
    drop_others,
    title_of,
)
from vizpub.cli.commands.figures.pictures import PICTURES
from vizpub.cli.completion import KINDS, complete_plotted
from vizpub.cli.options import Output, RunName, Window, comma_list, correct_runs
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows, write_figure
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.questions.run import Run, Where

TIMES_PEERS_OR_RUNS = "give several times, several peers or several runs, not two of these"
MESSAGES_OR_PART = "name messages, or choose them by --topic, --peer, --from and --to, not both"
TIMES_OR_WINDOW = "give times (--at) or a window (--from, --to), not both"


def plot(
    ctx: typer.Context,
    run: RunName,
    file: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .png, .svg or .pdf file; for a film .gif, .webm or .mp4.",
        ),
    ],
    drawing: PlotOptions,
    window: Window,
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC|MESSAGE...",
            help="Columns of metrics; for coverage and tree, messages; for an overlay, of peers: "
            "one for the colour, one for the size.",
            autocompletion=complete_plotted,
        ),
    ] = None,
) -> None:
    """Plot metrics of a run; the plotted numbers are written beside the figure as CSV.

    `vizpub runs tables` lists the metrics. Series come from metrics/overlay, metrics/percolation or
    turnover (with --topic from metrics/topics, with --peer from metrics/peers), distributions from
    metrics/messages, metrics/peers or metrics/topics: the first that has the column; `delay_us`
    and `hop` are those of every delivery. `gauges/lookups` is a number of the system's own, and
    `control/messages_sent` has a line for each kind of control message. Columns of `duplicates` and
    `amplification`, such as `duplicates/first_duplicate_us_p50`, are series, or distributions over
    messages; those of `coverage`, `reachability` and `clocks` are distributions.

    Survival is the share of links, peers and subscriptions that last longer than x.

    A distribution is the share of values ≤ x (ecdf) or ≥ x (ccdf), or the density in bins
    that grow with x (density). A tree shows a message hop by hop: dashed lines are copies to
    peers that already had it, pink crosses are subscribers that it never reached (last in
    the CSV, without a hop).

    A film shows an overlay interval by interval, or messages hop by hop; with --seconds, at equal
    times. WebM and MP4 need ffmpeg. Films have no CSV.

    Examples:

    ```
    vizpub plot monday network_size diameter -o size.png
    vizpub plot monday topic_diameter --topic news -o news.svg
    vizpub plot monday degree betweenness --kind ccdf --from 10 -o degrees.pdf
    vizpub plot monday in_degree --kind density --at 1,10,99 -o degrees.pdf
    vizpub plot monday delay_us --kind ecdf --topic news -o delays.pdf
    vizpub plot monday delay_us_p95 --kind ccdf --correct-clocks -o corrected.pdf
    vizpub plot monday degree --peer alice --peer bob -o both.png
    vizpub plot monday degree --by client --layers mesh -o clients.png
    vizpub plot monday jaccard_mean made ended --layers mesh -o turnover.png
    vizpub plot monday --kind survival --layers mesh --by topic -o lifetimes.pdf
    vizpub plot monday gauges/lookups gauges/hops/per/lookups -o lookups.png
    vizpub plot monday control/messages_sent control/ids_sent -o control.png
    vizpub plot monday amplification/bytes_received amplification/amplification -o bytes.png
    vizpub plot monday reachability/reachable_missed --kind ccdf -o unused.png
    vizpub plot monday --kind coverage -o coverage.png
    vizpub plot monday m17 --kind tree --hops 4 -o m17.png
    vizpub plot monday m17 --kind tree --layout layers -o m17.svg
    vizpub plot monday --with tuesday hit_ratio --style paper -o hits.pdf
    vizpub plot monday --kind overlay --topic news --at 12 -o overlay.png
    vizpub plot monday --kind overlay --at 10,20,30 --size 7x3in -o growth.pdf
    vizpub plot monday --kind overlay --layers mesh --by client --at 12 -o mesh.svg
    vizpub plot monday betweenness degree --kind overlay --at 12 -o busy.png
    vizpub plot monday degree --kind overlay --peer alice --at 12 -o distances.png
    vizpub plot monday --kind overlay --topic news --from 10 --to 40 -o news.gif
    vizpub plot monday m17 --kind tree --seconds 12 -o m17.mp4
    ```
    """
    from vizpub.analytics.figures import FILM_FORMATS, FORMATS, figure_style, relabel
    from vizpub.questions.run import Run

    settings: Settings = ctx.obj
    if drawing.kind not in KINDS:
        raise UnknownName("kind of figure", drawing.kind, KINDS)
    form = file.suffix.lower().removeprefix(".")
    if form in FILM_FORMATS:
        if drawing.kind not in FILMS:
            raise UseError(f"a film is of --kind {' or '.join(FILMS)}, not of {drawing.kind}")
        kind = FILMS[drawing.kind]
        check_options(ctx, kind)
        drawing, window = drop_others(ctx, kind, drawing), drop_others(ctx, kind, window)
        scenes = film.choose_scenes(
            Run.open(settings.workspace, run), drawing, window, metrics or ()
        )
        film.write_scenes(scenes, file, form, drawing, settings)
        return
    if form not in FORMATS:
        stills, films = (", ".join(f".{f}" for f in forms) for forms in (FORMATS, FILM_FORMATS))
        raise UseError(f"{file}: a figure is written as {stills}, and a film as {films}")
    check_options(ctx, drawing.kind)
    drawing = drop_others(ctx, drawing.kind, drawing, metrics or ())
    window = drop_others(ctx, drawing.kind, window)
    names = dict.fromkeys((run, *(drawing.more_runs or ())))
    runs: Sequence[Run] = [Run.open(settings.workspace, name) for name in names]
    if drawing.correct_clocks:
        runs = correct_runs(runs, window, settings)
    with figure_style(drawing.figure_options()):
        data, figure = _draw_figure(runs, drawing, window, metrics or ())
        relabel(figure, drawing.xlabel, drawing.ylabel, drawing.legend)
        write_figure(figure, file, settings)
    for name in metrics or ():
        if name in data.column_names and data[name].null_count == len(data) > 0:
            settings.say(f"{name} is unknown everywhere in the figure; see: vizpub runs show {run}")
    show_rows(OutputRows.of_table(data), Output("csv", file.with_suffix(".csv")), settings)


def _draw_figure(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    if drawing.kind in METRIC_KINDS and not metrics:
        raise UseError("name the metrics to plot; vizpub runs tables metrics/overlay lists them")
    if _are_gauges(metrics) and (drawing.topic or drawing.layers):
        raise UseError("gauges belong to no topic and no layer: leave out --topic and --layers")
    if grouped.shows_churn(drawing.kind, metrics):
        return grouped.draw_churn(runs, drawing, window, metrics)
    if drawing.kind in METRIC_KINDS and grouped.are_of_arrivals(metrics):
        return grouped.draw_arrivals(runs, drawing, window, metrics)
    if drawing.kind in METRIC_KINDS and (layers := comma_list(drawing.layers)):
        from vizpub.analytics.comparison.layers import RunOfLayers

        runs = [RunOfLayers.of(run, layers) for run in runs]
    if drawing.kind in METRIC_KINDS and (drawing.by or grouped.are_of_control(metrics)):
        return grouped.draw_groups(runs, drawing, window, metrics)
    if drawing.kind in PICTURES:
        return PICTURES[drawing.kind](runs[0], drawing, metrics)
    has_peers = len(drawing.peers) > 1
    # A peer has one value at a time, which has no distribution.
    has_times = len(comma_list(drawing.at) or ()) > (0 if has_peers else 1)
    if has_peers + has_times + (len(runs) > 1) > 1:
        raise UseError(TIMES_PEERS_OR_RUNS)
    draw = {"coverage": _coverage, "series": _series}
    return draw.get(drawing.kind, _distribution)(runs, drawing, window, metrics)


def _gather(
    runs: Sequence[Run], read: Callable[[Run], pa.Table], by: str | None
) -> tuple[pa.Table, dict[str, Any]]:
    """The rows of all runs, and the lines of a figure: by run if there are several, each in the
    colour of its system.
    """
    import pyarrow as pa

    from vizpub.analytics.figures import colours_of

    systems = [run.facts.protocol or run.facts.name for run in runs]
    if len(runs) == 1:
        return read(runs[0]), {"by": by, "chosen": colours_of([""], of=systems) if not by else {}}
    parts = []
    for run in runs:
        rows = read(run)
        parts.append(rows.add_column(0, "run", pa.array([run.facts.name] * len(rows), pa.string())))
    names = [run.facts.name for run in runs]
    rows = pa.concat_tables(parts, promote_options="default")
    return rows, {"by": "run", "chosen": colours_of(names, of=systems)}


def _series(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from vizpub.analytics.figures import series

    if _are_gauges(metrics):
        table, read = "gauges", _metric_rows if drawing.peer else _gauge_rows
    else:
        table = "peers" if drawing.peer else "topics" if drawing.topic else _series_table(metrics)
        read = _metric_rows
    data, lines = _gather(
        runs, lambda run: read(run, table, metrics, drawing, window), _by_peer(drawing, table)
    )
    return data, series(data, metrics, title_of(runs, drawing.subject), **lines)


def _series_table(metrics: Sequence[str]) -> str:
    """The table of the overlay, or the one of predictions if it has all the metrics."""
    from vizpub.model.metrics import METRICS_PERCOLATION

    return "percolation" if {*metrics} <= {*METRICS_PERCOLATION.names} else "overlay"


def _metric_rows(
    run: Run, table: str, metrics: Sequence[str], drawing: Drawing, window: Window
) -> pa.Table:
    """The rows of a metrics table; peer by peer if there are several."""
    import pyarrow as pa

    from vizpub.questions.run import Where

    first, last = window.intervals(run.clock, run.facts.epoch)
    wheres = [Where(first, last, peer, drawing.topic) for peer in drawing.peers]
    return pa.concat_tables([_read_metrics(run, table, metrics, where) for where in wheres])


def _read_metrics(run: Run, table: str, metrics: Sequence[str], where: Where) -> pa.Table:
    """The rows of a metrics table, or of gauges, each in a column of its full name."""
    if table == "deliveries":
        return run.delays(where).to_arrow()
    if table != "gauges":
        return run.metrics(table, metrics, where).to_arrow()
    from vizpub.questions.gauges import gauge_column

    names = [name.removeprefix(_GAUGE_PREFIX) for name in metrics]
    gauges = run.gauges(names, where).to_arrow()
    full = dict(zip(map(gauge_column, names), metrics, strict=True))
    return gauges.rename_columns([full.get(name, name) for name in gauges.column_names])


_GAUGE_PREFIX = "gauges/"


def _are_gauges(metrics: Sequence[str]) -> bool:
    """Raises: UseError for gauges and other metrics in one figure."""
    gauges = [name for name in metrics if name.startswith(_GAUGE_PREFIX)]
    if gauges and len(gauges) < len(metrics):
        raise UseError(f"{gauges[0]} is a gauge: plot it in a figure without other metrics")
    return bool(gauges)


def _gauge_rows(
    run: Run, table: str, metrics: Sequence[str], drawing: Drawing, window: Window
) -> pa.Table:
    """interval and the gauges over all peers, as `vizpub compare --over intervals` has them."""
    import pyarrow as pa

    from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs
    from vizpub.questions.gauges import checked_gauges

    run.facts.check_known(table)
    # Every second part is a gauge: gauges/hops/per/lookups.
    checked_gauges(run.stored, [name for metric in metrics for name in metric.split("/")[1::2]])
    between = window.intervals(run.clock, run.facts.epoch)
    answer = measure_runs(
        [run], ComparisonRequest(tuple(metrics), window=between, per_interval=True)
    )
    intervals = range(answer.first, answer.last + 1)
    columns = {name: pa.array(answer.runs[0].series[name], pa.float64()) for name in metrics}
    return pa.table({"interval": pa.array(intervals, pa.int32()), **columns})


def _by_peer(drawing: Drawing, table: str) -> str | None:
    """The column that distinguishes lines if several peers (for messages: publishers) are given."""
    if len(drawing.peers) == 1:
        return None
    return "publisher_name" if table == "messages" else "peer_name"


def _distribution(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from vizpub.analytics.figures import density, distribution

    if drawing.at is not None and (window.first is not None or window.last is not None):
        raise UseError(TIMES_OR_WINDOW)
    table, title = _distribution_table(runs[0], metrics), title_of(runs, drawing.subject)
    if drawing.at is None:
        by = _by_peer(drawing, table)
        data, lines = _gather(
            runs, lambda run: _metric_rows(run, table, metrics, drawing, window), by
        )
    else:
        data, lines = _gather(
            runs, lambda run: _rows_at_times(run, table, metrics, drawing), "interval"
        )
    if drawing.kind == "density":
        return data, density(data, metrics, title, **lines)
    return data, distribution(data, metrics, title, complementary=drawing.kind == "ccdf", **lines)


def _distribution_table(run: Run, metrics: Sequence[str]) -> str:
    """The first table that has all the metrics; peers if none has. Raises: UseError."""
    from vizpub.model.metrics import DELIVERY_METRICS

    if _are_gauges(metrics):
        return "gauges"
    if {*metrics} <= {*DELIVERY_METRICS}:
        return "deliveries"
    for table in ("messages", "peers", "topics"):
        if set(metrics) <= set(run.stored.definition(f"metrics/{table}").names):
            return table
    return "peers"


def _rows_at_times(run: Run, table: str, metrics: Sequence[str], drawing: Drawing) -> pa.Table:
    """The rows of some intervals of a metrics table, in the given order."""
    import pyarrow as pa

    from vizpub.questions.run import Where

    times = dict.fromkeys(
        run.clock.interval_of(run.tick_at(text)) for text in comma_list(drawing.at) or ()
    )
    wheres = [Where(i, i, drawing.peers[0], drawing.topic) for i in times]
    return pa.concat_tables([_read_metrics(run, table, metrics, where) for where in wheres])


def _coverage(
    runs: Sequence[Run], drawing: Drawing, window: Window, messages: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from vizpub.analytics.figures import coverage

    by = "publisher_name" if len(drawing.peers) > 1 else None
    data, lines = _gather(runs, lambda run: _arrivals(run, drawing, window, messages), by)
    return data, coverage(data, title_of(runs, drawing.subject), **lines)


def _arrivals(run: Run, drawing: Drawing, window: Window, messages: Sequence[str]) -> pa.Table:
    """The arrivals of the named messages, or those of a topic, publishers or a window; of several
    publishers with `publisher_name`.
    """
    import pyarrow as pa

    from vizpub.questions.run import Where
    from vizpub.questions.snapshots import coverage as arrivals

    first, last = window.intervals(run.clock, run.facts.epoch)
    parts = []
    for peer in drawing.peers:
        where, among = Where(first, last, peer, drawing.topic), None
        if where != Where():
            if messages:
                raise UseError(MESSAGES_OR_PART)
            among = run.metrics("messages", ["eligible"], where).to_arrow()["message"].to_numpy()
        rows = arrivals(run, messages, among=among)
        if len(drawing.peers) > 1:
            rows = rows.append_column("publisher_name", pa.array([peer] * len(rows), pa.string()))
        parts.append(rows)
    return pa.concat_tables(parts)
