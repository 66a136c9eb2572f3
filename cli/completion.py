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
JUDGEMENT_FORMATS = (*FORMATS, "junit")
"""Output formats of conditions that hold or do not."""
KINDS = ("series", "ecdf", "ccdf", "density", "survival", "coverage", "tree", "overlay")
"""Kinds of figures."""
LAYOUTS = ("ring", "layers", "force")
"""Layouts of a dissemination tree or an overlay."""
SOURCES = (
    *("auto", "reports", "libp2p", "interop", "hermes", "xatu", "bctrace"),
    *("vizpub", "nebula", "edges", "deliveries", "lines"),
)
"""Formats of the input."""
_MOST = 200
"""Completions shown at most; a run may have 100,000 peers."""

_Completer = Callable[[typer.Context, str], list[str]]


def _completer(list_names: Callable[[typer.Context], Iterable[str]]) -> _Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            matches = [name for name in list_names(ctx) if name.startswith(incomplete)]
        except Exception:  # the shell cannot show an error
            return []
        return matches[:_MOST]

    return complete


def _typed_argument(ctx: typer.Context, name: str, place: int) -> str:
    """An argument already typed. While an option lacks its value, arguments are not parsed yet."""
    return str(ctx.args[place] if len(ctx.args) > place else ctx.params[name])


def _workspace(ctx: typer.Context) -> Path:
    return Path(ctx.find_root().params["workspace"])


complete_formats = _completer(lambda _: FORMATS)
complete_judgement_formats = _completer(lambda _: JUDGEMENT_FORMATS)
complete_kinds = _completer(lambda _: KINDS)
complete_layouts = _completer(lambda _: LAYOUTS)
complete_sources = _completer(lambda _: SOURCES)
complete_engines = _completer(lambda _: ENGINES)


@_completer
def complete_runs(ctx: typer.Context) -> Iterable[str]:
    """Names of the runs of the workspace."""
    from vizpub.runstore.store import run_names

    return run_names(_workspace(ctx))


def _name_completer(table: str) -> _Completer:
    """Complete names of the run already typed, long names by their shortest unique beginnings."""

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


complete_topics = _name_completer("topics")
complete_peers = _name_completer("peers")
complete_messages = _name_completer("publications")
_NAMES = {"peer": complete_peers, "topic": complete_topics, "message": complete_messages}


@_completer
def complete_layers(ctx: typer.Context) -> Iterable[str]:
    """Layers of the links of the run already typed."""
    return sorted(set(_column(ctx, "links", "layer")))


@_completer
def complete_attributes(ctx: typer.Context) -> Iterable[str]:
    """Attributes of the peers of the run already typed."""
    return sorted(set(_column(ctx, "attributes", "key")))


def _column(ctx: typer.Context, table: str, column: str) -> Iterator[str]:
    from vizpub.runstore.store import open_run

    run = open_run(_workspace(ctx), _typed_argument(ctx, "run", 0))
    for batch in run.scan(table, [column]):
        yield from batch[column].unique().to_pylist()


@_completer
def complete_tables(ctx: typer.Context) -> Iterable[str]:
    """Names of the tables."""
    from vizpub.model.tables import TABLES

    return [table.name for table in TABLES]


@_completer
def complete_metrics(ctx: typer.Context) -> Iterable[str]:
    """Names of the metrics tables."""
    from vizpub.cli.commands.everyday.metrics import metric_tables

    return metric_tables()


@_completer
def complete_columns(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics table already typed, with those of the run already typed."""
    from vizpub.model.own import with_own
    from vizpub.model.tables import table
    from vizpub.runstore.store import open_run

    own_metrics: Iterable[OwnMetric] = ()
    with suppress(VizpubError):
        own_metrics = open_run(_workspace(ctx), _typed_argument(ctx, "run", 0)).manifest.own
    return with_own(table(f"metrics/{_typed_argument(ctx, 'table', 1)}"), own_metrics).names


@_completer
def complete_queries(ctx: typer.Context) -> Iterable[str]:
    """Names of the shipped queries."""
    from vizpub import cypher

    return cypher.names("queries")


@_completer
def complete_parameters(ctx: typer.Context) -> Iterable[str]:
    """Parameters of the query already typed, up to the equals sign, and words they may be."""
    return [f"{p.name}={word}" for p in _query_parameters(ctx) for word in p.words or [""]]


def complete_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Values of the next parameter of the query already typed: words, or names of the run."""
    try:
        parameter = _query_parameters(ctx)[len(ctx.params.get("values") or ())]
    except Exception:  # the shell cannot show an error
        return []
    if of_run := _NAMES.get(parameter.type):
        return of_run(ctx, incomplete)
    return [word for word in parameter.words if word.startswith(incomplete)]


def _query_parameters(ctx: typer.Context) -> list[Parameter]:
    """Parameters that the user gives to the query already typed, in the order of its header."""
    from vizpub import cypher

    parameters = cypher.statement("queries", _typed_argument(ctx, "name", 1)).parameters
    return [p for p in parameters if p.type not in ("run", "levels", "ranges")]


@_completer
def complete_compared(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics tables."""
    return _metric_columns()


@_completer
def complete_plotted(ctx: typer.Context) -> Iterable[str]:
    """Columns of the metrics tables, of deliveries, and of turnover."""
    from vizpub.model.metrics import DELIVERY_METRICS
    from vizpub.questions.churn.turnover import TURNOVER_COLUMNS

    return sorted({*_metric_columns(), *DELIVERY_METRICS, *TURNOVER_COLUMNS})


def _metric_columns() -> list[str]:
    from vizpub.model.metrics import METRICS

    return sorted({name for table in METRICS for name in table.names if name not in table.key})
