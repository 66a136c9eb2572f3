"""Values as text, for people and for programs."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vizpub.cli.terminal.formatting import (
    cell_text,
    estimate_text,
    json_safe,
    json_value,
    plain_text,
    printable,
    printable_lines,
)
from vizpub.model.clock import OPEN


@pytest.mark.parametrize(
    ("value", "shown", "written"),
    [
        (None, "-", ""),
        (0, "0", "0"),
        (OPEN, "open", str(OPEN)),
        (True, "yes", "true"),
        (False, "no", "false"),
        (1 / 3, "0.333333", "0.3333333333333333"),
        (12_345, "12,345", "12345"),
        (12_345.678, "12,345.7", "12345.678"),
        (1e9, "1,000,000,000", "1000000000.0"),
        (1e20, "1e+20", "1e+20"),
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


@given(st.text())
def test_printable_text_has_no_control_or_format_characters(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]


@pytest.mark.parametrize("text", ["", "peer-1", "topic/a b", "日本 µ é …", "a\\n"])
def test_harmless_text_is_unchanged_by_printable(text: str) -> None:
    assert printable(text) == text


def test_escapes_equal_those_of_python() -> None:
    assert printable("\x1b[2Ja\nb\x9b\u202e\ud800") == r"\x1b[2Ja\nb\x9b\u202e\ud800"
    assert printable_lines("a\n\x07b") == "a\n\\x07b"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_safe_json_has_the_same_value_and_is_printable(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    assert json.loads(json_safe(written)) == text
    assert printable(json_safe(written)) == json_safe(written)


def record(value: float | None, **more: Any) -> dict[str, Any]:
    estimate = {"estimate": "mean", "value": value, "low": None, "high": None}
    return {**estimate, "n": 1, "runs": 1, **more}


@pytest.mark.parametrize(
    ("value", "low", "high", "n", "text"),
    [
        (None, None, None, 0, None),
        (22.36427891, None, None, 3, "22.3643"),
        (22.36427891, 22.36427891, 22.36427891, 3, "22.3643 ± 0"),
        (22.36427891, 21.0, 23.72855782, 3, "22.4 ± 1.4"),
        (2108790.0, 2108790.0, 2108790.0, 3, "2108790 ± 0"),
        (73859.0, 54208.0, 93510.0, 3, "74000 ± 20000"),
        (0.0000271, 0.0000269, 0.0000273, 3, "2.71e-05 ± 2e-07"),
        (0.5, 0.25, 0.75, 2, "0.50 ± 0.25 (n = 2)"),
    ],
)
def test_mean_has_the_digits_that_its_interval_supports(
    value: float | None, low: float | None, high: float | None, n: int, text: str | None
) -> None:
    assert estimate_text(record(value, low=low, high=high, n=n, runs=3)) == text


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0.4512, 0.5488), "0.500 [0.451, 0.549]"),
        ((None, None), "0.5"),
        ((-2, 9), "0.5 [-2.0, 9.0]"),
    ],
)
def test_ratio_is_shown_with_its_bounds(bounds: tuple[Any, Any], text: str) -> None:
    of = record(0.5, low=bounds[0], high=bounds[1], estimate="ratio")
    assert estimate_text(of) == text


def test_large_ratio_without_bounds_is_shown_in_full() -> None:
    assert estimate_text(record(1091.6, estimate="ratio")) == "1090"
