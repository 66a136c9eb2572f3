"""Checks that a user's own Cypher only reads the graph, twice before it runs.

First by its words (`check_words`), because Neo4j's plan shows expressions, down to whole
subqueries, only as text. Then by the plan (`check_plan`), which shows what the words do.
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
"""Procedures that may be called. All others are refused: even one that only reads the graph may
fetch pages, write files or keep the server busy, and plugins can add any."""

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
"""Operators that occur in plans that only read, and why they are refused."""

_NO_CLAUSE = (".", ":", "$")
"""After these, a word is the name of a property, a label or a parameter."""

_NOTHING = Token("sign", "")


def check_words(words: Sequence[Token]) -> None:
    """Raise UseError if any clause does more than read, however deep it is."""
    in_calls: list[bool] = []
    """For each open bracket, True if it belongs to a CALL."""
    closed = False
    previous = _NOTHING
    for position, token in enumerate(words):
        pair = previous.keyword, token.keyword
        if pair in _PAIRS:
            raise UseError(f"{ALLOWED}: {_PAIRS[pair]}")
        if pair == ("}", "IN") and closed:
            raise UseError(f"{ALLOWED}: {_IN_TRANSACTIONS}")
        if token.keyword == "CALL" and previous.keyword not in _NO_CLAUSE:
            _check_call(_dotted_name(words, position + 1))
        elif token.kind == "sign" and token.text in "([{":
            in_calls.append(previous.keyword == "CALL" or (previous.keyword == ")" and closed))
        elif token.kind == "sign" and token.text in ")]}":
            closed = in_calls.pop() if in_calls else False
        previous = token


def _dotted_name(words: Sequence[Token], start: int) -> str:
    """Return the dotted name that begins at a word, or an empty text."""
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
    """Raise UseError if the server's plan of a query of this kind does anything but read."""
    if kind != "r" or not plan:
        raise UseError(ALLOWED)
    for operator, details in _operators(plan):
        if operator in _OPERATORS:
            raise UseError(f"{ALLOWED}: {_OPERATORS[operator]}")
        if operator == "ProcedureCall":
            _check_call(details.partition("(")[0])


def _operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each operator of a plan and its details, from the result down."""
    stack = [plan]
    while stack:
        part = stack.pop()
        yield part["operatorType"].partition("@")[0], str(part["args"].get("Details", ""))
        stack.extend(part.get("children", ()))
