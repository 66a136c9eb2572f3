"""Values as text, for people and for programs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cli.terminal.formatting import cell_text, json_value, plain_text
from model.clock import OPEN


@pytest.mark.parametrize(
    ("value", "shown", "written"),
    [
        (None, "-", ""),
        (0, "0", "0"),
        (OPEN, "open", str(OPEN)),
        (True, "yes", "true"),
        (False, "no", "false"),
        (1 / 3, "0.333333", "0.3333333333333333"),
        (1e9, "1e+09", "1000000000.0"),
        (math.nan, "-", ""),
        (math.inf, "-", "inf"),
        ("a\x1b", "a\\x1b", "a\x1b"),
        (["a", "b"], "a, b", '["a", "b"]'),
        ([], "", "[]"),
        ({"k": math.nan}, '{"k": null}', '{"k": null}'),
    ],
)
def test_values_become_cell_text_for_people_and_plain_text(
    value: Any, shown: str, written: str
) -> None:
    assert cell_text(value) == shown
    assert plain_text(value) == written


def test_json_value_turns_nan_and_infinity_into_null() -> None:
    assert json_value([math.nan, (1.5, {"a": -math.inf})]) == [None, [1.5, {"a": None}]]
