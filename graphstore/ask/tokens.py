"""The words of a Cypher text, split as Neo4j's lexer splits them.

Where the two differ, this one finds more words, never fewer: no keyword of the server's is hidden
in what counts as a text, a name or a comment here. No package can replace it: the Python grammars
of Cypher are of other versions and dialects, and none follows the server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from vizpub.model.errors import UseError

ONE_AFTER_ANOTHER = "may not produce another"

NOT_CLOSED = "is not closed"
FOUR_DIGITS = "four hexadecimal digits"

_TOKEN = re.compile(
    r"""
      (?P<gap>    \s+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<text>   '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<name>   `(?:[^`]|``)*` )
    | (?P<open>   ['"`] | /\* )
    | (?P<number> \d+ )
    | (?P<word>   \w+ )
    | (?P<sign>   [!-~] )
    | (?P<other>  . )
    """,
    re.DOTALL | re.VERBOSE,
)
_LEFT_OUT = ("gap", "other")
"""Kinds of characters between words; Neo4j refuses most of the second kind."""

_ESCAPE = re.compile(r"\\(?:u(?P<code>.{0,4})|.)", re.DOTALL)
_CODE = re.compile(r"[0-9A-Fa-f]{4}", re.ASCII)


class Token(NamedTuple):
    """A word, a name in backquotes, a text in quotes, digits or a sign."""

    kind: str
    text: str
    """The text; of a name, without the backquotes."""

    @property
    def keyword(self) -> str:
        """The word in capitals if it may be a keyword, or the sign, or an empty text."""
        return self.text.upper() if self.kind in ("word", "sign") and self.text.isascii() else ""


def resolve_escapes(text: str) -> str:
    r"""Resolve escapes of the form \\uXXXX, as Neo4j does before all else.

    The result has no escape left that the server would resolve again.

    Raises: UseError for an escape of another form, and for one that makes another.
    """
    resolved = _ESCAPE.sub(_resolve, text)
    if resolved != text and _ESCAPE.sub(_resolve, resolved) != resolved:
        raise UseError(rf"an escape {ONE_AFTER_ANOTHER} one; write \ in place of \u005c")
    return resolved


def _resolve(escape: re.Match[str]) -> str:
    code = escape["code"]
    if code is None:
        return escape[0]
    if not _CODE.fullmatch(code):
        raise UseError(f"'{escape[0]}' is not a character; write \\u and {FOUR_DIGITS}")
    return chr(int(code, 16))


def tokens(text: str) -> Iterator[Token]:
    """Split a text without escapes. Raises: UseError if a quote is not closed."""
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "open":
            line = text.count("\n", 0, match.start()) + 1
            raise UseError(f"{match[0]} in line {line} {NOT_CLOSED}")
        if kind == "name":
            yield Token(kind, match[0][1:-1].replace("``", "`"))
        elif kind not in _LEFT_OUT:
            yield Token(kind, match[0])
