"""`vizpub neo4j load`, `verify`, `rebuild`: the copy of a run in Neo4j."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.errors import report
from vizpub.cli.options import Output, RunName
from vizpub.cli.service import LoadOptions, connected, querying, stale_copy_message, target
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.model.errors import CheckFailed, RunChanged, VizpubError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.model.run import RunFacts
    from vizpub.runstore.store import StoredRun

EARLIER_COPY = "is the copy of an earlier run of that name"
COPY_GROWN = "now has the appended intervals"


def load(
    settings: Settings,
    run: RunName,
    loading: LoadOptions,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Load again for each line of standard input, until it ends."),
    ] = False,
) -> None:
    """Load a run into Neo4j, as `ingest` does.

    An interrupted load resumes; nothing is loaded twice. The target is the Neo4j
    at NEO4J_URI, or the workspace's own, which is started. With --bulk, an empty Neo4j is
    stopped for an import, which is several times faster; this is the default for a large run.
    With --partitioned, links and subscriptions are also stored by time partition, which keeps
    queries of a long history fast and nearly doubles the relationships.

    After an append, a load adds only the difference to the copy, which answers queries meanwhile.
    With --follow, which is for programs, the command continues after a load that failed; its
    messages say how each load ended (vizpub --log-format json).

    Examples:

    ```
    vizpub neo4j load monday
    vizpub neo4j load monday --bulk
    ```
    """
    from vizpub.runstore.store import open_run

    if not follow:
        load_stored(settings, open_run(settings.workspace, run), loading)
        return
    for _ in sys.stdin:
        try:
            load_stored(settings, open_run(settings.workspace, run), loading)
        except VizpubError as error:
            report(error, debug=settings.debug)


def load_stored(settings: Settings, run: StoredRun, loading: LoadOptions | None = None) -> None:
    """Load a run of the store, and print what Neo4j holds of it.

    Intervals that another command appended meanwhile are loaded, too.
    """
    from vizpub.graphstore.load.bulk import load
    from vizpub.runstore.store import open_run

    destination = target(settings, loading or LoadOptions())
    with settings.progress() as progress:
        try:
            loaded = load(destination, run.facts, run, progress)
        except RunChanged:
            run = open_run(run.directory.parents[1], run.name)
            loaded = load(destination, run.facts, run, progress)
    if loaded.replaced:
        settings.say(stale_copy_message(run.name))
    if loaded.grown:
        settings.say(f"the copy of run '{run.name}' in Neo4j {COPY_GROWN}")
    settings.say(
        f"run '{run.name}' {'was' if loaded.already_complete else 'is'} in Neo4j: "
        f"{amount(loaded.peers, 'peer')}, {amount(loaded.topics, 'topic')}, "
        f"{amount(loaded.messages, 'message')}, {amount(loaded.links, 'link')}, "
        f"{amount(loaded.receptions, 'reception')}",
        loaded=run.name,
    )


Full = Annotated[
    bool,
    typer.Option("--full", help="Compare with the tables, and every node property by property."),
]


def verify(settings: Settings, run: RunName, output: Output, full: Full = False) -> None:
    """Compare a run's copy in Neo4j with its tables; exit code 1 if they differ.

    The copy has checksums of the tables from which it was loaded, and is compared with them.
    With --full, it is compared with the tables themselves, which also finds a name that has the
    right length and wrong letters.

    Examples:

    ```
    vizpub neo4j verify monday
    vizpub neo4j verify monday --full
    ```
    """
    from vizpub.graphstore.verify.verify import remedy
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run)
    with querying(settings) as neo4j:
        copy = neo4j.open_run(run)
        held = copy.facts
        behind = stored.boundary_since(held.tables) is not None
        if not behind and held.tables not in ("", stored.facts.tables):
            if not stored.is_current():
                raise RunChanged(run)
            raise CheckFailed(
                f"run '{run}' in Neo4j {EARLIER_COPY}, made from "
                f"other tables; load this one with: vizpub neo4j load {run}"
            )
        checked = None if full else neo4j.verify_kept(stored)
        if behind and checked is None:
            raise CheckFailed(_behind(run, held, stored.facts))
        differences = neo4j.verify(stored) if checked is None else checked.differences
        if differences:
            now = neo4j.open_run(run)
            if now.growing or now.state != copy.state:  # compared in the middle of a growth
                raise CheckFailed(
                    f"the copy of run '{run}' in Neo4j has grown meanwhile, or its growth was "
                    f"interrupted; verify it again after: vizpub neo4j load {run}"
                )
    columns = ("table", "what", "should be", "in Neo4j")
    values = [(d.table, d.what, d.expected, d.found) for d in differences]
    show_rows(OutputRows(columns, values), output, settings)
    if differences:
        raise CheckFailed(
            f"run '{run}' in Neo4j differs from its tables; {remedy(run, differences)}"
        )
    if checked is None:
        settings.say(f"run '{run}' in Neo4j equals its tables")
        return
    settings.say(
        f"run '{run}' in Neo4j equals the checksums of its tables: "
        f"{amount(checked.nodes, 'node')}, {amount(checked.relationships, 'relationship')}; "
        "of texts only the lengths were compared (--full compares all)"
    )
    if behind:
        settings.say(_behind(run, held, stored.facts))


def _behind(run: str, held: RunFacts, now: RunFacts) -> str:
    return (
        f"the copy of run '{run}' in Neo4j is of generation {held.generation}, and the "
        f"run is of {now.generation}; update it with: vizpub neo4j load {run}"
    )


def rebuild(settings: Settings, run: RunName, loading: LoadOptions) -> None:
    """Remove a run's copy in Neo4j, if any, and load it again from the run's tables.

    Examples:

    ```
    vizpub neo4j rebuild monday
    ```
    """
    from vizpub.graphstore.load.bulk import require_alone
    from vizpub.graphstore.load.partitions import choose_partitions
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run)
    destination = target(settings, loading)
    # Refuse impossible partitions before the copy is removed.
    choose_partitions(stored.facts.clock, stored, destination.partition_intervals)
    with connected(destination.connection) as neo4j:
        if loading.bulk:
            require_alone(neo4j.driver, neo4j.database, run)
        neo4j.remove(run, settings)
    load_stored(settings, stored, loading)
