"""A kit for Neo4j Browser that shows a run well: a style, saved queries, and a guide with links.

Browser draws the answer of a single statement, and forgets `:param` values when its page is
reloaded. So a link of the guide carries a statement with its values filled in, and the
saved queries keep their `$parameters`, which one file of `:param` lines sets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from vizpub import cypher
from vizpub.graphstore.ask.parameters import default_value
from vizpub.graphstore.ask.periods import class_ranges, level_ranges, mode_ranges
from vizpub.graphstore.browser.guide import Entry, Guide, guide_page
from vizpub.graphstore.runs import LoadedRun
from vizpub.model.errors import UseError

NO_PAGE = "is not the address of a page"

SETTINGS = {
    # Else Browser adds the links between the peers of a picture at all other times.
    "autoComplete": False,
    "useReadTransactions": True,
    # Else a page of instructions lies below each picture.
    "initCmd": "",
    "allowUserStats": False,
    "allowCrashReports": False,
}
"""Settings of Browser, by the names of its `:config`."""

PICTURES = (
    *("overlay", "topic", "subscriptions", "neighbourhood", "shortest-path"),
    "dissemination-tree",
)
"""The queries of the folder `browser`, in the guide's order."""

_WINDOW = 10
"""Intervals, where a question is about two times."""

_STYLE_RULE = re.compile(r"([\w.]+)\s*\{((?:[^{}']|'[^']*')*)\}")
_HEX = re.compile(r"#([0-9A-Fa-f]{6})")
_PARAMETER = re.compile(r"\$(\w+)")
_PLAIN = re.compile(r"[A-Za-z0-9 ._/-]*")


@dataclass(frozen=True)
class BrowserAddress:
    """The address of Neo4j Browser, and the server and user of its login."""

    page: str
    uri: str
    username: str
    database: str = "neo4j"

    def link(self, text: str | None = None) -> str:
        """Browser with the connect form filled in but for the password, and a text to run.

        Raises: ValueError for a text that Browser would cut off: it looks for `&` and `#`
        only after it has decoded the address.
        """
        if text is not None and re.search("[&#]", text):
            raise ValueError(f"Neo4j Browser accepts no & or # in a link: {text}")
        scheme, _, host = self.uri.partition("://")
        # Which certificates are good is the web browser's to say, not an address's.
        scheme = scheme.replace("+ssc", "+s")
        parameters = {"dbms": f"{scheme}://{quote(self.username)}@{host}", "db": self.database}
        if text is not None:
            parameters |= {"cmd": "edit", "arg": text}
        return f"{self.page}?{urlencode(parameters, quote_via=quote)}"


def browser_page(uri: str, page: str | None) -> str:
    """Return the full address of Browser: `page`, or else the usual port of the server's host.

    Raises: UseError if `page` is no address of a page.
    """
    if page is None:
        host = urlsplit(uri).hostname or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:7474/browser/"
    parts = urlsplit(page)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UseError(f"'{page}' {NO_PAGE}; write it like http://localhost:7474/browser/")
    path = parts.path if parts.path.strip("/") else "/browser/"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


@dataclass(frozen=True)
class SavedQuery:
    """A query for Browser."""

    name: str
    title: str
    """The first sentence of its purpose."""
    text: str
    """The text to save: with `$parameters` if it draws."""
    filled: str
    """The text with the values of the run."""
    draws: bool
    """The answer is a picture, else a table."""


