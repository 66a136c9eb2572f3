"""`vizpub lab channels`: where broadcast channels overload, computed without reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.lab.costs import confirm_costs
from vizpub.cli.commands.lab.options import MOST_RUNS
from vizpub.cli.commands.lab.simulate import CHANNELS, simulation_of
from vizpub.cli.groups import LazyGroup, command_group
from vizpub.cli.options import Output, Yes, comma_list
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, figure_format, show_rows, write_figure
from vizpub.model.errors import UseError
from vizpub.simulators.engine.parameters import MOST, MOST_PEERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vizpub.simulators.channels.layout import ChannelLayout
    from vizpub.simulators.channels.parameters import ChannelParameters
    from vizpub.simulators.channels.running import ChannelMeasurement

_HELP = """Broadcast channels: simulate them with reports, or measure overload without.

Commands that measure draw the same channels, clients and pages as `simulate` does with the same
options and seed. The paper lacks pages: a rule that is our reading of it is marked so.

Examples:

```
vizpub lab channels mapping --pages file:pages.csv
vizpub lab channels measure --gap 5ms --mappings all
vizpub lab channels utal --mappings all --seeds 5
vizpub lab channels gdfr --mappings all --figure gdfr.png
```
"""


@dataclass(frozen=True)
class _DrawOptions:
    """Number of peers, seed of the draw, and whether to ask before much work."""

    peers: Annotated[
        int,
        typer.Option(
            metavar="N", min=3, max=MOST_PEERS, help="The server, the channels and the clients."
        ),
    ] = 100
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the (first) draw.")] = 1
    yes: Yes = False

    def layout(self, parameters: ChannelParameters, more: int = 0) -> ChannelLayout:
        """The layout of the seed, or of one `more` after it. Raises: UseError."""
        from vizpub.simulators.channels.layout import ChannelLayout

        return ChannelLayout(parameters, self.peers - 1 - parameters.channels, self.seed + more)


@dataclass(frozen=True)
class _LoadOptions:
    """Mappings to compare, and updates of each run."""

    mappings: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Compare these mappings, or all (default: --mapping)."),
    ] = None
    updates: Annotated[
        int, typer.Option(metavar="N", min=1000, max=MOST, help="Page updates of each run.")
    ] = 200_000

    def of(self, parameters: ChannelParameters) -> list[ChannelParameters]:
        """The parameters with each mapping. Raises: UseError."""
        from vizpub.simulators.channels.parameters import MAPPINGS

        chosen = comma_list(self.mappings) or (parameters.mapping,)
        names = MAPPINGS if chosen == ("all",) else chosen
        return [replace(parameters, mapping=name) for name in names]


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1000


def _say_readings(settings: Settings, chosen: list[ChannelParameters]) -> None:
    for text in dict.fromkeys(text for one in chosen for text in one.readings):
        settings.say(f"our reading of the paper, which lacks pages: {text}")


def mapping(settings: Settings, parameters: Any, draw: _DrawOptions, output: Output) -> None:
    """Show what a static mapping puts on each channel, and where that breaks (AnalyzeMapping).

    total_p is the summed probability of the channel's pages; breaking_gap_ms the mean gap between
    updates below which it has more to transmit than it can.

    Examples:

    ```
    vizpub lab channels mapping --mapping perfect-c --pages zipf:1 --profile clustered:2,size=5
    ```
    """
    from vizpub.simulators.channels.costs import channel_costs
    from vizpub.simulators.channels.liftoff import analyze_mapping

    layout = draw.layout(parameters)
    confirm_costs(settings, "the mapping takes", channel_costs([layout], 0, 0), yes=draw.yes)
    loads = analyze_mapping(layout)
    rows = [(c.channel, c.pages, c.total_p, _ms(c.breaking_gap_us)) for c in loads]
    show_rows(
        OutputRows(("channel", "pages", "total_p", "breaking_gap_ms"), rows), output, settings
    )
    _say_readings(settings, [parameters])


class _RowKind(StrEnum):
    """Subject of a row."""

    run = "run"
    channel = "channel"
    client = "client"


@dataclass(frozen=True)
class _RowOptions:
    """Subject of the rows."""

    of: Annotated[
        _RowKind, typer.Option(metavar="run|channel|client", help="Print one row for each.")
    ] = _RowKind.run


def measure(
    settings: Settings,
    parameters: Any,
    draw: _DrawOptions,
    load: _LoadOptions,
    subject: _RowOptions,
    output: Output,
) -> None:
    """Measure staleness, queues, losses, fluff and flow rates at one update rate (--gap).

    Staleness of a run is the mean of its clients' averages; its quantiles (p50, p99) are over first
    receptions, of the run or of each client (at most 1.6 % off). complete_share is the share of
    updates that all their clients heard; rates are per second. A queue is the pages that wait,
    without the one that is sent; load is the share of the time in which a channel sends.

    Examples:

    ```
    vizpub lab channels measure --gap 5ms --mappings all
    vizpub lab channels measure --gap 5ms --scheduler fifo --of channel
    vizpub lab channels measure --coalesce --of client -f csv
    ```
    """
    from vizpub.simulators.channels.costs import channel_costs
    from vizpub.simulators.channels.running import run
    from vizpub.simulators.engine.parameters import us

    chosen = load.of(parameters)
    layouts = [draw.layout(one) for one in chosen]
    costs = channel_costs(layouts, load.updates, 1)
    confirm_costs(settings, "the runs take", costs, yes=draw.yes)
    columns, rows_of = _ROWS[subject.of]
    rows: list[tuple[Any, ...]] = []
    for one in chosen:
        layout = draw.layout(one)  # anew, as a layout keeps what it has drawn
        updates = layout.draw_updates(load.updates, us(one.gap))
        measurement = run(layout, updates, apart=subject.of is _RowKind.client)
        rows += [(one.mapping, *row) for row in rows_of(measurement)]
    show_rows(OutputRows(("mapping", *columns), rows), output, settings)
    _say_readings(settings, chosen)


def _run_rows(measurement: ChannelMeasurement) -> Iterator[tuple[Any, ...]]:
    counts, totals = measurement.counts, measurement.totals
    lost, superseded = int(counts.lost.sum()), int(counts.superseded.sum())
    passed, rate = totals["passed"], measurement.flow_rate
    yield totals["updates"], passed, rate, *_measures(measurement), lost, superseded


def _channel_rows(measurement: ChannelMeasurement) -> Iterator[tuple[Any, ...]]:
    counts = measurement.counts
    parts = (
        counts.offered,
        counts.sent,
        counts.superseded,
        counts.lost,
        measurement.load,
        measurement.queue,
    )
    yield from zip(
        range(len(counts.sent)), *(part.tolist() for part in (*parts, counts.longest)), strict=True
    )


def _client_rows(measurement: ChannelMeasurement) -> Iterator[tuple[Any, ...]]:
    heard = measurement.counts.heard.tolist()
    times = (
        measurement.staleness.tolist(),
        measurement.client_quantiles(0.5),
        measurement.client_quantiles(0.99),
    )
    for client, (count, mean, *quantiles) in enumerate(zip(heard, *times, strict=True)):
        yield client, count, *map(_ms, (mean if count else None, *quantiles))


@dataclass(frozen=True)
class _SearchOptions:
    """Seeds, and the definition of overload."""

    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_RUNS, help="Consecutive seeds.")
    ] = 1
    threshold: Annotated[
        float,
        typer.Option(
            metavar="COPIES",
            min=0.0001,
            max=MOST,
            help="Overloaded means that it leaves more copies than this per time of a transmission "
            "(GDFR in that unit; the paper says: a small threshold).",
        ),
    ] = 0.005


def utal(
    settings: Settings,
    parameters: Any,
    draw: _DrawOptions,
    load: _LoadOptions,
    search: _SearchOptions,
    output: Output,
) -> None:
    """Find the update time at liftoff (UTAL): the mean gap at which channels begin to overload.

    Bisects to 0.2 %, with the same updates at shorter and shorter gaps. predicted_ms is the
    prediction of a static mapping. Staleness, fluff and the share of updates that all their clients
    heard are those at the UTAL. If the UTAL is empty, the channels never overload.

    Examples:

    ```
    vizpub lab channels utal --mappings all --seeds 5 --profile clustered:2,size=5
    ```
    """
    from vizpub.simulators.channels.costs import SEARCH_RUNS, channel_costs
    from vizpub.simulators.channels.liftoff import liftoff

    chosen = load.of(parameters)
    layouts = [draw.layout(one, more) for one in chosen for more in range(search.seeds)]
    costs = channel_costs(layouts, load.updates, SEARCH_RUNS)
    confirm_costs(settings, "the searches take", costs, yes=draw.yes)
    rows = []
    for layout in layouts:
        # A layout keeps what it has drawn, so a copy draws.
        point = liftoff(replace(layout), load.updates, search.threshold)
        gaps = (_ms(point.gap_us), _ms(point.predicted_us))
        rows.append((layout.parameters.mapping, layout.seed, *gaps, *_measures(point.at)))
    columns = ("mapping", "seed", "utal_ms", "predicted_ms", *_MEASURES)
    show_rows(OutputRows(columns, rows), output, settings)
    settings.say(
        f"overloaded: more than {search.threshold:g} copies left over per time of a transmission, "
        f"in {load.updates:,} updates"
    )
    _say_readings(settings, chosen)


_MEASURES = (
    "staleness_ms", "staleness_p50_ms", "staleness_p99_ms", "queue_mean", "queue_max",
    "complete_share", "fluff", "sdfr", "gdfr",
)  # fmt: skip


def _measures(at: ChannelMeasurement | None) -> tuple[float | None, ...]:
    if at is None:
        return (None,) * len(_MEASURES)
    times = (at.global_staleness, at.quantile(0.5), at.quantile(0.99))
    queue = float(at.queue.mean()), int(at.counts.longest.max())
    return *map(_ms, times), *queue, at.complete_share, at.fluff, at.sdfr, at.gdfr


@dataclass(frozen=True)
class _RateOptions:
    """Update rates to run, and their figure."""

    steps: Annotated[
        int, typer.Option(metavar="N", min=2, max=1000, help="Number of update rates.")
    ] = 25
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Also draw a figure: a .png, .svg or .pdf file."
        ),
    ] = None


def gdfr(
    settings: Settings,
    parameters: Any,
    draw: _DrawOptions,
    load: _LoadOptions,
    rates: _RateOptions,
    output: Output,
) -> None:
    """Show the GDFR over the update rate: flat at first, then it lifts off.

    The rates go up to 1.6 times the highest at which the first mapping lifts off.

    Examples:

    ```
    vizpub lab channels gdfr --mappings all --figure gdfr.png
    vizpub lab channels gdfr --mapping cd --steps 10 -f csv
    ```
    """
    from vizpub.simulators.channels.costs import SEARCH_RUNS, channel_costs
    from vizpub.simulators.channels.liftoff import curve, liftoff

    if rates.figure is not None:
        figure_format(rates.figure)
    chosen = load.of(parameters)
    layouts = [draw.layout(one) for one in chosen]
    costs = channel_costs(layouts, load.updates, SEARCH_RUNS + rates.steps)
    confirm_costs(settings, "the curves take", costs, yes=draw.yes)
    ends = [liftoff(replace(layout), load.updates).gap_us for layout in layouts]
    liftoff_gaps = [gap for gap in ends if gap is not None]
    if not liftoff_gaps:
        raise UseError("these channels never overload: give more updates, or fewer channels")
    highest = 1.6e6 / min(liftoff_gaps)
    per_second = [highest * step / rates.steps for step in range(1, rates.steps + 1)]
    rows: list[tuple[Any, ...]] = []
    for one in chosen:
        runs = curve(draw.layout(one), [1e6 / rate for rate in per_second], load.updates)
        rows += [
            (one.mapping, rate, 1000 / rate, at.gdfr, at.sdfr, _ms(at.global_staleness))
            for rate, at in zip(per_second, runs, strict=True)
        ]
    columns = ("mapping", "updates_per_second", "gap_ms", "gdfr", "sdfr", "staleness_ms")
    show_rows(OutputRows(columns, rows), output, settings)
    if rates.figure is not None:
        write_figure(_draw(rows), rates.figure, settings)
    _say_readings(settings, chosen)


def _draw(rows: list[tuple[Any, ...]]) -> Figure:
    from vizpub.analytics.figures.canvas import panels
    from vizpub.analytics.figures.styles import PALETTE, figure_style

    with figure_style():
        figure, (panel,) = panels(1, "GDFR over the update rate", 4.0)
        for name, colour in zip(dict.fromkeys(row[0] for row in rows), cycle(PALETTE)):
            points = [(row[1], row[3]) for row in rows if row[0] == name]
            panel.plot(*zip(*points, strict=True), ".-", label=name, color=colour)
        panel.set_xlabel("page updates per second")
        panel.set_ylabel("copies left over per second")
        panel.legend()
    return figure


_ROWS: dict[
    _RowKind, tuple[tuple[str, ...], Callable[[ChannelMeasurement], Iterator[tuple[Any, ...]]]]
] = {
    _RowKind.run: (("updates", "passed", "flow_rate", *_MEASURES, "lost", "superseded"), _run_rows),
    _RowKind.channel: (
        ("channel", "offered", "sent", "superseded", "lost", "load", "queue_mean", "queue_max"),
        _channel_rows,
    ),
    _RowKind.client: (("client", "heard", *_MEASURES[:3]), _client_rows),
}
_COMMANDS: dict[str, Callable[..., None]] = {
    "gdfr": gdfr,
    "mapping": mapping,
    "measure": measure,
    "utal": utal,
}


class _ChannelsGroup(LazyGroup):
    def names(self) -> Sequence[str]:
        return ["simulate", *_COMMANDS]

    def create(self, name: str) -> Callable[..., None]:
        if name == "simulate":
            return simulation_of(CHANNELS)
        from vizpub.simulators.channels.parameters import ChannelParameters

        _COMMANDS[name].__annotations__["parameters"] = ChannelParameters
        return _COMMANDS[name]


GROUP = command_group("channels", _HELP, cls=_ChannelsGroup)
