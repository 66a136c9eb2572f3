"""The Neo4j that a command uses: at NEO4J_URI if that is set, else the workspace's own server.

Some commands stop and start it: the workspace's own server, or a container that is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.graphstore.server.address import Connection, from_environment
from vizpub.model.errors import Neo4jUnavailable, ServiceError, UnknownName, UseError
from vizpub.model.progress import announce_wait

if TYPE_CHECKING:
    from vizpub.graphstore.load.bulk import LoadTarget
    from vizpub.graphstore.runs import LoadedRun
    from vizpub.graphstore.server.offline import StoppableServer
    from vizpub.graphstore.server.server import LocalServer
    from vizpub.graphstore.verify.verify import Difference, KeptVerification
    from vizpub.questions.run import Run
    from vizpub.runstore.store import StoredRun

STATES_UNKNOWN = "the states in Neo4j are unknown"


def local_server(settings: Settings) -> LocalServer:
    """The server of the workspace, running or not."""
    from vizpub.graphstore.server.server import LocalServer

    return LocalServer(settings.workspace / "neo4j")


def has_neo4j(settings: Settings) -> bool:
    """Return True if NEO4J_URI is set, or a Neo4j was ever started for the workspace."""
    return from_environment() is not None or local_server(settings).status().state != "absent"


def start_local(settings: Settings) -> Connection:
    """Start the local server, with a progress bar while its jars are downloaded.

    Raises: Neo4jUnavailable, JavaMissing, ArtifactsMissing.
    """
    server = local_server(settings)
    with settings.progress() as progress:
        if server.status().state != "running":
            progress("Start Neo4j", 0, 0)
        return server.start(lambda done, total: progress("Fetch Neo4j (bytes)", done, total))


def _reading_connection(settings: Settings) -> Connection:
    """A Neo4j to query. The local one is started if it was started before.

    Raises: Neo4jUnavailable if there is none, UseError.
    """
    from vizpub.graphstore.server.connection import find_connection

    if from_environment() is None and local_server(settings).status().state == "stopped":
        return start_local(settings)
    return find_connection(settings.workspace / "neo4j")


@dataclass(frozen=True)
class Neo4j:
    """A connection to a server; valid inside the block of `connected`."""

    driver: Any
    database: str

    def open_run(self, name: str) -> LoadedRun:
        """A loaded run. Raises: UnknownName, RunNotComplete, Neo4jUnavailable, Neo4jAnswer."""
        from vizpub.graphstore.runs import open_run

        return open_run(self.driver, self.database, name)

    def verify(self, run: StoredRun) -> list[Difference]:
        """Compare the copy in Neo4j with the store. Raises: Neo4jUnavailable, Neo4jAnswer."""
        from vizpub.graphstore.verify.verify import verify_run

        return verify_run(self.driver, self.database, run.facts, run)

    def verify_kept(self, run: StoredRun) -> KeptVerification | None:
        """Compare the copy with the checksums of the store that it keeps; null if it keeps none.

        Raises: Neo4jUnavailable, Neo4jAnswer.
        """
        from vizpub.graphstore.verify.verify import verify_kept

        return verify_kept(self.driver, self.database, run.facts, run)

    def has_other(self, run: StoredRun) -> bool:
        """Return True if it has a run of that name from other tables, which no load lets grow."""
        from vizpub.graphstore.runs import has_other_tables, run_properties

        properties = run_properties(self.driver, self.database, run.name)
        return (
            properties is not None
            and has_other_tables(properties, run.facts)
            and not run.boundary_since(properties.get("tables", ""))
            and run.is_current()  # else it may be of a later append
        )

    def remove(self, run: str, settings: Settings) -> bool:
        """Remove a run in any state. False if there is none of that name."""
        from vizpub.graphstore.load.remove import remove_run

        with settings.progress() as progress:
            try:
                remove_run(self.driver, self.database, run, progress)
            except UnknownName:
                return False
        return True


@contextmanager
def connected(connection: Connection) -> Iterator[Neo4j]:
    """Connect to the server for the block. Raises: Neo4jUnavailable."""
    from vizpub.graphstore.server.connection import CONNECT_S, SILENT_S, connect

    limits = f"{CONNECT_S:g} s to connect, then {SILENT_S:g} s for an answer"
    with announce_wait(f"Neo4j at {connection.uri} ({limits})", CONNECT_S + SILENT_S):
        driver = connect(connection)
    with driver:
        yield Neo4j(driver, connection.database)


@contextmanager
def querying(settings: Settings, run: str | None = None) -> Iterator[Neo4j]:
    """Open a Neo4j to query, about `run`, for the block; start the local one if it is stopped.

    Raises: Neo4jUnavailable, and UseError for a run that the workspace has and Neo4j has not.
    """
    if run and not has_neo4j(settings) and _is_stored(settings, run):
        hint = f"load the run, which starts a server, with: vizpub neo4j load {run}"
        raise Neo4jUnavailable(settings.place, "no server was ever started here", hint)
    with connected(_reading_connection(settings)) as neo4j:
        try:
            yield neo4j
        except UnknownName as error:
            if error.kind != "run" or not _is_stored(settings, error.name):
                raise
            raise UseError(
                f"run '{error.name}' is not in Neo4j; load it with: vizpub neo4j load {error.name}"
            ) from None


def run_of_workspace(settings: Settings, run: str) -> Run | None:
    """The run of the workspace; null if only a Neo4j that is there can have it."""
    from vizpub.questions.run import Run

    try:
        return Run.open(settings.workspace, run)
    except UnknownName:
        if not has_neo4j(settings):
            raise
        return None


def _is_stored(settings: Settings, run: str) -> bool:
    from vizpub.runstore.store import run_names

    return run in run_names(settings.workspace)


def states_in_neo4j(settings: Settings, runs: Sequence[StoredRun]) -> dict[str, str]:
    """The state of each run: complete, loading, removing, absent, behind (complete before the last
    append), or outdated (a complete copy of an earlier run of that name). Empty if no Neo4j is
    running, or if it fails, with a message. No server is started.
    """
    # Without a Neo4j the driver is not even imported: that is slow.
    may_have_neo4j = os.environ.get("NEO4J_URI") or (settings.workspace / "neo4j").is_dir()
    if not runs or not may_have_neo4j:
        return {}
    from vizpub.graphstore.runs import run_states
    from vizpub.graphstore.server.connection import connect, find_connection

    try:
        if not from_environment() and local_server(settings).status().state != "running":
            return {}
        connection = find_connection(settings.workspace / "neo4j")
        # A list of runs is not worth a longer wait for a server that hangs.
        with connect(connection, timeout_s=2) as driver:
            states = run_states(driver, connection.database)
    except (ServiceError, UseError) as error:
        settings.say(f"{STATES_UNKNOWN}: {error}")
        return {}
    return {run.name: _state(run, *states.get(run.name, ("absent", None))) for run in runs}


def _state(run: StoredRun, state: str, tables: str | None) -> str:
    from vizpub.graphstore.runs import has_other_tables

    if state != "complete" or not run.manifest.complete:
        return state
    if not has_other_tables({"tables": tables}, run.facts):
        return state
    return "behind" if run.boundary_since(tables or "") else "outdated"


def copies_in_neo4j(settings: Settings) -> dict[str, str] | None:
    """The state of the copy of each run; null = not known. No server is started."""
    from vizpub.graphstore.runs import run_states
    from vizpub.graphstore.server.connection import find_connection

    if not has_neo4j(settings):
        return {}
    try:
        with connected(find_connection(settings.workspace / "neo4j")) as neo4j:
            states = run_states(neo4j.driver, neo4j.database)
    except ServiceError:
        return None
    return {run: state for run, (state, _) in states.items()}


def remove_from_neo4j(settings: Settings, run: str) -> bool:
    """Remove a run from Neo4j, if there is one with that run. Returns whether it was removed."""
    if not has_neo4j(settings):
        return False
    with connected(_reading_connection(settings)) as neo4j:
        return neo4j.remove(run, settings)


def stale_copy_message(run: str) -> str:
    """The message after the copy of an earlier run was removed."""
    return f"the copy of an earlier run '{run}' was removed from Neo4j"


def remove_stale(settings: Settings, run: StoredRun) -> None:
    """Remove the copy of an earlier run of that name from Neo4j, if there is one.

    If Neo4j is unavailable, print a message only: the next load finds the copy as well.
    """
    if not has_neo4j(settings):
        return
    try:
        with connected(_reading_connection(settings)) as neo4j:
            removed = neo4j.has_other(run) and neo4j.remove(run.name, settings)
    except ServiceError as error:
        settings.say(
            f"a copy of an earlier run '{run.name}' in Neo4j could not be removed: {error}"
        )
        return
    if removed:
        settings.say(stale_copy_message(run.name))


_VARIABLE = "VIZPUB_NEO4J_CONTAINER"

Container = Annotated[
    str | None,
    typer.Option(
        "--container",
        metavar="NAME",
        envvar=_VARIABLE,
        help="Container that runs the Neo4j at NEO4J_URI.",
        rich_help_panel=RARE,
    ),
]


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading a run into Neo4j."""

    bulk: Annotated[
        bool | None,
        typer.Option(
            "--bulk/--no-bulk",
            help="Import into an empty Neo4j while it is stopped (default: if that is faster).",
            rich_help_panel=RARE,
        ),
    ] = None
    container: Container = None
    partitioned: Annotated[
        bool | None,
        typer.Option(
            "--partitioned/--no-partitioned",
            help="Also store links by time partition, for fast queries in a long history "
            "(default: from 1,000,000 links and subscriptions on).",
            rich_help_panel=RARE,
        ),
    ] = None


