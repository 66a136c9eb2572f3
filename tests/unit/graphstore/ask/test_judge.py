"""Clauses that do more than read are seen by their words; real plans are judged where Neo4j is."""

from __future__ import annotations

from typing import Any

import pytest

from vizpub.graphstore.ask.judge import ALLOWED, NO_PROCEDURE, PROCEDURES, check_plan, check_words
from vizpub.graphstore.ask.tokens import tokens
from vizpub.model.errors import UseError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("load csv FROM 'x' AS row", "LOAD CSV"),
        ("CALL { RETURN 1 AS x } IN TRANSACTIONS", "IN TRANSACTIONS"),
        ("CALL (*) { RETURN {a: 1} AS x } IN 3 CONCURRENT TRANSACTIONS", "IN TRANSACTIONS"),
        ("CALL (x, y) { CALL { RETURN 1 } RETURN 2 } IN TRANSACTIONS", "IN TRANSACTIONS"),
        ("COUNT { CALL { RETURN 1 } in transactions RETURN 1 }", "IN TRANSACTIONS"),
        (
            "COUNT { CALL dbms.listConfig() YIELD name RETURN 1 }",
            f"dbms.listConfig {NO_PROCEDURE}",
        ),
        ("CALL `dbms`.\nlistConfig", f"dbms.listConfig {NO_PROCEDURE}"),
        ("CALL db.labels.x()", f"db.labels.x {NO_PROCEDURE}"),
        ("SHOW SETTINGS", "SHOW SETTINGS"),
        ("terminate transaction 'x'", "TERMINATE"),
    ],
)
def test_clause_that_does_more_than_read_is_refused(text: str, why: str) -> None:
    with pytest.raises(UseError, match=f"{ALLOWED}.*: {why}"):
        check_words(list(tokens(text)))


@pytest.mark.parametrize(
    "text",
    [
        "RETURN 'LOAD CSV', \"CALL x.y() IN TRANSACTIONS\" // LOAD CSV",
        "MATCH (n:Call WHERE n.load = 1) RETURN n.call AS call",
        "MATCH (n:`LOAD CSV` {call: $call}) RETURN n.csv, n.load, n.transactions",
        "WITH [1] AS transactions RETURN {a: 1} IN transactions",
        "MATCH (n:Call {a: 1}) RETURN COUNT { (n) } IN transactions",
        "RETURN reload, csv, LOAD_CSV, xCALL AS y",
        *(f"CALL {name}() YIELD x RETURN x" for name in sorted(PROCEDURES)),
        "CALL (x) { RETURN 1 AS y } RETURN y IN transactions",
        "MATCH (n) RETURN n.x AS in, [x IN [1, 2] | x]",
        "CALL { RETURN 1 AS x } RETURN {a: x} IN transactions",
        "CALL db.labels YIELD label RETURN label",
        "}})]) RETURN 1",
        "} IN transactions",
    ],
)
def test_words_in_other_places_are_let_through(text: str) -> None:
    check_words(list(tokens(text)))


def plan(operator: str, *children: dict[str, Any], **args: str) -> dict[str, Any]:
    """As the driver tells what the server has planned."""
    return {"operatorType": f"{operator}@neo4j", "args": args, "children": [*children]}


LABELS = plan("ProcedureCall", Details="db.labels() :: (label :: STRING)")


@pytest.mark.parametrize(
    ("planned", "kind", "why"),
    [
        (plan("ProduceResults"), "rw", ""),
        (plan("ProduceResults"), "w", ""),
        (plan("ProduceResults"), None, ""),
        (None, "r", ""),
        (plan("LoadCSV"), "r", ": LOAD CSV"),
        (plan("ProduceResults", plan("Apply", LABELS, plan("LoadCSV"))), "r", ": LOAD CSV"),
        (plan("ProduceResults", plan("TransactionApply"), LABELS), "r", ": IN TRANSACTIONS"),
        (
            plan("ProcedureCall", Details="dbms.listConfig() :: (x)"),
            "r",
            f": dbms.listConfig {NO_PROCEDURE}",
        ),
    ],
)
def test_plan_that_does_more_than_read_is_refused(
    planned: dict[str, Any] | None, kind: str | None, why: str
) -> None:
    with pytest.raises(UseError, match=f"{ALLOWED}{why}"):
        check_plan(planned, kind)


def test_plan_that_reads_is_let_through() -> None:
    leaf = {"operatorType": "AllNodesScan@neo4j", "args": {}}
    check_plan(plan("ProduceResults", plan("Apply", LABELS, leaf), Details="n"), "r")
