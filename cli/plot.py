"""`vizpub plot`: figures of a run, with their numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.completion import KINDS, complete_kinds, complete_peers, complete_plotted, complete_topics
from cli.options import Output, RunName, Window, command
from cli.output import Rows, show, whole_file
from cli.settings import Settings
from model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from ingest.run import Run, Where


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot", rich_help_panel="Metrics")(command(plot))


@dataclass(frozen=True)
class Drawing:
    """Which figure, and of what."""

    kind: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS),
            help="Over time; distributions; reach of messages; peers on a circle.",
            autocompletion=complete_kinds,
        ),
    ] = "series"
    peer: Annotated[
        str | None,
        typer.Option(help="Series of this peer's metrics.", autocompletion=complete_peers),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(help="Of this topic's metrics, or its part.", autocompletion=complete_topics),
    ] = None
    at: Annotated[
        str, typer.Option(metavar="TIME", help="When, for overlay (an interval or 12.5s).")
    ] = "last"


def plot(
    settings: Settings,
    run: RunName,
    file: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A .png, .svg or .pdf.")
    ],
    drawing: Drawing,
    window: Window,
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC...",
            help="Columns of the metrics; messages for coverage.",
            autocompletion=complete_plotted,
        ),
    ] = None,
) -> None:
    """Draw metrics of a run; the numbers are written beside the figure as CSV.

    `vizpub tables` names the metrics: series are drawn of metrics/overlay (with --topic of
    metrics/topics, with --peer of metrics/peers), distributions of metrics/peers and
    metrics/messages.

    Examples:

    ```
    vizpub plot monday network_size diameter -o size.png
    vizpub plot monday topic_diameter --topic news -o news.svg
    vizpub plot monday degree betweenness --kind ccdf --from 10 -o degrees.pdf
    vizpub plot monday --kind coverage -o coverage.png
    vizpub plot monday --kind overlay --topic news --at 12 -o overlay.png
    ```
    """
    from analytics.figures import FORMATS, save
    from ingest.run import Run

    form = file.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise UseError(f"{file}: a figure is written as {', '.join('.' + f for f in FORMATS)}")
    data, figure = _drawn(Run.open(settings.workspace, run), drawing, window, metrics or ())
    with whole_file(file) as place:
        save(figure, place, form)
    settings.say(f"wrote {file}")
    rows = Rows.of_arrow(data.column_names, data.to_batches())
    show(rows, Output("csv", file.with_suffix(".csv")), settings)


def _drawn(
    run: Run, drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    if drawing.kind not in KINDS:
        raise UnknownName("kind of figure", drawing.kind, KINDS)
    if drawing.kind in ("series", "ecdf", "ccdf") and not metrics:
        raise UseError("say which metrics to draw; vizpub tables metrics/overlay lists them")
    draw = {"coverage": _coverage, "overlay": _overlay, "series": _series}
    return draw.get(drawing.kind, _distribution)(run, drawing, window, metrics)


def _where(run: Run, drawing: Drawing, window: Window) -> Where:
    from ingest.run import Where

    first, last = window.intervals(run.clock)
    return Where(first, last, drawing.peer, drawing.topic)


def _series(
    run: Run, drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from analytics.figures import series

    of = "peers" if drawing.peer else "topics" if drawing.topic else "overlay"
    data = run.metrics(of, metrics, _where(run, drawing, window))
    subject = drawing.peer or drawing.topic
    return data, series(data, metrics, f"{run.facts.name}{f': {subject}' if subject else ''}")


def _distribution(
    run: Run, drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from analytics.figures import distribution
    from model.metrics import METRICS_MESSAGES

    of = "messages" if set(metrics) <= set(METRICS_MESSAGES.names) else "peers"
    data = run.metrics(of, metrics, _where(run, drawing, window))
    return data, distribution(data, metrics, run.facts.name, complementary=drawing.kind == "ccdf")


def _coverage(
    run: Run, drawing: Drawing, window: Window, messages: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from analytics.figures import coverage
    from ingest.views import coverage as arrivals

    data = arrivals(run, messages)
    return data, coverage(data, run.facts.name)


def _overlay(
    run: Run, drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    from analytics.figures import overlay_snapshot
    from ingest.views import snapshot

    tick = run.clock.parse_at(drawing.at)
    peers, links = snapshot(run, tick, drawing.topic)
    about = [run.facts.name, *([f"topic {drawing.topic}"] if drawing.topic else [])]
    title = ", ".join([*about, run.clock.describe(tick)])
    return links, overlay_snapshot(peers, links, len(run.peers), title)
