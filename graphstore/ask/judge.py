"""Checks that a user's own Cypher only reads the graph, twice before it runs.

By its words (`check_words`), as Neo4j shows what stands in an expression, down to whole
subqueries, by its text alone; then by the plan that Neo4j makes of it (`check_plan`), which
shows what the words do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vizpub.graphstore.ask.tokens import Token
from vizpub.model.errors import UseError

NO_PROCEDURE = "is not a procedure that may be called"

PROCEDURES = frozenset(
    {
        "db.index.fulltext.queryNodes",
        "db.index.fulltext.queryRelationships",
        "db.index.vector.queryNodes",
        "db.index.vector.queryRelationships",
        "db.info",
        "db.labels",
        "db.ping",
        "db.propertyKeys",
        "db.relationshipTypes",
        "db.schema.nodeTypeProperties",
        "db.schema.relTypeProperties",
        "db.schema.visualization",
        "dbms.components",
    }
)
"""What may be called. All others are refused, as also a procedure that only reads may fetch
pages, write files or keep the server busy: which ones there are is up to its plugins."""

ALLOWED = "only statements that read the graph are allowed here"

LOAD_CSV = "LOAD CSV makes the server fetch files and pages"
_IN_TRANSACTIONS = "IN TRANSACTIONS has no limits"
_SHOW_SETTINGS = "SHOW SETTINGS shows how the server is configured"
_SHOW_TRANSACTIONS = "SHOW TRANSACTIONS shows the queries of others"
_TERMINATE = "TERMINATE TRANSACTIONS ends the queries of others"

_PAIRS = {
    ("LOAD", "CSV"): LOAD_CSV,
    ("SHOW", "SETTING"): _SHOW_SETTINGS,
    ("SHOW", "SETTINGS"): _SHOW_SETTINGS,
    ("SHOW", "TRANSACTION"): _SHOW_TRANSACTIONS,
    ("SHOW", "TRANSACTIONS"): _SHOW_TRANSACTIONS,
    ("TERMINATE", "TRANSACTION"): _TERMINATE,
    ("TERMINATE", "TRANSACTIONS"): _TERMINATE,
}
"""Words that stand side by side in these clauses and nowhere else."""

_OPERATORS = {
    "LoadCSV": LOAD_CSV,
    "ShowSettings": _SHOW_SETTINGS,
    "ShowTransactions": _SHOW_TRANSACTIONS,
    "TerminateTransactions": _TERMINATE,
    "TransactionApply": _IN_TRANSACTIONS,
    "TransactionForeach": _IN_TRANSACTIONS,
}
"""Operators of a plan that only reads, and what is wrong with them."""

_NO_CLAUSE = (".", ":", "$")
"""After these a word is the name of a property, a label or a parameter."""

_NOTHING = Token("sign", "")


def check_words(words: Sequence[Token]) -> None:
    """Raises: UseError where they have a clause that does more than read, however deep."""
    of_calls: list[bool] = []
    """Of each bracket that is open, whether it belongs to a CALL."""
    closed = False
    before = _NOTHING
    for place, token in enumerate(words):
        pair = before.keyword, token.keyword
        if pair in _PAIRS:
            raise UseError(f"{ALLOWED}: {_PAIRS[pair]}")
        if pair == ("}", "IN") and closed:
            raise UseError(f"{ALLOWED}: {_IN_TRANSACTIONS}")
        if token.keyword == "CALL" and before.keyword not in _NO_CLAUSE:
            _check_call(_dotted(words, place + 1))
        elif token.kind == "sign" and token.text in "([{":
            of_calls.append(before.keyword == "CALL" or (before.keyword == ")" and closed))
        elif token.kind == "sign" and token.text in ")]}":
            closed = of_calls.pop() if of_calls else False
        before = token


def _dotted(words: Sequence[Token], start: int) -> str:
    """The name with dots that begins there; empty where none does."""
    parts: list[str] = []
    for name, dot in zip(words[start::2], [*words[start + 1 :: 2], _NOTHING], strict=False):
        if name.kind not in ("word", "name"):
            break
        parts.append(name.text)
        if dot.keyword != ".":
            break
    return ".".join(parts)


def _check_call(name: str) -> None:
    if name and name not in PROCEDURES:
        raise UseError(f"{ALLOWED}: {name} {NO_PROCEDURE} (write a variable named call as `call`)")


def check_plan(plan: dict[str, Any] | None, kind: str | None) -> None:
    """Raises: UseError where the server's plan does anything but read; `kind` is the query's."""
    if kind != "r" or not plan:
        raise UseError(ALLOWED)
    for operator, details in _operators(plan):
        if operator in _OPERATORS:
            raise UseError(f"{ALLOWED}: {_OPERATORS[operator]}")
        if operator == "ProcedureCall":
            _check_call(details.partition("(")[0])


def _operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(operator, details) of a plan, from its end to its beginnings."""
    left = [plan]
    while left:
        part = left.pop()
        yield part["operatorType"].partition("@")[0], str(part["args"].get("Details", ""))
        left.extend(part.get("children", ()))
