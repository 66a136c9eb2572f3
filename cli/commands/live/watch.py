"""`vizpub live watch`: shows a run while it is collected."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.options import CollectorUrl, RunName
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import cell_text, printable
from vizpub.model.errors import VizpubError

if TYPE_CHECKING:
    from rich.table import Table

    from vizpub.collector.http.client import CollectorClient, Event
    from vizpub.collector.place import CollectionPlace

WAITING = "waiting for the collector"
BACK = "the collector is back"

COLUMNS = ("interval", "network_size", "links", "weak_components", "diameter", "hit_ratio")
_SHOWN = 12
_FACTS = (
    *("state", "peers", "reached", "closed", "in_run", "in_neo4j"),
    *("lag_s", "log_bytes", "left_intervals", "kafka_lag", "reports", "late", "refused"),
    *("error", "load_error", "kafka_error"),
)


def watch(
    settings: Settings,
    run: RunName,
    url: CollectorUrl = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="End after N intervals.")
    ] = None,
) -> None:
    """Show a run while it is collected: the last intervals, its progress, refused reports.

    For a collector elsewhere, give --url, and the token `read` in VIZPUB_TOKEN. If the collector
    disappears, the command waits for it until Ctrl-C or the end of the run; with --rows, that is an
    error (exit code 3).

    Examples:

    ```
    vizpub live watch lab
    vizpub live watch lab --rows 10
    vizpub live watch lab --url https://collector.example:8443/v1/runs/lab
    ```
    """
    from vizpub.collector.http.client import collector_of, follow_events
    from vizpub.collector.place import CollectionPlace

    place = CollectionPlace(settings.workspace, run)
    if url is None and not place.is_held() and _has_ended(place):
        settings.say(f"run '{run}' has ended (see: vizpub metrics {run})")
        return

    def find() -> CollectorClient:
        return collector_of(place, url)

    # Who asks for a number of rows wants these, or an error.
    events = (
        find().events() if rows else follow_events(find, lambda: url is None and _has_ended(place))
    )
    show = _show_live if sys.stdout.isatty() else _print_lines
    if not show(settings, events, rows):
        settings.say(f"run '{run}' has ended")


def _has_ended(place: CollectionPlace) -> bool:
    """Return True if the run has ended, also where no collector runs to say so."""
    from vizpub.runstore.store import open_run

    with suppress(VizpubError):
        return open_run(place.workspace, place.run).manifest.ended
    return False


def _print_lines(settings: Settings, events: Iterable[Event], most: int | None) -> bool:
    """Print a line per interval; return True after `most` of them."""
    count, is_gone = 0, False
    for number, (kind, content) in enumerate(events):
        if not number:  # a collector answers
            print("\t".join(COLUMNS), flush=True)
        if kind == "interval":
            print("\t".join(cell_text(content.get(name)) for name in COLUMNS), flush=True)
            count += 1
            if count == most:
                return True
        if is_gone != (kind == "gone"):
            is_gone = not is_gone
            why = f"{WAITING}: {content['why']}" if is_gone else ""
            settings.say(why or BACK)
    return False


def _show_live(settings: Settings, events: Iterable[Event], most: int | None) -> bool:
    """Show a table that changes; return True after `most` intervals."""
    from rich.console import Console
    from rich.live import Live

    rows: deque[dict[str, Any]] = deque(maxlen=_SHOWN)
    progress: dict[str, Any] = {}
    away: dict[str, Any] | None = None
    count = 0
    console = Console(no_color=not settings.color)
    with Live(console=console, refresh_per_second=4) as display:
        for kind, content in events:
            if kind == "interval":
                rows.append(content)
                count += 1
            elif kind == "status":
                progress = content
            away = content if kind == "gone" else None
            display.update(_table(progress, rows, away))
            if count == most:
                return True
    return False


def _table(
    progress: dict[str, Any],
    rows: deque[dict[str, Any]],
    away: dict[str, Any] | None = None,
) -> Table:
    from rich.markup import escape
    from rich.table import Table

    facts = {name: progress[name] for name in _FACTS if progress.get(name) is not None}
    caption = ", ".join(f"{name} {printable(str(fact))}" for name, fact in facts.items())
    if away:
        why = printable(away["why"])
        caption = f"{why}; asked again in {away['wait_s']:g} s\nbefore: {caption}"
    table = Table(*COLUMNS, caption=escape(caption), caption_justify="left")
    for row in rows:
        table.add_row(*(cell_text(row.get(name)) for name in COLUMNS))
    return table
