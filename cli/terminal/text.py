"""Foreign text for a terminal: nothing in it may move the cursor or turn the line around."""

from __future__ import annotations

import re
import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLAIN = re.compile(r"[\x20-\x7e]*")


def printable(text: str) -> str:
    """The text on one line, with control, format and surrogate characters as escapes."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSAFE else c for c in text)


def printable_lines(text: str) -> str:
    """As `printable`, keeping the line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def json_safe(text: str) -> str:
    r"""JSON with its characters that a terminal obeys as \u escapes: the same JSON."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        _json_escaped(c) if unicodedata.category(c) in _UNSAFE and c >= "\x7f" else c for c in text
    )


def _json_escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
