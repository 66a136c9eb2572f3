from __future__ import annotations

from dataclasses import replace

import pytest

from vizpub.graphstore.runs import facts_of, has_other_tables, properties_of
from vizpub.model.clock import Clock
from vizpub.model.run import RunFacts

FULL = RunFacts(
    name="r",
    source="reports",
    clock=Clock(1_000, 1, 3, 9),
    protocol="gossipsub",
    parameters={"d": 6, "words": ["é", None, 0.5], "nested": {"a": True}},
    seed=2**40,
    epoch="2026-01-01T00:00:00+00:00",
    unknown=("hops", "traffic"),
    layers=("mesh",),
    tables="0123",
    known=("links", "peers"),
    generation=2,
    final=8,
    settled=4,
)


@pytest.mark.parametrize("facts", [FULL, RunFacts("r", "edges", Clock())])
def test_facts_read_back_from_the_run_node(facts: RunFacts) -> None:
    properties = {k: v for k, v in properties_of(facts).items() if v is not None}
    # What Neo4j can keep: numbers, strings, and lists of one type.
    assert all(isinstance(v, str | int | list) for v in properties.values())
    assert facts_of(properties) == facts


def test_copy_in_neo4j_is_known_by_its_tables() -> None:
    assert not has_other_tables(properties_of(FULL), FULL)
    assert has_other_tables(properties_of(FULL), replace(FULL, tables="4567"))
    assert has_other_tables(properties_of(replace(FULL, tables="")), FULL)
    assert not has_other_tables(properties_of(FULL), replace(FULL, tables=""))


def test_copy_knows_nothing_of_tables_that_are_made_when_asked_for() -> None:
    without = RunFacts("r", "reports", Clock(), known=("links", "presence"))
    later = replace(without, known=("links", "metrics/percolation", "presence"))
    assert properties_of(later) == properties_of(without)
