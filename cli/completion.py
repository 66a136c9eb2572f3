"""What the shell completes on Tab; on an error, nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer

from analytics.measures import ENGINES

FORMATS = ("table", "json", "jsonl", "csv", "md")
"""How rows are written."""
KINDS = ("series", "ecdf", "ccdf", "density", "coverage", "tree", "overlay")
"""The kinds of figures."""
LAYOUTS = ("ring", "layers")
"""How a message's dissemination is laid out."""
SOURCES = ("auto", "reports", "libp2p", "interop", "vizpub", "edges", "deliveries")
"""What an input may be."""
_MOST = 200
"""More than this no one reads; a run may have 100,000 peers."""

Completer = Callable[[typer.Context, str], list[str]]


def _offering(names: Callable[[typer.Context], Iterable[str]]) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = [name for name in names(ctx) if name.startswith(incomplete)]
        except Exception:  # whatever it is, a shell cannot show it
            return []
        return found[:_MOST]

    return complete


def _typed(ctx: typer.Context, name: str, place: int) -> str:
    """An argument already typed; behind an option that waits for its value they are bare."""
    return str(ctx.args[place] if len(ctx.args) > place else ctx.params[name])


def _workspace(ctx: typer.Context) -> Path:
    return Path(ctx.find_root().params["workspace"])


@_offering
def complete_formats(ctx: typer.Context) -> Iterable[str]:
    """How rows are written."""
    return FORMATS


@_offering
def complete_kinds(ctx: typer.Context) -> Iterable[str]:
    """The kinds of figures."""
    return KINDS


@_offering
def complete_layouts(ctx: typer.Context) -> Iterable[str]:
    """How a message's dissemination is laid out."""
    return LAYOUTS


@_offering
def complete_sources(ctx: typer.Context) -> Iterable[str]:
    """What an input may be."""
    return SOURCES


@_offering
def complete_engines(ctx: typer.Context) -> Iterable[str]:
    """What may measure the overlay."""
    return ENGINES


@_offering
def complete_runs(ctx: typer.Context) -> Iterable[str]:
    """Names of the runs of the workspace."""
    from runstore.store import run_names

    return run_names(_workspace(ctx))


@_offering
def complete_topics(ctx: typer.Context) -> Iterable[str]:
    """Topics of the run already typed."""
    return _keys(ctx, "topics")


@_offering
def complete_peers(ctx: typer.Context) -> Iterable[str]:
    """Peers of the run already typed."""
    return _keys(ctx, "peers")


@_offering
def complete_layers(ctx: typer.Context) -> Iterable[str]:
    """Layers of the links of the run already typed."""
    return sorted(set(_column(ctx, "links", "layer")))


def _keys(ctx: typer.Context, table: str) -> Iterable[str]:
    return sorted(_column(ctx, table, "name"))


def _column(ctx: typer.Context, table: str, column: str) -> Iterator[str]:
    from runstore.store import open_run

    run = open_run(_workspace(ctx), _typed(ctx, "run", 0))
    for batch in run.scan(table, [column]):
        yield from batch[column].unique().to_pylist()


@_offering
def complete_tables(ctx: typer.Context) -> Iterable[str]:
    """Names of the tables."""
    from model.tables import TABLES

    return [table.name for table in TABLES]


@_offering
def complete_metrics(ctx: typer.Context) -> Iterable[str]:
    """Names of the metrics tables."""
    from model.metrics import METRICS

    return [table.name.removeprefix("metrics/") for table in METRICS]


@_offering
def complete_columns(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics table already typed."""
    from model.tables import table

    return table(f"metrics/{_typed(ctx, 'table', 1)}").names


@_offering
def complete_queries(ctx: typer.Context) -> Iterable[str]:
    """Names of the shipped queries."""
    import cypher

    return cypher.names("queries")


@_offering
def complete_parameters(ctx: typer.Context) -> Iterable[str]:
    """Parameters of the query already typed, up to the equals sign."""
    import cypher

    asked = cypher.statement("queries", _typed(ctx, "name", 0)).parameters
    return [f"{p.name}=" for p in asked if p.type not in ("run", "levels")]


@_offering
def complete_plotted(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics tables."""
    from model.metrics import METRICS

    return sorted({name for table in METRICS for name in table.names if name not in table.key})