def write_kit(run: LoadedRun, address: BrowserAddress, folder: Path, password: str) -> Path:
    """Write a run's kit into `folder` and return the path of its guide.

    `guide.html`, `overlay.grass`, `parameters.cypher`, `draw-*.cypher`, `ask-*.cypher`.
    `password` is where the password can be found, in words; never the password itself.

    Raises: Neo4jUnavailable, Neo4jAnswer; UseError where the folder cannot be written.
    """
    kit = _Kit(run, _examples(run))
    texts = {
        "overlay.grass": style_sheet(),
        "parameters.cypher": kit.parameters(),
        **{f"{'draw' if q.draws else 'ask'}-{q.name}.cypher": q.text for q in kit.queries},
        "guide.html": guide_page(kit.guide(address, folder.resolve(), password)),
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in (*folder.glob("draw-*.cypher"), *folder.glob("ask-*.cypher")):
            old.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise UseError(f"the guide cannot be written: {error}") from error
    return folder / "guide.html"


def style_sheet() -> str:
    """`overlay.grass`: Browser takes the file when it is dropped into its window."""
    return (files("vizpub.graphstore") / "browser" / "overlay.grass").read_text("utf-8")


def style_command() -> str:
    """The style as a command of one line, of which no part ends a statement or a link."""
    sheet = {
        selector: dict(_properties(body)) for selector, body in _STYLE_RULE.findall(style_sheet())
    }
    return f":style {json.dumps(sheet)}"


def _properties(body: str) -> Iterator[tuple[str, str]]:
    for line in filter(str.strip, body.split(";")):
        name, _, value = line.partition(":")
        yield name.strip(), _HEX.sub(_rgb, value.strip().strip("'"))


def _rgb(colour: re.Match[str]) -> str:
    return f"rgb({', '.join(str(part) for part in bytes.fromhex(colour[1]))})"


def settings_command() -> str:
    """The settings as a command."""
    return f":config {json.dumps(SETTINGS)}"


def literal(value: Any) -> str:
    """A value as Cypher; what is not plain in a text is escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return f"'{''.join(c if _PLAIN.fullmatch(c) else _escape(c) for c in value)}'"
        case _:
            return f"[{', '.join(literal(item) for item in value)}]"


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _examples(run: LoadedRun) -> dict[str, Any]:
    """Return examples from the run, by type of parameter, in order.

    The time is the interval of the message that came to most peers, else the last one.
    """
    clock = run.facts.clock
    messages = run.rows("read", "sample-message")
    interval = messages[0][1] if messages else clock.last
    at = clock.sampling_tick(min(max(interval, clock.first), clock.last))
    earlier = clock.sampling_tick(max(clock.interval_of(at) - _WINDOW, clock.first))
    levels = level_ranges(run.levels, at)
    return {
        "tick": [earlier, at],
        "message": [row[0] for row in messages],
        "topic": [row[0] for row in run.rows("read", "sample-topic", at=at)],
        "peer": [k for row in run.rows("read", "sample-peers", at=at, levels=levels) for k in row],
    }


@dataclass(frozen=True)
class _Kit:
    run: LoadedRun
    examples: Mapping[str, list[Any]]

    @cached_property
    def queries(self) -> list[SavedQuery]:
        """The queries that the run has an answer to."""
        return [
            query
            for folder, names in (("browser", PICTURES), ("queries", cypher.names("queries")))
            for name in names
            if (query := self._saved_query(cypher.statement(folder, name)))
        ]

    def _saved_query(self, statement: cypher.Statement) -> SavedQuery | None:
        if not all(map(self.run.facts.knows, statement.needs)):
            return None
        try:
            values = self._values(statement)
        except (LookupError, UseError):
            return None
        draws = statement.folder == "browser"
        title = f"// {statement.purpose}\n"
        lines = [line for line in statement.text.splitlines() if not line.startswith("//")]
        body = "\n".join(lines)
        filled = title + _PARAMETER.sub(lambda match: literal(values[match[1]]), body)
        saved = title + body if draws else filled
        sentence = statement.purpose.partition(". ")[0].rstrip(".")
        return SavedQuery(statement.name, sentence, saved + "\n", filled, draws)

    def _values(self, statement: cypher.Statement) -> dict[str, Any]:
        """Raises: LookupError where there is no example of a parameter's type, UseError."""
        unused = {kind: [*examples] for kind, examples in self.examples.items()}
        if sum(p.type == "tick" and not p.optional for p in statement.parameters) < 2:
            unused["tick"] = self.examples["tick"][-1:]
        values: dict[str, Any] = {}
        for p in statement.parameters:
            if p.type in unused and not (p.type == "tick" and p.optional):
                values[p.name] = unused[p.type].pop(0)
            elif p.type == "run":
                values[p.name] = self.run.facts.name
            elif p.type == "levels":
                values[p.name] = level_ranges(self.run.levels, values[p.at])
            elif p.type == "ranges":
                as_of = mode_ranges("as-of", {"at": self.examples["tick"][-1]})
                values[p.name] = class_ranges(self.run.levels, *as_of)
            elif p.name == "mode":
                values[p.name] = "as-of"
            elif p.optional:
                values[p.name] = default_value(p, self.run)
            else:
                raise LookupError(p.name)
        return values

    def parameters(self) -> str:
        """The `:param` lines of all saved queries that draw."""
        values = {
            name: value
            for query in self.queries
            if query.draws
            for name, value in self._values(cypher.statement("browser", query.name)).items()
        }
        lines = [f":param {name} => {self._parameter(name, values[name])}" for name in values]
        title = f"// Values for the saved queries: {self.run.facts.name}\n"
        return title + ";\n".join(lines) + ";\n"

    def _parameter(self, name: str, value: Any) -> str:
        clock = self.run.facts.clock
        if name == "at" and clock.ticks_per_interval > 1:
            return f"({clock.interval_of(value)} + 1) * {clock.ticks_per_interval} - 1"
        return literal(value)

    def guide(self, address: BrowserAddress, folder: Path, password: str) -> Guide:
        """Return the contents of the guide page."""
        return Guide(
            run=self.run.facts,
            at=self.examples["tick"][-1],
            folder=folder,
            password=password,
            server=address.uri,
            username=address.username,
            links={
                "browser": address.link(),
                "style": address.link(style_command()),
                "settings": address.link(settings_command()),
            },
            commands={"settings": settings_command(), "parameters": self.parameters()},
            entries=[
                Entry(q.title, q.filled, address.link(q.filled), q.draws) for q in self.queries
            ],
        )
