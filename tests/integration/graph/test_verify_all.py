"""The checker is checked: a change of any kind in Neo4j's copy of a run is seen.

What can be changed is asked of the database, so nothing that a load comes to write is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from neo4j import Transaction

from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.test_verify import Undone
from tests.support.words import tells
from vizpub import cypher
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.verify.verify import Difference, remedy, verify_run
from vizpub.model.clock import OPEN
from vizpub.model.errors import CheckFailed

pytestmark = pytest.mark.neo4j

RUN = "mutated"
OF_RUN = "(n.run = $run OR n.key = $run)"
NODES = f"""
MATCH (n) WHERE {OF_RUN} UNWIND keys(n) AS name
WITH labels(n)[0] AS label, name, n ORDER BY n.key
RETURN label, name, collect(elementId(n))[0], collect(n[name])[0]
"""
"""Of each property of each label: a node that has it, and its value."""
KINDS = f"""
MATCH (n)-[r]->() WHERE {OF_RUN}
WITH split(type(r), '_P')[0] + CASE WHEN type(r) CONTAINS '_P' THEN '_P1' ELSE '' END AS kind,
     type(r) AS type, r ORDER BY elementId(r)
WHERE kind = type
"""
"""The relationships of every type; of copies, those of one partition."""
PROPERTIES = (
    KINDS
    + "UNWIND keys(r) AS name RETURN type, name, collect(elementId(r))[0], collect(r[name])[0]"
)
TYPES = KINDS + "RETURN type, collect(elementId(r))[0]"
LABELS = f"""
MATCH (n) WHERE {OF_RUN} UNWIND labels(n) AS label RETURN label, collect(elementId(n))[0]
"""
SET_NODE = "MATCH (n) WHERE elementId(n) = $id SET n[$name] = $value"
SET_RELATIONSHIP = "MATCH ()-[n]->() WHERE elementId(n) = $id SET n[$name] = $value"
EXCHANGE = """
MATCH (a)-[r:$($type)]->(), (b)-[s:$($type)]->()
WHERE a.run = $run AND b.run = $run AND a.id < b.id AND r[$name] <> s[$name]
WITH r, s, r[$name] AS x, s[$name] AS y ORDER BY elementId(r), elementId(s) LIMIT 1
SET r[$name] = y, s[$name] = x
"""
EXCHANGE_ENDS = """
MATCH (a)-[r:$($type)]->(c), (b)-[s:$($type)]->(d)
WHERE a.run = $run AND b.run = $run AND a <> b AND c <> d
  AND ($alike OR properties(r) <> properties(s))
