"""Which Neo4j a command talks to: NEO4J_URI if it is set, else the workspace's own server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.settings import Settings

if TYPE_CHECKING:
    from graphstore.connection import Connection
    from graphstore.server import LocalServer


def local_server(settings: Settings) -> LocalServer:
    """The server of the workspace, running or not."""
    from graphstore.server import LocalServer

    return LocalServer(settings.workspace / "neo4j")


def started(settings: Settings) -> Connection:
    """A Neo4j to write to; the local one is made and started where it has to be.

    Raises: Neo4jUnavailable, JavaMissing, ArtifactsMissing, UseError.
    """
    from graphstore.connection import from_environment

    return from_environment() or start_local(settings)


def reached(settings: Settings) -> Connection:
    """A Neo4j to read from; the local one is started if it ever was before.

    Raises: Neo4jUnavailable where there is none, UseError.
    """
    from graphstore.connection import find_connection

    server = local_server(settings)
    if server.status().state == "stopped":
        return started(settings)
    return find_connection(settings.workspace / "neo4j")


def start_local(settings: Settings) -> Connection:
    """Start the local server, with a bar while its jars are fetched."""
    server = local_server(settings)
    if server.status().state == "running":
        return server.start()
    with settings.progress() as progress:
        progress("Start Neo4j", 0, 0)
        return server.start(lambda done, total: progress("Fetch Neo4j", done, total))
