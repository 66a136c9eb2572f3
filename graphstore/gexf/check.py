"""Checks of a GEXF file for what no schema covers and Gephi's importer rejects.

A file can be valid and still lose elements on import: overlapping validity periods, edges of weight
0, two edges with the same ends and kind, values of undeclared attributes. The file is
read as a stream; held are the periods of the nodes and the keys of the edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, iterparse

from vizpub.model.errors import InputError

NO_GEXF = "is not GEXF"
NO_XML = "is not XML"

Period = tuple[float, float]

_FOREVER = (-math.inf, math.inf)
_OPEN_ENDS = ("startopen", "endopen")
_STAMPS = ("timestamp", "timestamps")


@dataclass(frozen=True)
class Finding:
    """A broken rule, the element that breaks it, and how."""

    rule: str
    element: str
    detail: str

    def __str__(self) -> str:
        return f"{self.element}: {self.detail} [{self.rule}]"


def check_gexf(path: Path) -> Iterator[Finding]:
    """Find everything in a GEXF file that Gephi would drop, change or complain about.

    Rules: version, time-format, time-kind, open-end, bad-time, overlap, value-overlap,
    undeclared, empty-value, duplicate-node, hierarchy, mutual, unknown-end, zero-weight,
    duplicate-edge, mixed-kinds, edge-outside-node.

    Raises: InputError for a file that is not there, no XML or no GEXF.
    """
    checker = _Checker()
    root = ""
    try:
        with path.open("rb") as file:
            for event, element in iterparse(file, events=("start", "end")):
                root = root or _local(element)
                if root != "gexf":
                    raise InputError(f"{path} {NO_GEXF}: it begins with <{root}>, not <gexf>")
                checker.see(event, element)
                yield from checker.take()
    except ParseError as error:
        raise InputError(f"{path} {NO_XML}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


class _Checker:
    """The rules, with the periods and keys that they have to remember."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.element = ""
        self.containers: list[Element] = []
        self.declared: dict[str, set[str]] = {"node": set(), "edge": set()}
        self.weights = {"weight"}
        self.periods: dict[str, list[Period]] = {}
        self.edges: set[tuple[str, str, str | None]] = set()
        self.with_kinds: bool | None = None

    def take(self) -> list[Finding]:
        findings, self.findings = self.findings, []
        return findings

    def see(self, event: str, element: Element) -> None:
        name = _local(element)
        if event == "start":
            self._start(name, element)
        elif name in ("nodes", "edges"):
            self.containers.pop()
        elif name == "attributes":
            self._declare(element)
        elif name in ("node", "edge"):
            self._check_node(element) if name == "node" else self._check_edge(element)
            # Free the checked element, or the whole file would stay in memory.
            if self.containers:
                self.containers[-1].clear()
            else:
                self._report("hierarchy", f"a {name} outside of {name}s")

    def _start(self, name: str, element: Element) -> None:
        if name in ("nodes", "edges"):
            self.containers.append(element)
        if name in ("gexf", "graph"):
            self.element = name
        if name == "gexf" and element.get("version") != "1.3":
            self._report("version", f"version {element.get('version')}, not 1.3")
        if name == "graph":
            if element.get("timeformat", "double") not in ("double", "date", "dateTime"):
                self._report("time-format", f"'{element.get('timeformat')}' is read as double")
            if element.get("timerepresentation", "interval") != "interval":
                self._report("time-kind", "timestamps; only intervals can be checked")

    def _report(self, rule: str, detail: str) -> None:
        self.findings.append(Finding(rule, self.element, detail))

    def _declare(self, element: Element) -> None:
        of = element.get("class", "")
        for attribute in element:
            name = attribute.get("id", "")
            self.declared.setdefault(of, set()).add(name)
            if of == "edge" and attribute.get("title", "").lower() == "weight":
                self.weights.add(name)

    def _check_node(self, element: Element) -> None:
        name = element.get("id", "")
        self.element = f"node {name}"
        if name in self.periods:
            self._report("duplicate-node", "the id is taken")
        if element.get("pid") or any(_local(child) in ("nodes", "edges") for child in element):
            self._report("hierarchy", "nodes inside nodes")
        self.periods[name] = self._periods_of(element)
        self._values("node", element)

    def _check_edge(self, element: Element) -> None:
        source, target = element.get("source", ""), element.get("target", "")
        kind = element.get("kind")
        self.element = f"edge {source} → {target}" + ("" if kind is None else f" ({kind})")
        if (source, target, kind) in self.edges:
            self._report("duplicate-edge", "the same ends and kind again")
        self.edges.add((source, target, kind))
        if self.with_kinds not in (None, kind is not None):
            self._report("mixed-kinds", "some edges have a kind, some have none")
        self.with_kinds = kind is not None
        if element.get("type") == "mutual":
            self._report("mutual", "write two directed edges")
        weights = [v.get("value", "") for v in _values(element) if v.get("for") in self.weights]
        if any(_is_zero(weight) for weight in [element.get("weight", ""), *weights]):
            self._report("zero-weight", "Gephi leaves out edges of weight 0")
        periods = self._periods_of(element)
        for end in dict.fromkeys((source, target)):
            self._check_end(periods, end)
        self._values("edge", element)

    def _check_end(self, periods: list[Period], end: str) -> None:
        if end not in self.periods:
            self._report("unknown-end", f"no node {end} before it")
            return
        for start, stop in periods:
            if not any(first <= start and stop <= last for first, last in self.periods[end]):
                self._report("edge-outside-node", f"valid {_span((start, stop))}, node {end} not")

    def _periods_of(self, element: Element) -> list[Period]:
        """Return the spells, or the element's own bounds; without either it is always valid."""
        spells = [s for child in element if _local(child) == "spells" for s in child]
        bounds = self._bounds(element)
        periods = sorted(self._bounds(spell) for spell in spells) or [bounds]
        self._check_disjoint("overlap", "", periods)
        return periods

    def _values(self, of: str, element: Element) -> None:
        spans: dict[str, list[Period]] = {}
        for value in _values(element):
            name = value.get("for", "")
            if name not in self.declared[of]:
                self._report("undeclared", f"attribute '{name}'")
            if not value.get("value"):
                self._report("empty-value", f"attribute '{name}'")
            spans.setdefault(name, []).append(self._bounds(value))
        for name, periods in spans.items():
            self._check_disjoint("value-overlap", f"attribute '{name}': ", sorted(periods))

    def _check_disjoint(self, rule: str, subject: str, periods: list[Period]) -> None:
        """Report periods that overlap; Gephi accepts bounds that only touch."""
        for previous, following in pairwise(periods):
            if following[0] < previous[1] or following == previous:
                self._report(rule, f"{subject}{_span(previous)} and {_span(following)}")

    def _bounds(self, element: Element) -> Period:
        if any(name in element.attrib for name in _OPEN_ENDS):
            self._report("open-end", "GEXF 1.3 has no open ends; read as closed")
        if any(name in element.attrib for name in _STAMPS):
            self._report("time-kind", "a timestamp among intervals")
        try:
            start = _time(element.get("start"), _FOREVER[0])
            end = _time(element.get("end"), _FOREVER[1])
        except ValueError as error:
            self._report("bad-time", str(error))
            return _FOREVER
        if start > end:
            self._report("bad-time", f"{_span((start, end))} ends before it starts")
        return start, end


def _local(element: Element) -> str:
    """Return the name without its namespace, as Gephi matches it."""
    return element.tag.rpartition("}")[2]


def _values(element: Element) -> list[Element]:
    return [value for child in element if _local(child) == "attvalues" for value in child]


def _is_zero(weight: str) -> bool:
    try:
        return float(weight) == 0
    except ValueError:
        return False


def _time(text: str | None, missing: float) -> float:
    """Parse a number, or a date as seconds. Raises: ValueError."""
    if text is None:
        return missing
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()


def _span(period: Period) -> str:
    return f"[{period[0]:.12g}, {period[1]:.12g}]"