WITH a, b, c, d, r, s ORDER BY elementId(r), elementId(s) LIMIT 1
CREATE (a)-[t:$($type)]->(d) SET t = properties(r)
CREATE (b)-[u:$($type)]->(c) SET u = properties(s)
DELETE r, s
"""
KEYED = ("Run", "Peer", "Topic", "Message", "Interval")
"""Labels that Neo4j itself keeps from nodes of the same keys."""
COMPUTED_WITH = ("LINK.topic", "LINK_P1.topic")
"""What is no whole number there ends the comparison and its transaction."""

Given = dict[str, Any]
Changes = dict[str, tuple[str, Given]]
"""What is changed: by which statement, with which parameters."""


@pytest.fixture(scope="module")
def history(graph: Graph) -> Iterator[History]:
    """With partitions, layers, facts of every kind, and names as long as a caption and longer."""
    made = random_history(43, name=RUN, peers=12, intervals=6)
    for number, row in enumerate(made.rows["peers"]):
        row["name"] = ("p" * number) + str(number)
    # Of each type there are two with other values in any property.
    made.rows["subscriptions"] += [
        {"peer": peer, "topic": 3, "valid_from": 2, "valid_to": valid_to}
        for peer, valid_to in ((10, 3), (11, OPEN))
    ]
    made.rows["links"] += [
        {"src": 10, "dst": 11, "layer": "mesh", "topic": 1, "valid_from": 2, "valid_to": 3},
        {"src": 11, "dst": 10, "layer": "tree", "topic": 2, "valid_from": 3, "valid_to": OPEN},
    ]
    made.rows["roles"] += [
        {"peer": 10, "role": "relay", "topic": 1, "valid_from": 2, "valid_to": 3},
        {"peer": 11, "role": "guard", "topic": 1, "valid_from": 3, "valid_to": 5},
    ]
    facts = replace(
        made.facts, epoch="2014-01-01T00:00:00Z", unknown=("hops",), layers=("mesh", "tree"),
        tables="these", known=("links", "peers"),
    )  # fmt: skip
    made = replace(made, facts=facts)
    graph.remove(RUN)
    load_run(graph.driver, graph.database, made.facts, made.tables, partition_intervals=2)
    yield made
    graph.remove(RUN)


Seen = Callable[[str, Given], list[Difference]]


@pytest.fixture
def seen(graph: Graph, history: History) -> Seen:
    """What a verification tells after a statement, which is undone then."""

    def seen(text: str, given: Given) -> list[Difference]:
        with (
            graph.driver.session(database=graph.database) as session,
            session.begin_transaction() as transaction,
        ):
            counters = _made(transaction, text, given)
            assert counters, f"nothing is changed by {text} {given}"
            driver: Any = Undone(transaction)
            found = verify_run(driver, graph.database, history.facts, history.tables)
            transaction.rollback()
        return found

    return seen


def _made(transaction: Transaction, text: str, given: Given) -> bool:
    counters = transaction.run(text, {"run": RUN, **given}).consume().counters
    return counters.contains_updates or bool(
        counters.indexes_removed + counters.constraints_removed
    )


def unseen(seen: Seen, changes: Changes) -> list[str]:
    return [what for what, (text, given) in changes.items() if not seen(text, given)]


def other(value: Any) -> Any:
    """Another value of the same kind, as near as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 0 else value + 1
    if isinstance(value, float):
        return value + 1e-12
    return value + "x" if isinstance(value, str) else [*value, *(value[:1] or ["x"])]


def of_another_kind(value: Any) -> Any:
    """What is equal in Cypher or Python, and not the same."""
    return int(value) if isinstance(value, bool) else float(value)


def told(graph: Graph, text: str) -> list[list[Any]]:
    return graph.ask(text, run=RUN)


def changed(graph: Graph, text: str, setting: str, to: Callable[[Any], Any]) -> Changes:
    return {
        f"{kind}.{name}": (setting, {"id": id, "name": name, "value": to(value)})
        for kind, name, id, value in told(graph, text)
        if to is not of_another_kind or isinstance(value, (bool, int))
    }


NODES_OR = ((NODES, SET_NODE), (PROPERTIES, SET_RELATIONSHIP))


def test_copy_without_a_change_has_no_difference(graph: Graph, history: History) -> None:
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    assert {label for label, *_ in told(graph, NODES)} == {
        *("Run", "Peer", "Topic", "Message", "Interval")
    }
    assert {type for type, _ in told(graph, TYPES)} == {
        *("LINK", "SUBSCRIBES", "HAS_ROLE", "PRESENT", "PUBLISHED", "PUBLISHED_ON", "HOP"),
        *("ARRIVED_FROM_UNKNOWN", "HAS_ATTRIBUTE"),
        *("MISSED", "LINK_P1", "SUBSCRIBES_P1"),
    }


@pytest.mark.long
@pytest.mark.parametrize(("text", "setting"), NODES_OR, ids=["nodes", "relationships"])
def test_property_with_another_value_is_seen(
    graph: Graph, seen: Seen, text: str, setting: str
) -> None:
    changes = changed(graph, text, setting, other)
    assert len(changes) > 40
    assert unseen(seen, changes) == []


def test_another_value_of_each_type_is_seen_at_each_label(graph: Graph, seen: Seen) -> None:
    changes = changed(graph, NODES, SET_NODE, other)
    of_types = {(what.split(".")[0], type(given["value"])): what
                for what, (_, given) in changes.items()}  # fmt: skip
    assert {kind for _, kind in of_types} == {bool, int, float, str, list}
    assert unseen(seen, {what: changes[what] for what in of_types.values()}) == []


