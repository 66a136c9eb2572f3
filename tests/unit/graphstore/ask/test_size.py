"""What may be parsed; what the largest of it costs a server is asked where Neo4j is."""

from __future__ import annotations

import json
from itertools import chain

import pytest

from tests.support.bombs import SHAPES
from tests.support.words import naming
from vizpub import cypher
from vizpub.graphstore.ask.size import (
    CHAINED,
    CHARACTERS,
    NESTED,
    TOO_LARGE,
    WORDS,
    check_length,
    check_size,
    size_of,
)
from vizpub.graphstore.ask.tokens import tokens
from vizpub.model.errors import UseError

SHIPPED = [(folder, name) for folder in ("queries", "browser", "read", "verify")
           for name in cypher.names(folder)]  # fmt: skip


def check(text: str) -> None:
    check_length(text)
    check_size(list(tokens(text)))


@pytest.mark.parametrize("shape", SHAPES)
def test_large_text_is_refused_from_its_limit_on(shape: str) -> None:
    text, most = SHAPES[shape]
    check(text(most))
    for size in (most + most // 10 + 2, 3 * most, 10 * most):
        with pytest.raises(UseError, match=TOO_LARGE):
            check(text(size))


@pytest.mark.parametrize("word", ["match", "with", "case", "end", "then", "x"])
def test_chain_of_a_variable_of_any_name_is_refused(word: str) -> None:
    """Of one named case it is taken for brackets."""
    with pytest.raises(UseError, match=f"{CHAINED}|{NESTED}"):
        check(f"WITH 1 AS {word} RETURN " + " + ".join([word] * 200))


@pytest.mark.parametrize(("folder", "name"), SHIPPED)
def test_statement_of_ours_is_far_from_the_limits(folder: str, name: str) -> None:
    """Three of them, one after the other, still are."""
    text = cypher.statement(folder, name).text
    check("\n".join(chain.from_iterable([[text] * 3])))


def test_length_is_limited_before_anything_is_looked_at() -> None:
    check_length("x" * CHARACTERS)
    with pytest.raises(UseError, match=naming("100,001", "100,000")):
        check_length("x" * (CHARACTERS + 1))
    with pytest.raises(UseError, match=naming("5,001", "5,000")):
        check("x " * (WORDS + 1))


def test_many_conditions_and_values_are_let_through() -> None:
    check("MATCH (p:Peer {run: $run}) WHERE "
          + " OR ".join(f"(p.id = {i} AND p.name <> 'x')" for i in range(20))
          + " RETURN p")  # fmt: skip
    check("MATCH (p:Peer) WHERE p.id IN [" + ", ".join(map(str, range(2000))) + "] RETURN p")


def test_size_of_values_is_about_that_of_their_json() -> None:
    values: list[object] = [
        "word" * 1000,
        [*range(10_000_000, 10_005_000)],
        {"a": {"b": ["word" * 500] * 9}, "c": [1.25] * 999},
        [[["word"] * 10] * 10] * 10,
    ]
    for value in values:
        size = len(json.dumps(value, separators=(",", ":")))
        assert size / 2 <= size_of(value, 1 << 30) <= 2 * size


def test_size_beyond_the_bound_is_not_counted_to_the_end() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert size_of(endless, 1000) > 1000
    assert size_of([0] * 10_000, 1000) > 1000
