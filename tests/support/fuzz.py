"""Valid records, damaged in their bytes, their structure or their values. All from a seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

_BYTES = (
    b"\0", b'"', b",", b"\\", b"\r", b"\n", b"\xff", b"\x85", b"\xef\xbb\xbf", b"}", b"]", b" ",
)  # fmt: skip
_VALUES = (
    None, True, 0, -1, 1.5, 1e300, 2**31, 2**31 - 1, 2**63 - 1, 2**63, -(2**63), 10**400, "", " ",
    "x\n", "\x00", "\x85", "\u2028", "\ud800", "\udc00x", "\ufeff", "NaN", "7", "=", "Ünï", '"',
    "a,b", "long " * 5_000, [], {}, [[]], [None], ["\ud83d"], {"": 0}, {"\ud800": 1},
)  # fmt: skip
"""Values in place of the intended ones."""
_DEEP = (20, 99, 101, 900, 5_000)


def spoilt(rng: Random, record: bytes) -> bytes:
    """Some bytes changed, added, or missing."""
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        at, size = rng.randrange(len(record) + 1), rng.choice((1, 1, 2, 9, 100))
        new: bytes = rng.choice(
            (b"", rng.randbytes(size), rng.choice(_BYTES), record[at : at + size])
        )
        record = record[:at] + new + record[at + size * rng.randrange(2) :]
    return record


def bent(rng: Random, value: Any) -> bytes:
    """A JSON value as text: a part of it is missing, changed, renamed, or repeated."""
    deep = "here it gets deep"
    holder = rng.choice(list(_holders(value)))
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    other = deepcopy(rng.choice((*_VALUES, deep)))
    if rng.random() < 0.6:
        holder[key] = other
    elif isinstance(holder, dict) and rng.random() < 0.7:
        moved = holder.pop(key)
        if rng.random() < 0.5:
            holder[rng.choice(("colour", "", "\ud800", "meta", "id", "type"))] = moved
    elif isinstance(holder, dict):
        holder["more"] = other
    else:
        holder.append(other)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    depth = rng.choice(_DEEP)
    text = text.replace(json.dumps(deep), "[" * depth + "]" * depth)
    if rng.random() < 0.1:
        text = text[:-1] + ", " + text[1:]
    return text.encode("utf-8", "surrogatepass")


def _holders(value: Any) -> Iterator[Any]:
    """The containers in a JSON value."""
    if isinstance(value, dict | list) and value:
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _holders(item)


def odd_fields(rng: Random, fields: Sequence[str]) -> bytes:
    """A CSV row with unexpected values, too many or too few of them, odd quotes."""
    found = list(fields)
    at = rng.randrange(len(found))
    odd = rng.choice([v for v in _VALUES if isinstance(v, str | int) and not isinstance(v, bool)])
    kind = rng.randrange(6)
    if kind < 3:
        found[at] = str(odd)
    elif kind == 3:
        found[at] = rng.choice(('"{}"', '"{}', '{}"', '{}"{}', '"{}""{}"', '"{},{}"')).replace(
            "{}", found[at]
        )
    elif kind == 4:
        del found[at:]
    else:
        found += [found[at]] * rng.choice((1, 2, 25_000))
    return ",".join(found).encode("utf-8", "surrogatepass")


def mixture(
    rng: Random, count: int, sound: Callable[[int], bytes], bad: Callable[[int], bytes]
) -> Iterator[bytes]:
    """That many records: half of them valid, some bad, some with damaged bytes."""
    for number in range(count):
        kind = rng.randrange(4)
        record = bad(number) if kind == 0 else sound(number)
        yield spoilt(rng, record) if kind == 1 else record