@pytest.mark.long
@pytest.mark.parametrize(("text", "setting"), NODES_OR, ids=["nodes", "relationships"])
def test_property_that_is_gone_is_seen(graph: Graph, seen: Seen, text: str, setting: str) -> None:
    assert unseen(seen, changed(graph, text, setting, lambda _: None)) == []


@pytest.mark.long
@pytest.mark.parametrize(("text", "setting"), NODES_OR, ids=["nodes", "relationships"])
def test_property_of_another_type_is_seen(
    graph: Graph, seen: Seen, text: str, setting: str
) -> None:
    changes = changed(graph, text, setting, of_another_kind)
    tried = {what: change for what, change in changes.items() if what not in COMPUTED_WITH}
    assert len(tried) > 20
    assert unseen(seen, tried) == []


@pytest.mark.long
def test_exchanged_values_of_two_relationships_are_seen(graph: Graph, seen: Seen) -> None:
    names = [(type, name) for type, name, *_ in told(graph, PROPERTIES) if name != "run"]
    changes: Changes = {
        f"{type}.{name}": (EXCHANGE, {"type": type, "name": name}) for type, name in names
    }
    assert unseen(seen, changes) == []


@pytest.mark.long
def test_exchanged_ends_of_two_relationships_are_seen(graph: Graph, seen: Seen) -> None:
    changes: Changes = {}
    for type, _ in told(graph, TYPES):
        changes[type] = (
            EXCHANGE_ENDS,
            {"type": type, "alike": type in ("PUBLISHED_ON", "PUBLISHED", "MISSED")},
        )
    del changes["PRESENT"], changes["HAS_ATTRIBUTE"]  # all end at the run
    assert unseen(seen, changes) == []


@pytest.mark.long
def test_node_added_removed_or_labelled_is_seen(graph: Graph, seen: Seen) -> None:
    nodes: Changes = {}
    labels = told(graph, LABELS)
    node = "MATCH (n) WHERE elementId(n) = $id "
    for label, id in labels:
        given = {"id": id, "label": label}
        nodes[f"{label} gone"] = (node + "REMOVE n:$($label)", given)
        nodes[f"more at {label}"] = (node + "SET n:Other", given)
        nodes[f"a property more at {label}"] = (node + "SET n.other = 1", given)
        nodes[f"node {label} gone"] = (node + "DETACH DELETE n", given)
        nodes[f"one {label} more"] = ("CREATE (n:$($label) {run: $run})", given)
        nodes[f"a key of {label} more"] = ("CREATE (n:$($label) {key: $run + '/x'})", given)
        if label not in KEYED:
            nodes[f"{label} at an interval"] = (
                "MATCH (n:Interval {run: $run}) WITH n LIMIT 1 SET n:$($label)", given,
            )  # fmt: skip
    nodes["a node of no label"] = ("CREATE ({run: $run})", {})
    nodes["a metric of a message without a row"] = (
        "MATCH (n:Message {run: $run}) WHERE n.hit_ratio IS NULL WITH n LIMIT 1 "
        "SET n.hit_ratio = 0.5", {},
    )  # fmt: skip
    assert len(labels) > 9
    assert unseen(seen, nodes) == []


