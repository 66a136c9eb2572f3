"""The wire format of protobuf, written by hand."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number in as many groups of seven bits as it needs, the lowest first."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])
