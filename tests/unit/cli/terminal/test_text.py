"""Foreign text made harmless for a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.text import json_safe, printable, printable_lines


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
