"""Neo4j servers that can be stopped and started again: the workspace's own, or a container."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.service import local_server, start_local
from cli.settings import Settings
from model.errors import UseError

if TYPE_CHECKING:
    from graphstore.load.bulk import Target
    from graphstore.server.address import Connection
    from graphstore.server.offline import Place

_VARIABLE = "VIZPUB_NEO4J_CONTAINER"

Container = Annotated[
    str | None,
    typer.Option(
        "--container",
        metavar="NAME",
        envvar=_VARIABLE,
        help="The container that runs the Neo4j of NEO4J_URI.",
    ),
]


@dataclass(frozen=True)
class Filling:
    """How a run gets into Neo4j."""

    bulk: Annotated[
        bool | None,
        typer.Option(
            "--bulk/--no-bulk",
            help="Import into an empty Neo4j while it is stopped (default: if that is faster).",
        ),
    ] = None
    container: Container = None
    partitioned: Annotated[
        bool | None,
        typer.Option(
            "--partitioned/--no-partitioned",
            help="Also store links by time partition, for fast queries in a long history "
            "(default: from 1,000,000 links and subscriptions on).",
        ),
    ] = None


def stoppable(settings: Settings, container: str | None) -> Place | None:
    """The Neo4j that commands use, if it can be stopped from here.

    Raises: UseError for a container without NEO4J_URI.
    """
    from graphstore.server.address import from_environment

    given = from_environment()
    # Not every command that loads has the option.
    container = container or os.environ.get(_VARIABLE)
    if not container:
        return None if given else local_server(settings)
    if not given:
        raise UseError(
            f"container {container} is given, but NEO4J_URI is not set; set it (and "
            "NEO4J_PASSWORD), or leave out the container"
        )
    from graphstore.server.container import Container

    return Container(container, given)


def stopping(settings: Settings, container: str | None) -> tuple[Place, Connection]:
    """As `stoppable`, started. Raises: UseError where it is one that cannot be stopped."""
    place = stoppable(settings, container)
    if not place:
        raise UseError(
            "this command stops Neo4j, and the one at NEO4J_URI cannot be stopped from here; "
            "name its container with --container NAME, or unset NEO4J_URI to use the "
            "workspace's own"
        )
    return place, _started(settings, place)


def target(settings: Settings, filling: Filling) -> Target:
    """The target of a load, started if possible.

    Raises: UseError, Neo4jUnavailable, JavaMissing, ArtifactsMissing.
    """
    from graphstore.load.bulk import Target
    from graphstore.load.partitions import PARTITION_INTERVALS

    place = stoppable(settings, filling.container)
    intervals = None if filling.partitioned is None else filling.partitioned * PARTITION_INTERVALS
    return Target(_started(settings, place), place, filling.bulk, intervals)


def _started(settings: Settings, place: Place | None) -> Connection:
    from graphstore.server.address import from_environment

    if not (given := from_environment()):
        return start_local(settings)
    return place.start() if place else given