@pytest.mark.long
def test_relationship_added_or_removed_is_seen(graph: Graph, seen: Seen) -> None:
    changes: Changes = {}
    of = "MATCH (a)-[r]->(b) WHERE elementId(r) = $id "
    foreign = "CREATE (x:Peer {key: 'other/1', run: 'other', id: a.id}) "
    for type, id in told(graph, TYPES):
        given = {"id": id, "type": type}
        copy = "SET s = properties(r)"
        changes |= {
            f"{type} gone": (of + "DELETE r", given),
            f"{type} twice": (of + f"CREATE (a)-[s:$($type)]->(b) {copy}", given),
            f"{type} without properties": (of + "CREATE (a)-[s:$($type)]->(b)", given),
            f"{type} with a property more": (of + "SET r.other = 1", given),
            f"{type} as another": (of + f"CREATE (a)-[s:OTHER]->(b) {copy} DELETE r", given),
            f"{type} turned": (of + f"CREATE (b)-[s:$($type)]->(a) {copy} DELETE r", given),
            f"{type} from elsewhere": (
                of + foreign + f"CREATE (x)-[s:$($type)]->(b) {copy} DELETE r", given,
            ),
            f"{type} to elsewhere": (
                of + foreign + f"CREATE (a)-[s:$($type)]->(x) {copy} DELETE r", given,
            ),
            f"more than {type}": (of + "CREATE (a)-[:OTHER]->(b)", given),
        }  # fmt: skip
    indexed = ("LINK", "SUBSCRIBES", "PRESENT", "HAS_ATTRIBUTE", "HOP", "ARRIVED_FROM_UNKNOWN")
    for type in indexed:
        text = "MATCH ()-[r:$($type)]->() WHERE r.run = $run WITH r LIMIT 1 "
        text += "CREATE (:Peer {key: 'x/1'})-[s:$($type)]->(:Peer {key: 'x/2'}) "
        changes[f"{type} between others"] = (text + "SET s = properties(r)", {"type": type})
    assert unseen(seen, changes) == []


@pytest.mark.parametrize(
    ("type", "name", "value", "difference"),
    [
        ("HOP", "message", "none", ("receptions", "relationships hops")),
        ("LINK", "topic", 2.0, ("links", "relationships links")),
        ("LINK_P1", "topic", 2.0, ("links", "relationships link-copies")),
    ],
)
def test_value_that_cannot_be_computed_with_is_seen(
    graph: Graph, history: History, type: str, name: str, value: object, difference: tuple[str, str]
) -> None:
    """Such a comparison ends its transaction, so this change is no transaction's own."""
    properties = told(graph, PROPERTIES)
    ((id, before),) = [row[2:] for row in properties if row[:2] == [type, name]]
    graph.ask(SET_RELATIONSHIP, id=id, name=name, value=value)
    found = verify_run(graph.driver, graph.database, history.facts, history.tables)
    graph.ask(SET_RELATIONSHIP, id=id, name=name, value=before)
    assert [(d.table, d.what) for d in found] == [difference]
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


def test_missing_index_or_constraint_is_seen(graph: Graph, seen: Seen) -> None:
    constraints = [name for (name,) in graph.ask("SHOW CONSTRAINTS YIELD name RETURN name")]
    indexes = graph.ask(
        "SHOW INDEXES YIELD name, type, owningConstraint "
        "WHERE type = 'RANGE' AND owningConstraint IS NULL RETURN name"
    )
    drops = [f"DROP CONSTRAINT {name}" for name in constraints]
    drops += [f"DROP INDEX {name}" for (name,) in indexes]
    assert len(drops) == len(cypher.names("schema")) == 12
    found = {drop: seen(drop, {}) for drop in drops}
    assert {drop: len(told) for drop, told in found.items()} == dict.fromkeys(drops, 1)
    assert {str(told[0].found) for told in found.values()} == {"missing"}
    for told in found.values():
        assert remedy(RUN, told) == f"create the missing parts with: vizpub neo4j load {RUN}"


@pytest.mark.long
def test_load_makes_a_missing_index(graph: Graph, history: History) -> None:
    """All statements are planned anew after it, which takes other tests seconds."""
    graph.ask("DROP INDEX hop_message")
    (missing,) = verify_run(graph.driver, graph.database, history.facts, history.tables)
    assert missing.found == "missing"
    load_run(graph.driver, graph.database, history.facts, history.tables)
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


def test_load_of_a_copy_that_differs_says_what_and_what_to_do(
    graph: Graph, history: History
) -> None:
    graph.ask("MATCH (r:Run {key: $run}) SET r.last = r.last + 1", run=RUN)
    with pytest.raises(CheckFailed) as failed:
        load_run(graph.driver, graph.database, history.facts, history.tables)
    graph.ask("MATCH (r:Run {key: $run}) SET r.last = r.last - 1", run=RUN)
    tells(str(failed.value), f"{RUN} last", "5", "6", f"vizpub neo4j rebuild {RUN}")
