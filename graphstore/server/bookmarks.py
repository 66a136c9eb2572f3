"""The number of a database's last transaction, which Community shows only in bookmarks."""

from __future__ import annotations

import base64
import struct

from neo4j import Session

_HEAD = bytes.fromhex("91cc10")
"""A list of one entry, which begins with the 16 bytes of the database's id."""
_NUMBERS = {0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q"}
"""PackStream's marker of a whole number, and how it is written; a small one is its own."""
_TAIL = b"\x90"


def last_transaction(session: Session) -> int | None:
    """The last transaction that was committed before the session's last query ended.

    Null where the server writes its bookmarks in another way.
    """
    (bookmark,) = session.last_bookmarks().raw_values
    return transaction_of(bookmark)


def transaction_of(bookmark: str) -> int | None:
    """The transaction that a bookmark of one database names; null for what is not known."""
    form, _, text = bookmark.partition(":")
    try:
        raw = base64.b64decode(text)
    except ValueError:
        return None
    if form != "FB" or not raw.startswith(_HEAD) or not raw.endswith(_TAIL):
        return None
    return _number(raw[len(_HEAD) + 16 : -len(_TAIL)])


def _number(packed: bytes) -> int | None:
    if len(packed) == 1 and packed[0] < 0x80:
        return packed[0]
    layout = _NUMBERS.get(packed[0]) if packed else None
    if layout is None or struct.calcsize(layout) != len(packed) - 1:
        return None
    (number,) = struct.unpack(layout, packed[1:])
    return int(number)
