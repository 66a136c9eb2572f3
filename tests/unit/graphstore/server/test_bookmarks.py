"""The transaction that a bookmark names, in the forms that PackStream has for numbers."""

from __future__ import annotations

import base64

import pytest

from graphstore.server.bookmarks import transaction_of

DATABASE = bytes(range(16))


def bookmark(number: bytes, tail: bytes = b"\x90", head: bytes = b"\x91\xcc\x10") -> str:
    return "FB:" + base64.b64encode(head + DATABASE + number + tail).decode()


@pytest.mark.parametrize(
    ("packed", "number"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\xc9\x00\xc8", 200),
        (b"\xca\x00\x01\x00\x00", 65_536),
        (b"\xcb" + (2**40).to_bytes(8, "big"), 2**40),
    ],
)
def test_bookmark_numbers_of_every_width_are_read(packed: bytes, number: int) -> None:
    assert transaction_of(bookmark(packed)) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FB:",
        "FB:not base64!",
        "neo4j:tx42",
        bookmark(b""),
        bookmark(b"\x80"),
        bookmark(b"\xc9\x01"),
        bookmark(b"\x05", tail=b"\x91"),
        bookmark(b"\x05", head=b"\x92\xcc\x10"),
    ],
)
def test_bookmark_of_unknown_form_has_no_transaction(text: str) -> None:
    assert transaction_of(text) is None
