"""`vizpub sql`: queries the tables of a run in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.options import Limit, Output, RunName, Timeout, check_size
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.machine.files import text_argument
from vizpub.machine.process import bounded_memory
from vizpub.model.clock import parse_duration_us
from vizpub.model.sizes import parse_size


@dataclass(frozen=True)
class SqlBounds:
    """Bounds of the query's rows, time and memory."""

    limit: Limit = 0
    timeout: Timeout = "5m"
    memory: Annotated[
        str, typer.Option(metavar="SIZE", callback=check_size, help="Memory limit of the query.")
    ] = "2GB"


def sql(
    settings: Settings,
    run: RunName,
    output: Output,
    bounds: SqlBounds,
    statement: Annotated[
        str | None,
        typer.Argument(metavar="SELECT…|FILE.sql|-", help="A query, a file with one, or stdin."),
    ] = None,
) -> None:
    """Query the tables of a run in SQL, or list them.

    The SQL is DuckDB's. Tables have the names that `vizpub runs tables` lists, with a dot for the
    slash: `metrics.peers`. Each number of a peer, topic or message has its name beside it: `peer`,
    `peer_name`. The query needs no Neo4j, reads only the columns it names, and can change nothing.
    Data that exceeds half of --memory goes to temporary files, up to ten times as much.

    Examples:

    ```
    vizpub sql monday 'SELECT peer_name, sum(duplicates) FROM metrics.peers GROUP BY ALL'
    vizpub sql monday slowest.sql --format csv
    vizpub sql monday 'FROM receptions WHERE hop > 4' -o far.json
    vizpub sql monday
    ```
    """
    from vizpub.questions import sql as of_run
    from vizpub.runstore.store import open_run

    opened = open_run(settings.workspace, run)
    query = text_argument(statement, ".sql") if statement else of_run.LIST
    limits = of_run.QueryLimits(parse_duration_us(bounds.timeout) / 1e6, parse_size(bounds.memory))
    with bounded_memory(limits.memory), of_run.answer(opened, query, limits=limits) as batches:
        rows = OutputRows.of_arrow(batches.schema.names, batches)
        show_rows(rows.first(bounds.limit), output, settings)
