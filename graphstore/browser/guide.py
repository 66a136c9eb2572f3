"""The page that guides users through Neo4j Browser: one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from vizpub.model.run import RunFacts


@dataclass(frozen=True)
class Entry:
    """A query of the page."""

    title: str
    text: str
    link: str
    draws: bool


@dataclass(frozen=True)
class Guide:
    """What the page says. Nothing in it is HTML yet."""

    run: RunFacts
    at: int
    folder: Path
    password: str
    server: str
    username: str
    links: Mapping[str, str]
    """Into Browser: `browser`, `style`, `settings`."""
    commands: Mapping[str, str]
    """To be copied: `settings`, `parameters`."""
    entries: Sequence[Entry]


def guide_page(guide: Guide) -> str:
    """The page. Whatever the run's names are, they stay text."""
    script, clock = _part("guide.js"), guide.run.clock
    words = {
        "run": guide.run.name,
        "protocol": guide.run.protocol or "protocol unknown",
        "range": clock.describe_range(),
        "moment": clock.describe(guide.at),
        "folder": str(guide.folder),
        "password": guide.password,
        "server": guide.server,
        "username": guide.username,
        **{f"{name}_link": link for name, link in guide.links.items()},
        **{f"{name}_command": text for name, text in guide.commands.items()},
    }
    return Template(_part("guide.html")).substitute(
        {name: escape(text) for name, text in words.items()},
        pictures=_entries(entry for entry in guide.entries if entry.draws),
        tables=_entries(entry for entry in guide.entries if not entry.draws),
        style_text=_part("guide.css"),
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _part(name: str) -> str:
    return (files("vizpub.graphstore") / "browser" / name).read_text("utf-8")


def _entries(entries: Iterable[Entry]) -> str:
    template = Template(_part("entry.html"))
    return "".join(
        template.substitute(
            title=escape(entry.title), text=escape(entry.text), link=escape(entry.link)
        )
        for entry in entries
    )
