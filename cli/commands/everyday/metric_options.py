"""Options of `vizpub metrics`, and the tables that each of them applies to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.completion import complete_columns, complete_peers
from vizpub.cli.options import By, Layers, Limit, OnlyTopic, check_duration, drop_defaults
from vizpub.cli.terminal.help import RARE
from vizpub.model.errors import UseError


@dataclass(frozen=True)
class MetricOptions:
    """Which rows and columns of a metrics table."""

    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…", help="Print only these columns.", autocompletion=complete_columns
        ),
    ] = None
    peer: Annotated[
        str | None,
        typer.Option(metavar="PEER", help="Print only this peer.", autocompletion=complete_peers),
    ] = None
    topic: OnlyTopic = None
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="A,-B,…",
            help="Sort by these columns, in descending order after a -; unknown values come last.",
            autocompletion=complete_columns,
        ),
    ] = None
    limit: Limit = 0
    layers: Layers = None
    by: By = None
    receivers: Annotated[
        bool,
        typer.Option(
            "--receivers",
            help="With --by, group messages by who received them, not by who published them.",
        ),
    ] = False
    gamma: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="For percolation: probability that a neighbour without a subscription gets a copy "
            "(default: as observed in the run).",
            rich_help_panel=RARE,
        ),
    ] = None
    sigma: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="For percolation: probability that a peer subscribes (default: as observed).",
            rich_help_panel=RARE,
        ),
    ] = None
    d_low: Annotated[
        int | None,
        typer.Option(
            "--d-low",
            metavar="N",
            min=0,
            help="For turnover: count neighbourhoods of fewer peers (default: gossipsub's 4).",
            rich_help_panel=RARE,
        ),
    ] = None
    d_high: Annotated[
        int | None,
        typer.Option(
            "--d-high",
            metavar="N",
            min=0,
            help="For turnover: count neighbourhoods of more peers (default: gossipsub's 12).",
            rich_help_panel=RARE,
        ),
    ] = None
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="DURATION",
            callback=check_duration,
            help="For coverage: print the share of the eligible peers that had the message after "
            "this time. For reachability: count up to this time.",
            rich_help_panel=RARE,
        ),
    ] = None
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="PEER",
            help="For clocks, and with --correct-clocks: compare them with that of this peer "
            "(default: the one that exchanged messages with most others).",
            autocompletion=complete_peers,
            rich_help_panel=RARE,
        ),
    ] = None
    correct_clocks: Annotated[
        bool,
        typer.Option(
            "--correct-clocks",
            help="For coverage and messages: correct delays by the offsets of clocks that messages "
            "bound on both sides.",
            rich_help_panel=RARE,
        ),
    ] = False
    totals: Annotated[
        bool,
        typer.Option(
            "--totals",
            help="Add up the counts of all known intervals, in one row per peer or topic.",
        ),
    ] = False


_TABLES_OF = {
    "--within": ("coverage", "reachability"),
    "--correct-clocks": ("coverage", "messages"),
    "--reference": ("clocks",),
    "--d-low": ("turnover",),
    "--d-high": ("turnover",),
    "--gamma": ("percolation",),
    "--sigma": ("percolation",),
}
"""The tables of options that few tables have."""
_BY = ("clocks", "coverage", "overlay", "percolation", "gauges")
"""Tables that are not of groups."""
_LAYERS = ("messages", "coverage", "duplicates", "amplification", "clocks", "control", "gauges")
"""Tables that no layer changes."""
_NOT_ADDED = ("messages", "lifetimes", "survival", "percolation", "gauges")
"""Tables without counts per interval, beside those of arrivals and of mixing."""


def check_options(ctx: typer.Context, table: str, part: MetricOptions) -> MetricOptions:
    """The options without defaults of other tables. Raises: UseError for one that is given."""
    part = _drop_others(ctx, table, part)
    _refuse_others(table, part)
    return part


def _drop_others(ctx: typer.Context, table: str, part: MetricOptions) -> MetricOptions:
    from vizpub.questions.arrivals import ARRIVALS
    from vizpub.questions.attributes.mixing import MIXING

    others = [option for option, tables in _TABLES_OF.items() if table not in tables]
    if part.correct_clocks and "--correct-clocks" not in others:
        others.remove("--reference")
    others += ["--by"] if table in _BY else []
    others += ["--layers"] if table in _LAYERS else []
    others += ["--totals"] if table in (*ARRIVALS, *MIXING, *_NOT_ADDED) else []
    others += ["--peer", "--topic"] if table in MIXING else []
    part = drop_defaults(ctx, part, *others)
    return part if part.by and table == "messages" else drop_defaults(ctx, part, "--receivers")


def _refuse_others(table: str, part: MetricOptions) -> None:
    """Raises: UseError for an option of another table."""
    for option, value in (
        ("--within", part.within),
        ("--correct-clocks", part.correct_clocks or None),
        ("--reference", None if part.correct_clocks else part.reference),
        ("--d-low", part.d_low),
        ("--d-high", part.d_high),
        ("--gamma", part.gamma),
        ("--sigma", part.sigma),
    ):
        if value is not None and table not in (of := _TABLES_OF[option]):
            raise UseError(f"{option} is for: vizpub metrics RUN {' or '.join(of)}")
    if part.receivers and (part.by is None or table != "messages"):
        raise UseError("--receivers is for: vizpub metrics RUN messages --by KEY")
