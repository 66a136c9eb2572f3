from __future__ import annotations

from typing import Any

import pytest

from tests.support.words import naming
from vizpub import cypher
from vizpub.graphstore.ask.parameters import (
    NO_JSON_LIST,
    NO_WHOLE_NUMBER,
    check_names,
    convert,
    user_parameters,
)
from vizpub.model.errors import UseError


@pytest.mark.parametrize(
    ("type", "given", "value"),
    [
        ("int", "7", 7),
        ("int", 7, 7),
        ("string", "7", "7"),
        ("string", 'it\'s "$run"', 'it\'s "$run"'),
        ("list<string>", "a, b", ["a", "b"]),
        ("list<string>", ["a, b"], ["a, b"]),
        ("list<string>", '["a, b", "c"]', ["a, b", "c"]),
        ("list<int>", "1,2", [1, 2]),
        ("list<int>", 3, [3]),
        ("count", "1", 1),
    ],
)
def test_parameter_values_are_converted_to_their_type(type: str, given: object, value: Any) -> None:
    assert convert(type, given) == value


@pytest.mark.parametrize(
    ("type", "given"),
    [("int", "seven"), ("int", "7.5"), ("list<int>", "1,x"), ("list<string>", "[1, ")],
)
def test_value_of_a_wrong_type_is_refused(type: str, given: str) -> None:
    with pytest.raises(UseError, match=f"{NO_WHOLE_NUMBER}|{NO_JSON_LIST}"):
        convert(type, given)


@pytest.mark.parametrize("given", ["0", "-3", 0])
def test_count_below_one_is_refused(given: object) -> None:
    with pytest.raises(UseError, match=naming(given, 1)):
        convert("count", given)


def test_count_above_the_limit_is_refused() -> None:
    assert convert("count", "1000000") == 1_000_000
    with pytest.raises(UseError, match=naming("1000001", "1,000,000")):
        convert("count", "1000001")


def test_parameters_set_by_vizpub_are_not_asked_for() -> None:
    names = [p.name for p in user_parameters(cypher.statement("queries", "hubs"))]
    assert names == ["at", "k", "layers"]


def test_parameter_name_errors_are_all_reported_at_once() -> None:
    query = cypher.statement("queries", "shortest-path")
    check_names(query, {"at": 1, "from": "a", "to": "b"})
    with pytest.raises(UseError) as error:
        check_names(query, {"at": 1, "form": "a", "run": "r"})
    assert str(error.value) == (
        "query shortest-path: no parameter form; no parameter run; from is missing; "
        "to is missing; it takes: at (time), from (peer), to (peer), "
        "layers (layers, may be left out)"
    )
