"""The report of the experiment: Figures 1 to 5 with formula and simulation on one axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from vizpub.analytics.figures.canvas import panels
from vizpub.analytics.figures.styles import colours, figure_style
from vizpub.analytics.prediction.percolation import (
    critical_sigma,
    expected_spread,
    mean_receivers,
    mean_subscribers,
)
from vizpub.experiments.claims import summarize_claims
from vizpub.experiments.formatting import duration_text, estimate_text, markdown_table, number_text
from vizpub.experiments.gossip.judging import (
    GossipResults,
    cascade_histogram,
    histogram_points,
    judge_claims,
)
from vizpub.experiments.gossip.measuring import estimate, measure_networks
from vizpub.experiments.gossip.points import (
    EVENTS,
    FIVE,
    FIXED_GAMMA,
    HUBS,
    HUBS_PEERS,
    SIGMA,
    GossipPoint,
    degrees_of,
    network_cases,
)
from vizpub.experiments.measured import MeasuredExperiment, MeasuringRequest
from vizpub.experiments.report import ExperimentReport, claims_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Gossip on complex networks: formula and simulation (Figures 1 to 5)"
_SOURCE = "S. Ferretti, Publish-Subscribe Systems via Gossip, SIMPLEX 2012"
_ABOUT = f"""
{EVENTS} events of random publishers on each network, which all have the same σ and γ. Lines are
formulas, points the simulation (mean over networks, 95 % interval; in Figure 3 each network).
Figures 1 to 3 are below the threshold, where the mean number of receivers is finite; 4 and 5 above.
"""
_NOTES = (
    "The formulas have no cut-off of degrees (∞); a graph ends at N − 1. Scale-free graphs are "
    "judged by the formula with that cut-off (dashed), which moves the threshold. Their means are "
    "up to rare hubs that few events meet: the standard error is at least that of the model.",
    "Loops and double links are erased, so a = 6, b = 1 has a mean degree of 47.2, not 53.8; "
    "crosses are message passing on the first network itself.",
    "An event percolates if it reaches more than half of R N. P is the share that does, R what it "
    "reaches.",
    "Subscribers are preferred, so the paper's ⟨s⟩ = σ ⟨r⟩ (dotted in Figures 1 and 2) is too low: "
    "who gets an event from a neighbour subscribes with probability σ / Γ, not σ.",
    "Sums (1) and (2) of the paper must begin at j = i, and 2,482 needs the floor inside its sum.",
    "No TTL ends an event, as in the formulas. Twice the diameter would: near the threshold events "
    "take long detours.",
    "The paper names no N for Figures 3 and 4, and no σ and γ of its points.",
)


def describe_cases(scale: str) -> Iterator[str]:
    """Yield a line for each kind of network."""
    networks = Counter((c.topology, c.peers, len(c.points)) for c in network_cases(scale))
    for (topology, peers, points), count in networks.items():
        yield f"{topology}, {peers:,} peers: {count} networks at {points} points"


def make_report(request: MeasuringRequest) -> ExperimentReport:
    """Count the events of all networks by compiled code in Spark tasks."""
    rows = measure_networks(network_cases(request.scale, request.seeds), request)
    return report_on(GossipResults(rows), request.scale)


def report_on(results: GossipResults, scale: str) -> ExperimentReport:
    """Report on measured networks."""
    claims, rows = judge_claims(results), results.rows
    networks = len({(row.topology, row.peers, row.seed) for row in rows})
    values = [{**asdict(row), "cascades": " ".join(map(str, row.cascades))} for row in rows]
    sections: dict[str, Iterable[str]] = {}
    figures = {}
    for name, (draw, caption) in _FIGURES.items():
        sections[caption] = [f"![{caption}](figures/{name}.png)"]
        with figure_style():
            figures[name] = draw(results)
    sections["Above the threshold"] = _table_lines(results)
    return ExperimentReport(
        TITLE,
        _ABOUT,
        _SOURCE,
        summarize_claims(claims),
        f"scale `{scale}`, {networks} networks, {EVENTS * len(rows):,} events in "
        f"{duration_text(sum(row.seconds for row in rows))} of processor time",
        claims,
        _NOTES,
        sections,
        {"values": pa.Table.from_pylist(values), "claims": claims_table(claims)},
        figures,
    )


EXPERIMENT = MeasuredExperiment(
    TITLE, _ABOUT, _SOURCE, _NOTES, network_cases, describe_cases, estimate, make_report
)


_ABOVE = ("receivers", "receivers_then", "subscribers_then", "sent")


def _table_lines(results: GossipResults) -> Iterator[str]:
    heads = ("topology", "N", "σ", "γ", "P R N", "receivers", "if it percolates",
             "subscribers reached then", "copies sent")  # fmt: skip
    rows = []
    for topology, peers in [*((FIVE, n) for n in results.sizes(FIVE)), (HUBS, HUBS_PEERS)]:
        for point in results.points(topology, peers):
            expected = expected_spread(degrees_of(topology), *point)
            network = (topology, peers, point)
            if expected.receivers:
                rows.append((
                    topology, f"{peers:,}", f"{point.sigma:g}", f"{point.gamma:g}",
                    number_text(expected.percolates * expected.receivers * peers),
                    *(estimate_text(results.mean(measure, *network)) for measure in _ABOVE),
                ))  # fmt: skip
    yield from markdown_table(heads, rows)


def _draw_below(results: GossipResults, kind: str) -> Figure:
    """Receivers and subscribers over sigma, a line for each gamma, a panel for each topology."""
    topologies = sorted({name for name, _, _ in results.places if name.startswith(kind)})
    figure, rows = panels(len(topologies), "", 2.8)
    for panel, topology in zip(rows, topologies, strict=True):
        peers = results.sizes(topology)[-1]
        all_points = results.points(topology, peers)
        gammas = sorted({point.gamma for point in all_points})
        for gamma, colour in zip(gammas, colours(), strict=False):
            _draw_formulas(panel, topology, None, gamma, colour)
            if kind == "scale-free":
                _draw_formulas(panel, topology, peers, gamma, colour, "--")
            points = [
                p
                for p in all_points
                if p.gamma == gamma and np.isfinite(mean_receivers(degrees_of(topology), *p))
            ]
            x = [p.sigma for p in points]
            receivers = [results.mean("receivers", topology, peers, p) for p in points]
            half = [0 if e.high is None else (e.high - (e.low or 0)) / 2 for e in receivers]
            panel.errorbar(x, [e.value or 0 for e in receivers], half, fmt="o", color=colour,
                           ms=2.5, lw=0.8, label=f"γ = {gamma:g}")  # fmt: skip
            subscribers = results.means("subscribers", topology, peers, points)
            panel.plot(x, subscribers, "x", color=colour, ms=3)
        panel.set(yscale="log", ylim=(0.01, 300), xlabel="σ", ylabel="peers")
        panel.set_title(f"{topology}, N = {peers:,} (•: receivers, ×: subscribers)", fontsize=8)
        panel.legend(fontsize=6, ncols=3)
    return figure


def _draw_formulas(
    panel: Axes, topology: str, peers: int | None, gamma: float, colour: str, style: str = "-"
) -> None:
    """The formulas for receivers and, fainter, for subscribers (dotted: the paper's), up to the
    threshold.
    """
    degrees = degrees_of(topology, peers)
    critical = min(critical_sigma(degrees, gamma), 1.0)
    if critical <= 0:
        return
    sigma = np.linspace(0, critical, 201)[:-1]
    receivers = np.array([mean_receivers(degrees, sigma_, gamma) for sigma_ in sigma.tolist()])
    panel.plot(sigma, receivers, style, color=colour, lw=1)
    subscribers = [mean_subscribers(degrees, sigma_, gamma) for sigma_ in sigma.tolist()]
    panel.plot(sigma, subscribers, style, color=colour, lw=1, alpha=0.4)
    if peers is None:
        panel.plot(sigma, sigma * receivers, ":", color=colour, lw=1, alpha=0.4)


def _draw_figure_3(results: GossipResults) -> Figure:
    """Formula against simulation below the threshold: a point for each network."""
    figure, (panel,) = panels(1, "", 3.4)
    degrees = degrees_of(FIVE)
    for peers, colour in zip(results.sizes(FIVE), colours(), strict=False):
        pairs = [
            (mean_receivers(degrees, *point), row.receivers)
            for point in results.points(FIVE, peers)
            for row in results.of(FIVE, peers, point)
        ]
        expected, ours = zip(*(pair for pair in pairs if np.isfinite(pair[0])), strict=True)
        panel.plot(expected, ours, "o", color=colour, ms=1.5, alpha=0.5, label=f"N = {peers:,}")
    panel.axline((1, 1), slope=1, color="black", lw=0.8)
    panel.set(xscale="log", yscale="log", xlabel="receivers, formula",
              ylabel="receivers, simulation")  # fmt: skip
    panel.legend(fontsize=7)
    return figure


def _draw_above(results: GossipResults, topology: str) -> Figure:
    """Shares of N over gamma at σ = .1, and over sigma at one gamma."""
    at_both = GossipPoint(SIGMA, 0.6)
    sizes = [n for n in results.sizes(topology) if results.of(topology, n, at_both)]
    figure, (first, second) = panels(2, "", 2.8)
    _draw_shares(first, results, (topology, sizes), "gamma", f"σ = {SIGMA:g}")
    _draw_shares(second, results, (topology, sizes), "sigma", f"γ = {FIXED_GAMMA:g}")
    return figure


def _draw_shares(
    panel: Axes,
    results: GossipResults,
    networks: tuple[str, Sequence[int]],
    axis: Literal["sigma", "gamma"],
    fixed: str,
) -> None:
    topology, sizes = networks
    fixed_point = GossipPoint(SIGMA, FIXED_GAMMA)
    grid = np.linspace(0, 1, 101).tolist()
    spreads = [
        expected_spread(degrees_of(topology), *fixed_point._replace(**{axis: x})) for x in grid
    ]
    products = [spread.percolates * spread.receivers for spread in spreads]
    panel.plot(grid, products, "-", color="black", lw=1, label="P R, formula")
    receivers = [spread.receivers for spread in spreads]
    panel.plot(grid, receivers, "--", color="black", lw=1, label="R, formula")
    for peers, colour in zip(sizes, colours(), strict=False):
        points = [
            point
            for point in results.points(topology, peers)
            if point == fixed_point._replace(**{axis: getattr(point, axis)})
        ]
        x = [getattr(point, axis) for point in points]
        ours, percolated, predicted = (
            results.means(measure, topology, peers, points) / peers
            for measure in ("receivers", "receivers_then", "predicted")
        )
        panel.plot(x, ours, "o", color=colour, ms=3, label=f"N = {peers:,}")
        panel.plot(x, percolated, "^", color=colour, ms=3)
        if np.isfinite(predicted).any():
            panel.plot(x, predicted, "x", color="black", ms=5, label="message passing")
    panel.set(xlabel={"gamma": "γ", "sigma": "σ"}[axis], ylabel="share of peers")
    panel.set_title(f"{fixed} (•: all events, ▲: those that percolate)", fontsize=8)
    panel.legend(fontsize=6)


def _draw_cascades(results: GossipResults) -> Figure:
    points = histogram_points(results)
    figure, (panel,) = panels(1, "", 3.4)
    for point, colour in zip(points, colours(), strict=False):
        ours, exact = cascade_histogram(results, point)
        sizes = np.arange(ours.size)
        panel.plot(sizes[1:], exact[1:], "-", color=colour, lw=1)
        seen = np.flatnonzero(ours)
        label = f"σ = {point.sigma:.3g}, γ = {point.gamma:g}"
        panel.plot(seen, ours[seen], "o", color=colour, ms=2.5, label=label)
    panel.set(xscale="log", yscale="log", ylim=(1e-5, 1), xlabel="receivers of an event",
              ylabel="share of events")  # fmt: skip
    panel.legend(fontsize=7)
    return figure


def _draw_copies(results: GossipResults) -> Figure:
    """Copies sent per event, over gamma."""
    figure, (panel,) = panels(1, "", 3.0)
    places = [*((FIVE, n) for n in results.sizes(FIVE)), (HUBS, HUBS_PEERS)]
    for (topology, peers), colour in zip(places, colours(), strict=False):
        points = [p for p in results.points(topology, peers) if p.sigma == SIGMA]
        if len(points) > 1:
            sent = results.means("sent", topology, peers, points) / peers
            panel.plot(
                [p.gamma for p in points],
                sent,
                "o-",
                color=colour,
                ms=3,
                lw=1,
                label=f"{topology}, N = {peers:,}",
            )
    panel.set(xlabel="γ", ylabel="copies sent per peer", yscale="log")
    panel.set_title(f"σ = {SIGMA:g}", fontsize=8)
    panel.legend(fontsize=7)
    return figure


_FIGURES: dict[str, tuple[Callable[[GossipResults], Figure], str]] = {
    "figure-1": (
        partial(_draw_below, kind="poisson"),
        "Figure 1: Poisson degrees, below the threshold",
    ),
    "figure-2": (
        partial(_draw_below, kind="scale-free"),
        "Figure 2: scale-free degrees, below the threshold",
    ),
    "figure-3": (_draw_figure_3, "Figure 3: Poisson 5, formula against simulation"),
    "figure-4": (partial(_draw_above, topology=FIVE), "Figure 4: Poisson 5, above the threshold"),
    "figure-5": (
        partial(_draw_above, topology=HUBS),
        "Figure 5: a = 6, b = 1, above the threshold",
    ),
    "cascades": (_draw_cascades, "Sizes of cascades, and their exact distribution"),
    "copies": (_draw_copies, "Copies sent per event"),
}
