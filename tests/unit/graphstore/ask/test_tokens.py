r"""Words are found where Neo4j finds them; tests/integration/graph/test_free_text.py asks it."""

from __future__ import annotations

import pytest

from tests.support.words import naming
from vizpub.graphstore.ask.tokens import (
    FOUR_DIGITS,
    NOT_CLOSED,
    ONE_AFTER_ANOTHER,
    resolve_escapes,
    tokens,
)
from vizpub.model.errors import UseError


def words(text: str) -> list[str]:
    return [token.text for token in tokens(resolve_escapes(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("LOAD/**/CSV", ["LOAD", "CSV"]),
        ("LOAD // x\nCSV", ["LOAD", "CSV"]),
        ("LOAD // x\rCSV", ["LOAD", "CSV"]),
        ("LOAD\u00a0\u2028CSV", ["LOAD", "CSV"]),
        ("/*/ LOAD */ CSV", ["CSV"]),
        ("/* /* */ LOAD", ["LOAD"]),
        ("'LOAD' CSV", ["'LOAD'", "CSV"]),
        (r"'\'' LOAD", [r"'\''", "LOAD"]),
        (r"'\\' LOAD", [r"'\\'", "LOAD"]),
        ("\"'\" LOAD '\"'", ['"\'"', "LOAD", "'\"'"]),
        ("'//' LOAD", ["'//'", "LOAD"]),
        ("`a``b \\` LOAD", ["a`b \\", "LOAD"]),
        ("1LOAD", ["1", "LOAD"]),
        ("xLOAD LOADx é_LOAD", ["xLOAD", "LOADx", "é_LOAD"]),
        ("n.x(1)", ["n", ".", "x", "(", "1", ")"]),
        (r"LO\u0041D", ["LOAD"]),
        (r"'a\u0027LOAD", ["'a'", "LOAD"]),
        (r"\u002f\u002f x\u000aLOAD", ["LOAD"]),
        (r"'\\u0027' LOAD", [r"'\\u0027'", "LOAD"]),
        (r"'\\\u0027' LOAD '", [r"'\\'", "' LOAD '"]),
    ],
)
def test_text_is_cut_into_words_names_texts_and_signs(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "RETURN 1 /* a", r"'a\'", "`a\\``"])
def test_quote_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(UseError, match=naming("line 1", NOT_CLOSED)):
        words(text)


def test_line_of_what_is_not_closed_is_counted_from_the_first() -> None:
    with pytest.raises(UseError, match=naming("line 2", NOT_CLOSED)):
        words("\n'a")


@pytest.mark.parametrize("text", [r"\u+041", r"\u-041", r"\uu0041", r"\u00", r"\u", "\\u００４１"])
def test_escape_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UseError, match=FOUR_DIGITS):
        resolve_escapes(text)


def test_escape_that_makes_another_is_refused() -> None:
    with pytest.raises(UseError, match=ONE_AFTER_ANOTHER):
        resolve_escapes(r"RETURN '\u005cu0027'")


def test_text_without_escapes_stays_as_it_is() -> None:
    text = r"RETURN 'C:\\users\\x', '\n', `\t`"
    assert resolve_escapes(text) == text


def test_word_of_other_letters_is_no_keyword() -> None:
    """Python's capitals of both are S and K."""
    assert [token.keyword for token in tokens("C\u017fV call \u212a `in`")] == ["", "CALL", "", ""]
