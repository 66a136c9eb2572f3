"""The words of a Cypher text, found as Neo4j's lexer finds them.

Where the two differ, more words are seen here, never fewer: what the server takes for a keyword
is never hidden in what is taken for a text, a name or a comment here. There is no package that
could be asked instead: the grammars of Cypher for Python are of other versions and other
dialects, and none follows the server's.
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
"""What stands between words and makes none; Neo4j refuses most of the second."""

_ESCAPE = re.compile(r"\\(?:u(?P<code>.{0,4})|.)", re.DOTALL)
_CODE = re.compile(r"[0-9A-Fa-f]{4}", re.ASCII)


class Token(NamedTuple):
    """A word, a name in backquotes, a text in quotes, digits or a sign."""

    kind: str
    text: str
    """Of a name what is between the backquotes."""

    @property
    def keyword(self) -> str:
        """The keyword that it may be, in capitals; the sign that it is; else empty."""
        return self.text.upper() if self.kind in ("word", "sign") and self.text.isascii() else ""


def plain(text: str) -> str:
    r"""The text without escapes of the form \\uXXXX, which Neo4j resolves before all else.

    What is judged is what is sent: nothing is left in it that the server would resolve again.

    Raises: UseError for an escape of another form, and for one that makes another.
    """
    found = _ESCAPE.sub(_resolved, text)
    if found != text and _ESCAPE.sub(_resolved, found) != found:
        raise UseError(rf"an escape {ONE_AFTER_ANOTHER} one; write \ in place of \u005c")
    return found


def _resolved(escape: re.Match[str]) -> str:
    code = escape["code"]
    if code is None:
        return escape[0]
    if not _CODE.fullmatch(code):
        raise UseError(f"'{escape[0]}' is not a character; write \\u and {FOUR_DIGITS}")
    return chr(int(code, 16))


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text without escapes. Raises: UseError where a quote is not closed."""
    for found in _TOKEN.finditer(text):
        kind = str(found.lastgroup)
        if kind == "open":
            line = text.count("\n", 0, found.start()) + 1
            raise UseError(f"{found[0]} in line {line} {NOT_CLOSED}")
        if kind == "name":
            yield Token(kind, found[0][1:-1].replace("``", "`"))
        elif kind not in _LEFT_OUT:
            yield Token(kind, found[0])