def _stoppable(settings: Settings, container: str | None) -> StoppableServer | None:
    """The Neo4j that commands use, if they can stop it.

    Raises: UseError for a container without NEO4J_URI.
    """
    remote = from_environment()
    # Some commands that load a run do not have the option.
    container = container or os.environ.get(_VARIABLE)
    if not container:
        return None if remote else local_server(settings)
    if not remote:
        raise UseError(
            f"the container {container} (--container or {_VARIABLE}) needs an address, but "
            "NEO4J_URI is not set; set it (and NEO4J_PASSWORD), or leave out the container"
        )
    from vizpub.graphstore.server.container import Container

    return Container(container, remote)


def stoppable_server(
    settings: Settings, container: str | None
) -> tuple[StoppableServer, Connection]:
    """The Neo4j that commands use, started, and its connection.

    Raises: UseError if it cannot be stopped.
    """
    place = _stoppable(settings, container)
    if not place:
        raise UseError(
            "this command stops Neo4j, and the one at NEO4J_URI cannot be stopped from here; "
            "name its container with --container NAME, or unset NEO4J_URI to use the "
            "workspace's own"
        )
    return place, _start_target(settings, place)


def target(settings: Settings, loading: LoadOptions) -> LoadTarget:
    """The target of a load, started if possible.

    Raises: UseError, Neo4jUnavailable, JavaMissing, ArtifactsMissing.
    """
    from vizpub.graphstore.load.bulk import LoadTarget
    from vizpub.graphstore.load.partitions import PARTITION_INTERVALS

    place = _stoppable(settings, loading.container)
    intervals = None if loading.partitioned is None else loading.partitioned * PARTITION_INTERVALS
    return LoadTarget(_start_target(settings, place), place, loading.bulk, intervals)


def _start_target(settings: Settings, place: StoppableServer | None) -> Connection:
    if not (remote := from_environment()):
        return start_local(settings)
    return place.start() if place else remote
