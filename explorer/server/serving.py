"""Serves the page until it is interrupted."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn

from vizpub.collector.http.listener import listen_at
from vizpub.explorer.server.opened import Window
from vizpub.explorer.server.web import app
from vizpub.reports.endpoint import is_loopback

RunPart = tuple[str, Window]
"""The name of a run, and the intervals of it to show."""


@dataclass(frozen=True)
class Listening:
    """Where the page is served."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 = any that is free."""
    commands: bool = False
    """Whoever opens the printed address may tell peers of collected runs to leave and join."""


def serve(
    workspace: Path, shown: RunPart | None, at: Listening, ready: Callable[[str], None]
) -> None:
    """Serve the page until SIGINT or SIGTERM; `ready` gets the address to open, once it answers.

    Raises: UseError where nothing can listen there.
    """
    # Others on this machine reach a loopback port, too.
    is_open = is_loopback(at.host) and not at.commands
    token = None if is_open else secrets.token_urlsafe(24)
    with listen_at(at.host, at.port) as listening:
        config = uvicorn.Config(
            app(workspace, token, commands=at.commands),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        ready(address(at.host, listening.getsockname()[1], shown, token))
        uvicorn.Server(config).run(sockets=[listening])


def address(host: str, port: int, shown: RunPart | None, token: str | None) -> str:
    """The address to open in a browser."""
    name = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    page = f"http://{name}:{port}/{query}"
    if shown is None:
        return page
    run, window = shown
    return f"{page}#/run/{quote(run)}/overlay" + (
        "?intervals={}-{}".format(*window) if window else ""
    )
