"""Comparison of a copy with the checksums that it keeps of its tables.

Of the tables only the names of topics are read. `vizpub.graphstore.verify.verify` also finds what
this misses: other letters in a text of the right length, floats of 2^42 or more, differences below
2^-60, and changes to the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neo4j import Driver

from vizpub.graphstore.load.batches import RunTables
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.runs import facts_of, properties_of, run_properties
from vizpub.graphstore.verify.checksums import CHECKED, NODES
from vizpub.graphstore.verify.kept_checksums import KeptChecksums
from vizpub.graphstore.verify.verify import Comparison, Difference, SumComparison, differences_of
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
class KeptVerification:
    """The numbers of compared nodes and relationships, and the differences."""

    nodes: int
    relationships: int
    differences: list[Difference]


def verify_kept(
    driver: Driver, database: str, facts: RunFacts, tables: RunTables
) -> KeptVerification | None:
    """Compare a copy with the checksums that it keeps; return None if it keeps none.

    The copy and its checksums may be of an earlier generation of the run.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    properties = run_properties(driver, database, facts.name) or {}
    if (checksums := KeptChecksums.of(properties)) is None:
        return None
    clock = facts_of(properties).clock
    topics = TableReader.of(tables, facts.clock).topic_names
    partitions = Partitions(clock, checksums.partitions[0])
    comparison = _KeptComparison(driver, database, facts.name, partitions)
    differences = [*comparison.differences(properties, facts, checksums, topics)]
    nodes = sum(checksums.total(statement)[0] for statement in _LABELS)
    return KeptVerification(
        nodes, sum(checksums.total(statement)[0] for statement in CHECKED), differences
    )


class _KeptComparison(Comparison):
    """One comparison of a copy with its checksums."""

    def differences(
        self,
        properties: Mapping[str, Any],
        facts: RunFacts,
        checksums: KeptChecksums,
        topics: tuple[str, ...],
    ) -> Iterator[Difference]:
        """Yield the differences, given the properties of the Run node."""
        if missing := list(self._schema()):
            yield from missing
            return
        expected = {**checksums.summary, "partition_intervals": checksums.partitions[0]}
        if properties.get("tables") == facts.tables:
            expected |= {"key": facts.name, **properties_of(facts)}
        yield from differences_of(
            "run", facts.name, expected, {n: properties.get(n) for n in expected}
        )
        for statement in NODES:
            yield from self._nodes(statement, checksums)
        yield from self._labels(checksums)
        words = {"layers": checksums.layers, "roles": checksums.roles, "topics": topics}
        for statement in CHECKED:
            yield from self._relationships(statement, checksums.total(statement), words)
        yield from self._foreign_relationships()
        yield from self._count(checksums)

    def _nodes(self, statement: str, checksums: KeptChecksums) -> Iterator[Difference]:
        rows, _, *sums = checksums.total(statement)
        comparison = SumComparison(NODES[statement], f"nodes {_OF_LABEL[statement]}")
        names = checksums.names.get(statement, [])
        for result in self._sums_of(_SUMS[statement], comparison, names=names):
            if isinstance(result, Difference):
                yield result
            else:
                yield from comparison.differences([rows, *sums], result)

    def _labels(self, checksums: KeptChecksums) -> Iterator[Difference]:
        actual = {label: sums for label, *sums in self._ask("labels", run=self._name)}
        actual.pop("Peer", None)
        for label in sorted({*checksums.labels, *actual}):
            none = [0] * 3
            comparison = SumComparison("peers", f"peers with label {label}")
            yield from comparison.differences(
                checksums.labels.get(label, none), actual.get(label, none)
            )

    def _count(self, checksums: KeptChecksums) -> Iterator[Difference]:
        nodes = {label: checksums.total(of)[0] for of, label in _LABELS.items()}
        nodes |= {label: rows for label, (rows, *_) in checksums.labels.items()} | {"Run": 1}
        properties = dict.fromkeys(_LABELS.values(), 0)
        for statement, label in _OF_LABEL.items():
            properties[label] += checksums.total(statement)[1]
        tables = {label: NODES[of] for of, label in _LABELS.items()}
        tables |= dict.fromkeys(checksums.labels, "peers")
        yield from self._counts(nodes, properties, tables)
