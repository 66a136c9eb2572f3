"""Size limits of a user's own Cypher, and of its answer.

A parser that runs out of stack never answers. Nesting costs stack, not length: brackets, CASE, and
each operator of a chain, since the sum of a hundred terms is a tree of a hundred levels. The limits
are a fraction of what a Neo4j that was just started can take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vizpub.graphstore.ask.tokens import Token
from vizpub.model.errors import UseError

TOO_LARGE = "the query is too large"
CHAINED = "too many operators are chained"
NESTED = "too many brackets are inside each other"

CHARACTERS = 100_000
WORDS = 5_000
"""Words, signs and values."""
CLAUSES = 200
_BRACKETS = 50
"""Inside each other, CASE … END included."""
_CURLY = 10
"""Inside each other: planning takes twice as long with each two levels of subqueries."""
OPERATORS = 100
"""In one chain: between two commas or clauses, or, beside AND and OR, in one condition."""

_OPENED = {")": "(", "]": "[", "}": "{", "END": "CASE"}
"""The opening word of each closing one."""
_OPERATORS = frozenset("+-*/%^=<>.!&|")
_JOINING = frozenset({"AND", "OR", "XOR"})
_WORDS = frozenset({"NOT", "IN", "IS", "CONTAINS", "STARTS", "ENDS"})
_CLAUSES = frozenset(
    {"MATCH", "OPTIONAL", "WITH", "WHERE", "RETURN", "UNWIND", "CALL", "UNION", "ORDER", "SKIP"}
)
_PARTS = frozenset({",", "WHEN", "THEN", "ELSE"})
_INSIDE = _OPERATORS | _JOINING | _WORDS | frozenset(",:([{$")
"""After these a word is part of an expression, whatever it is."""


@dataclass
class _Level:
    """The nesting in a bracket so far: of its tallest part, and of the unfinished one."""

    opened: str
    tallest: int = 0
    joined: int = 0
    condition: int = 0
    tallest_condition: int = 0

    @property
    def height(self) -> int:
        part = self.joined + max(self.condition, self.tallest_condition)
        return max(self.tallest, part)

    def end_condition(self) -> None:
        self.tallest_condition = max(self.condition, self.tallest_condition)
        self.condition = 0
        self.joined += 1

    def end_part(self) -> None:
        self.tallest = self.height
        self.joined = self.condition = self.tallest_condition = 0


def check_length(text: str) -> None:
    """Raise UseError if a text is too long to be checked."""
    if len(text) > CHARACTERS:
        raise _too_large(f"it has {len(text):,} characters", CHARACTERS)


def check_size(words: Sequence[Token]) -> None:
    """Raise UseError if a query is larger than a server can safely parse."""
    if len(words) > WORDS:
        raise _too_large(f"it has {len(words):,} words and signs", WORDS)
    levels, clauses, previous = [_Level("")], 0, ""
    for token in words:
        word, level = token.keyword, levels[-1]
        if word in _OPENED.values() and not (word == "CASE" and previous in (".", ":", "$")):
            levels.append(_Level(word))
            _check_depth(levels)
        elif word in _OPENED and level.opened == _OPENED[word]:
            levels.pop()
            levels[-1].condition += level.height + 1
        elif word in _JOINING:
            level.end_condition()
        elif word in _OPERATORS or word in _WORDS:
            level.condition += 1
        elif word == "," or (word in _PARTS | _CLAUSES and previous not in _INSIDE):
            clauses += word in _CLAUSES
            level.end_part()
        if level.height > OPERATORS or levels[-1].height > OPERATORS:
            raise _too_large(CHAINED, OPERATORS)
        previous = word
    if clauses > CLAUSES:
        raise _too_large(f"it has {clauses:,} clauses", CLAUSES)


def _check_depth(levels: Sequence[_Level]) -> None:
    if len(levels) - 1 > _BRACKETS:
        raise _too_large(NESTED, _BRACKETS)
    if sum(level.opened == "{" for level in levels) > _CURLY:
        raise _too_large("too many curly brackets are inside each other", _CURLY)


def _too_large(excess: str, limit: int) -> UseError:
    return UseError(
        f"{TOO_LARGE}: {excess}, and {limit:,} are allowed; pass values as "
        "parameters, or split the query"
    )


_OF_VALUE = 8
"""Bytes of a value that is no text, and of an item's place in a list."""


def size_of(value: object, limit: int) -> int:
    """Return the bytes of a value, about as JSON; stop counting after `limit`."""
    size, stack = 0, [value]
    while stack and size <= limit:
        size += _OF_VALUE
        match stack.pop():
            case str() | bytes() as text:
                size += len(text)
            case list() as items:
                if len(items) * _OF_VALUE > limit - size:
                    return size + len(items) * _OF_VALUE
                stack += items
            case Mapping() as members:
                stack += members.values()
    return size
