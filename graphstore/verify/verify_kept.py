"""Checks that a copy is what its tables said in sum when it was loaded or grew.

The tables are not read, but for the names of topics: what they say is in the checksums that the
copy keeps. What this misses, `vizpub.graphstore.verify.verify` finds: other letters in a text as
long as the right one, a float of 2^42 or more, or a difference below 2^-60, and tables that
changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neo4j import Driver

from vizpub.graphstore.load.batches import Tables
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.runs import facts_of, properties_of, run_properties
from vizpub.graphstore.verify.checksums import CHECKED, NODES
from vizpub.graphstore.verify.kept_checksums import Kept
from vizpub.graphstore.verify.verify import Comparison, Difference, Told, differences_of
from vizpub.model.run import RunFacts

_SUMS = {
    "peers": "peer-sums",
    "topics": "topic-sums",
    "intervals": "interval-sums",
    "interval-metrics": "interval-sums",
    "messages": "message-sums",
    "message-metrics": "message-sums",
}
_LABELS = {"peers": "Peer", "topics": "Topic", "intervals": "Interval", "messages": "Message"}
_OF_LABEL = {**_LABELS, "interval-metrics": "Interval", "message-metrics": "Message"}


@dataclass(frozen=True)
class Found:
    """What was compared, and what differs."""

    nodes: int
    relationships: int
    differences: list[Difference]


def verify_kept(driver: Driver, database: str, facts: RunFacts, tables: Tables) -> Found | None:
    """The differences between a copy and the checksums that it keeps; null where it keeps none.

    The copy may be of an earlier generation of the run, which its checksums are then of.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    there = run_properties(driver, database, facts.name) or {}
    if (kept := Kept.of(there)) is None:
        return None
    clock = facts_of(there).clock
    topics = Reading.of(tables, facts.clock).topic_names
    partitions = Partitions(clock, kept.partitions[0])
    comparison = _OfKept(driver, database, facts.name, partitions)
    found = [*comparison.differences(there, facts, kept, topics)]
    nodes = sum(kept.total(statement)[0] for statement in _LABELS)
    return Found(nodes, sum(kept.total(statement)[0] for statement in CHECKED), found)


class _OfKept(Comparison):
    """One comparison."""

    def differences(
        self, there: Mapping[str, Any], facts: RunFacts, kept: Kept, topics: tuple[str, ...]
    ) -> Iterator[Difference]:
        """Takes the properties of the Run node."""
        if missing := list(self._schema()):
            yield from missing
            return
        expected = {**kept.summary, "partition_intervals": kept.partitions[0]}
        if there.get("tables") == facts.tables:
            expected |= {"key": facts.name, **properties_of(facts)}
        yield from differences_of("run", facts.name, expected, {n: there.get(n) for n in expected})
        for statement in NODES:
            yield from self._nodes(statement, kept)
        yield from self._labels(kept)
        words = {"layers": kept.layers, "roles": kept.roles, "topics": topics}
        for statement in CHECKED:
            yield from self._relationships(statement, kept.total(statement), words)
        yield from self._named()
        yield from self._count(kept)

    def _nodes(self, statement: str, kept: Kept) -> Iterator[Difference]:
        rows, _, *sums = kept.total(statement)
        told = Told(NODES[statement], f"nodes {_OF_LABEL[statement]}")
        names = kept.names.get(statement, [])
        for found in self._sums_of(_SUMS[statement], told, names=names):
            if isinstance(found, Difference):
                yield found
            else:
                yield from told.differences([rows, *sums], found)

    def _labels(self, kept: Kept) -> Iterator[Difference]:
        there = {label: sums for label, *sums in self._ask("labels", run=self._name)}
        there.pop("Peer", None)
        for label in sorted({*kept.labels, *there}):
            none = [0] * 3
            told = Told("peers", f"peers with label {label}")
            yield from told.differences(kept.labels.get(label, none), there.get(label, none))

    def _count(self, kept: Kept) -> Iterator[Difference]:
        nodes = {label: kept.total(of)[0] for of, label in _LABELS.items()}
        nodes |= {label: rows for label, (rows, *_) in kept.labels.items()} | {"Run": 1}
        properties = dict.fromkeys(_LABELS.values(), 0)
        for statement, label in _OF_LABEL.items():
            properties[label] += kept.total(statement)[1]
        tables = {label: NODES[of] for of, label in _LABELS.items()}
        tables |= dict.fromkeys(kept.labels, "peers")
        yield from self._counts(nodes, properties, tables)
