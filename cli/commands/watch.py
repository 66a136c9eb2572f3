"""`vizpub watch`: a collected run while it grows."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import RunName, command
from cli.settings import Settings
from cli.terminal.formatting import cell_text

if TYPE_CHECKING:
    from rich.table import Table

    from collector.reading import Collector

COLUMNS = ("interval", "network_size", "links", "weak_components", "diameter", "hit_ratio")
_SHOWN = 12
_FACTS = (
    *("state", "peers", "reached", "closed", "in_run", "in_neo4j"),
    *("lag_s", "log_bytes", "reports", "late", "refused", "error", "load_error"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch", rich_help_panel="Runs")(command(watch))


def watch(
    settings: Settings,
    run: RunName,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Of a collector elsewhere.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="End after N intervals.")
    ] = None,
) -> None:
    """Show a run that is collected: the last intervals, how far it is, what was refused.

    A collector of the workspace is found by itself. Elsewhere it needs its URL, and the token to
    read in VIZPUB_TOKEN.

    Examples:

    ```
    vizpub watch lab
    vizpub watch lab --rows 10
    vizpub watch lab --url https://collector.example:8443/v1/runs/lab
    ```
    """
    from collector.place import Place
    from collector.reading import collector_of

    found = collector_of(Place(settings.workspace, run), url)
    if sys.stdout.isatty():
        _live(found, rows, color=settings.color)
    else:
        _lines(found, rows)


def _lines(collector: Collector, most: int | None) -> None:
    """A line per interval."""
    print("\t".join(COLUMNS))
    count = 0
    for kind, told in collector.events():
        if kind == "interval":
            print("\t".join(cell_text(told.get(name)) for name in COLUMNS), flush=True)
            count += 1
            if count == most:
                return


def _live(collector: Collector, most: int | None, *, color: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    rows: deque[dict[str, Any]] = deque(maxlen=_SHOWN)
    progress: dict[str, Any] = {}
    count = 0
    with Live(console=Console(no_color=not color), refresh_per_second=4) as display:
        for kind, told in collector.events():
            if kind == "interval":
                rows.append(told)
                count += 1
                progress |= collector.get()["progress"]
            else:
                progress |= told
            display.update(_table(progress, rows))
            if count == most:
                return


def _table(progress: dict[str, Any], rows: deque[dict[str, Any]]) -> Table:
    from rich.table import Table

    facts = [f"{name} {progress[name]}" for name in _FACTS if progress.get(name) is not None]
    table = Table(*COLUMNS, caption=", ".join(facts), caption_justify="left")
    for row in rows:
        table.add_row(*(cell_text(row.get(name)) for name in COLUMNS))
    return table
