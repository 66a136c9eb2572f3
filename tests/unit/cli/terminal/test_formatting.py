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
