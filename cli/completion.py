"""Completions for the shell (Tab). On an error there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vizpub.analytics.options import ENGINES
from vizpub.model.errors import VizpubError

if TYPE_CHECKING:
    from vizpub.cypher import Parameter
    from vizpub.model.own import OwnMetric

FORMATS = ("table", "json", "jsonl", "csv", "md")
"""Output formats of rows."""
KINDS = ("series", "ecdf", "ccdf", "density", "coverage", "tree", "overlay")
"""Kinds of figures."""
LAYOUTS = ("ring", "layers", "force")
"""Layouts of a dissemination tree or an overlay."""
SOURCES = (
    *("auto", "reports", "libp2p", "interop", "hermes"),
    *("vizpub", "nebula", "edges", "deliveries"),
)
"""Formats of the input."""
_MOST = 200
"""Completions shown at most; a run may have 100,000 peers."""

_Completer = Callable[[typer.Context, str], list[str]]


def _offering(names: Callable[[typer.Context], Iterable[str]]) -> _Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = [name for name in names(ctx) if name.startswith(incomplete)]
        except Exception:  # the shell cannot show an error
            return []
        return found[:_MOST]

    return complete


def _typed(ctx: typer.Context, name: str, place: int) -> str:
    """An argument already typed. While an option lacks its value, arguments are not parsed yet."""
    return str(ctx.args[place] if len(ctx.args) > place else ctx.params[name])


def _workspace(ctx: typer.Context) -> Path:
    return Path(ctx.find_root().params["workspace"])


complete_formats = _offering(lambda _: FORMATS)
complete_kinds = _offering(lambda _: KINDS)
complete_layouts = _offering(lambda _: LAYOUTS)
complete_sources = _offering(lambda _: SOURCES)
complete_engines = _offering(lambda _: ENGINES)


@_offering
def complete_runs(ctx: typer.Context) -> Iterable[str]:
    """Names of the runs of the workspace."""
    from vizpub.runstore.store import run_names

    return run_names(_workspace(ctx))


def _offering_names(table: str) -> _Completer:
    """Names of the run already typed, long ones by beginnings that commands take for them."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from vizpub.model.naming import beginnings

        try:
            names = sorted(_column(ctx, table, "name"))
        except Exception:  # the shell cannot show an error
            return []
        return [
            form if form.startswith(incomplete) else name
            for name, form in zip(names, beginnings(names), strict=True)
            if name.startswith(incomplete)
        ][:_MOST]

    return complete


complete_topics = _offering_names("topics")
complete_peers = _offering_names("peers")
complete_messages = _offering_names("publications")
_NAMES = {"peer": complete_peers, "topic": complete_topics, "message": complete_messages}


@_offering
def complete_layers(ctx: typer.Context) -> Iterable[str]:
    """Layers of the links of the run already typed."""
    return sorted(set(_column(ctx, "links", "layer")))


def _column(ctx: typer.Context, table: str, column: str) -> Iterator[str]:
    from vizpub.runstore.store import open_run

    run = open_run(_workspace(ctx), _typed(ctx, "run", 0))
    for batch in run.scan(table, [column]):
        yield from batch[column].unique().to_pylist()


@_offering
def complete_tables(ctx: typer.Context) -> Iterable[str]:
    """Names of the tables."""
    from vizpub.model.tables import TABLES

    return [table.name for table in TABLES]


@_offering
def complete_metrics(ctx: typer.Context) -> Iterable[str]:
    """Names of the metrics tables."""
    from vizpub.model.metrics import METRICS

    return [*(table.name.removeprefix("metrics/") for table in METRICS), "gauges"]


@_offering
def complete_columns(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics table already typed, with those of the run already typed."""
    from vizpub.model.own import with_own
    from vizpub.model.tables import table
    from vizpub.runstore.store import open_run

    own: Iterable[OwnMetric] = ()
    with suppress(VizpubError):
        own = open_run(_workspace(ctx), _typed(ctx, "run", 0)).manifest.own
    return with_own(table(f"metrics/{_typed(ctx, 'table', 1)}"), own).names


@_offering
def complete_queries(ctx: typer.Context) -> Iterable[str]:
    """Names of the shipped queries."""
    from vizpub import cypher

    return cypher.names("queries")


@_offering
def complete_parameters(ctx: typer.Context) -> Iterable[str]:
    """Parameters of the query already typed, up to the equals sign, and words they may be."""
    return [f"{p.name}={word}" for p in _asked(ctx) for word in p.words or [""]]


def complete_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Values of the next parameter of the query already typed: words, or names of the run."""
    try:
        parameter = _asked(ctx)[len(ctx.params.get("values") or ())]
    except Exception:  # the shell cannot show an error
        return []
    if of_run := _NAMES.get(parameter.type):
        return of_run(ctx, incomplete)
    return [word for word in parameter.words if word.startswith(incomplete)]


def _asked(ctx: typer.Context) -> list[Parameter]:
    """What the query already typed asks of the user, in the order of its header."""
    from vizpub import cypher

    asked = cypher.statement("queries", _typed(ctx, "name", 1)).parameters
    return [p for p in asked if p.type not in ("run", "levels", "ranges")]


@_offering
def complete_plotted(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics tables."""
    from vizpub.model.metrics import METRICS

    return sorted({name for table in METRICS for name in table.names if name not in table.key})
