"""`vizpub neo4j browser`: opens Neo4j Browser, with a guide to a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.options import OpenBrowser, OptionalRun, given_options
from vizpub.cli.service import local_server, querying, start_local
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.streams import launch_pages
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.graphstore.browser.kit import BrowserAddress


def browser(
    ctx: typer.Context,
    settings: Settings,
    run: OptionalRun = None,
    launch: OpenBrowser = None,
    page: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of Neo4j Browser, if not port 7474 of NEO4J_URI's host."
        ),
    ] = None,
) -> None:
    """Open Neo4j Browser to draw and query the graph; with RUN, also a guide to that run.

    Server and user are filled in; paste the password. The guide is a page in the workspace
    with links that draw the run; a style and saved queries are beside it
    (docs/browser.md). The local server is started, unless NEO4J_URI names another.

    Examples:

    ```
    vizpub neo4j browser
    vizpub neo4j browser monday
    vizpub neo4j browser monday --no-open
    ```
    """
    from vizpub.graphstore.browser.kit import write_kit

    address, password = _remote_browser(page) or _local_browser(ctx, settings)
    shown = [address.link()]
    with querying(settings) as neo4j:
        if run is not None:
            folder = guide_folder(settings, run)
            guide_file = write_kit(neo4j.open_run(run), address, folder, password)
            shown.append(guide_file.resolve().as_uri())
    for url in shown:
        print(url)
    guide = "" if run is None else f" and the guide to {run}"
    settings.say(f"Neo4j Browser{guide}; log in as {address.username}, the password is {password}")
    launch_pages(shown, launch)


def _remote_browser(page: str | None) -> tuple[BrowserAddress, str] | None:
    """Browser of the server at NEO4J_URI, and a hint at its password. Raises: UseError."""
    from vizpub.graphstore.browser.kit import BrowserAddress, browser_page
    from vizpub.graphstore.server.address import from_environment

    if not (remote := from_environment()):
        return None
    file = os.environ.get("NEO4J_PASSWORD_FILE")
    in_file = file and "NEO4J_PASSWORD" not in os.environ
    address = BrowserAddress(
        browser_page(remote.uri, page), remote.uri, remote.username, remote.database
    )
    return address, f"in {file}" if in_file else "that of NEO4J_PASSWORD"


def _local_browser(ctx: typer.Context, settings: Settings) -> tuple[BrowserAddress, str]:
    """Start the local server; return its Browser, and a hint at its password.

    Raises: UseError if a page is given: the local server serves its own.
    """
    from vizpub.graphstore.browser.kit import BrowserAddress
    from vizpub.graphstore.server.home import ServerHome

    if "--page" in given_options(ctx):
        raise UseError("--page goes with NEO4J_URI; the local server serves Browser itself")
    connection = start_local(settings)
    status = local_server(settings).status()
    page_url = (status.browser or "").partition("?")[0]
    address = BrowserAddress(page_url, connection.uri, connection.username, connection.database)
    return address, f"in {ServerHome(status.home).password_file}"


def guide_folder(settings: Settings, run: str) -> Path:
    """The folder of the guide of a run, which may not exist."""
    return settings.workspace / "browser" / run
