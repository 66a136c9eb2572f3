"""The grammar of a report: the valid values of each field, and the texts of problems.

A *kind* checks one JSON value. Standard library only. Kinds report the problems of a value and
its unknown fields; the types for decoding and for columns are made from the same kinds, so they
cannot differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from vizpub.model.naming import GAUGE

INT32, INT64 = 2**31 - 1, 2**63 - 1
LAST_INTERVAL = INT32 - 1
"""The greatest interval number; the next one still fits into 32 bits."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which no encoding can hold."""
SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs."""
DEEPEST = 100
"""How deep a JSON value may be nested; Python's own limit depends on the caller."""


class Kind(Protocol):
    """The valid JSON values of a field."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """The problems of the value of the field `at`, as stable texts."""

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Paths of unknown fields below `at`, as `sent[].colour`."""


class _Scalar:
    """A kind without fields."""

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class Key(_Scalar):
    """A name: a string, not empty, without control characters."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not a string, empty, or with a control character."""
        if not isinstance(value, str):
            yield f"'{at}' is not a string"
        elif not value:
            yield f"'{at}' is empty"
        elif _CONTROL.search(value):
            yield f"'{at}' has a control character"


@dataclass(frozen=True)
class OneOf(_Scalar):
    """One of a few words."""

    words: tuple[str, ...]

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Any other word, or none."""
        if value not in self.words:
            yield f"'{at}' is not {' or '.join(self.words)}"


@dataclass(frozen=True)
class Time(_Scalar):
    """A wall-clock time, ISO 8601."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not a string, or not a time."""
        try:
            datetime.fromisoformat(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            yield f"'{at}' is not a time"


@dataclass(frozen=True)
class Whole(_Scalar):
    """A whole number, from `least` to `most`."""

    most: int = INT64
    least: int = 0

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not an integer (1.0 and true are not), too small or too large."""
        if type(value) is not int:
            yield f"'{at}' is not an integer"
        elif value < self.least:
            yield f"'{at}' is {'negative' if value < 0 else 'zero'}"
        elif value > self.most:
            yield f"'{at}' is too large"


@dataclass(frozen=True)
class Flag(_Scalar):
    """True or false."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Anything else."""
        if type(value) is not bool:
            yield f"'{at}' is not true or false"


@dataclass(frozen=True)
class Numbers(_Scalar):
    """Numbers by name; a null is an absent number."""

    pattern: str = f"^{GAUGE}$"
    """Of a name."""
    most: int = 100
    """Numbers in one report."""

    def problems(self, value: object, at: str = "gauges") -> Iterator[str]:
        """Not an object, too many, a wrong name, or not a finite number (true is none)."""
        if not isinstance(value, dict):
            yield f"'{at}' is not an object"
            return
        if len(value) > self.most:
            yield f"'{at}' has more than {self.most} names"
        for name, number in value.items():
            if not re.fullmatch(self.pattern, name):
                yield f"'{at}' has a name that is not 1 to 64 letters, digits or any of _.-"
            elif isinstance(number, bool) or not isinstance(number, int | float | None):
                yield f"'{_path(at, name)}' is not a number"
            elif number is not None and not _is_finite(number):
                yield f"'{_path(at, name)}' is not finite"


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no double holds
        return False


@dataclass(frozen=True)
class Free(_Scalar):
    """An object defined by the source; only checked for what cannot be written as JSON again."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not an object, or with what JSON has not, or what readers of it do not take: numbers that
        are not finite, such as 1e999, halves of surrogate pairs, deep nesting.
        """
        if not isinstance(value, dict):
            yield f"'{at}' is not an object"
            return
        for inner, depth in _below(value):
            if depth > DEEPEST:
                yield f"'{at}' is nested more than {DEEPEST} deep"
                return
            if isinstance(inner, str) and SURROGATE.search(inner):
                yield f"'{at}' has half of a surrogate pair"
            if isinstance(inner, float) and not math.isfinite(inner):
                yield f"'{at}' has a number that is not finite"


def _below(value: object) -> Iterator[tuple[object, int]]:
    """All values and names inside a value, with their depths."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        if isinstance(found, dict) and depth <= DEEPEST:
            waiting += ((inner, depth + 1) for pair in found.items() for inner in pair)
        elif isinstance(found, list) and depth <= DEEPEST:
            waiting += ((inner, depth + 1) for inner in found)


@dataclass(frozen=True)
class Array:
    """An array of one kind."""

    item: Kind

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not an array, or wrong items."""
        if not isinstance(value, list):
            yield f"'{at}' is not an array"
            return
        for item in value:
            yield from self.item.problems(item, f"{at}[]")

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Unknown fields of the items."""
        for item in value if isinstance(value, list) else ():
            yield from self.item.unknown(item, f"{at}[]")


@dataclass(frozen=True)
class Object:
    """Fields by name. A null is an absent field."""

    fields: Mapping[str, Kind]
    required: tuple[str, ...] = ()

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not an object, required fields missing, wrong fields."""
        if not isinstance(value, dict):
            yield f"'{at}' is not an object" if at else "not an object"
            return
        for name in self.required:
            if value.get(name) is None:
                yield f"no '{_path(at, name)}'"
        for name, kind in self.fields.items():
            if value.get(name) is not None:
                yield from kind.problems(value[name], _path(at, name))

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Unknown fields, here and below."""
        for name, inner in value.items() if isinstance(value, dict) else ():
            if kind := self.fields.get(name):
                yield from kind.unknown(inner, _path(at, name))
            else:
                yield _path(at, SURROGATE.sub("\N{REPLACEMENT CHARACTER}", name))


@dataclass(frozen=True)
class KeyOr:
    """A key, or an object with more fields."""

    more: Object

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Neither, or a wrong one."""
        return (self.more if isinstance(value, dict) else Key()).problems(value, at)

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Unknown fields of the object."""
        return self.more.unknown(value, at)


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


_TRAFFIC = Object({"messages": Whole(), "bytes": Whole()})
_COUNTERS = Object({"sent": _TRAFFIC, "received": _TRAFFIC})
_MESSAGE: dict[str, Kind] = {"message": Key(), "topic": Key(), "publisher": Key()}
_COPY: dict[str, Kind] = {
    "hops": Whole(INT32),
    "time_us": Whole(),
    "bytes": Whole(),
    "resent": Flag(),
}

REPORT = Object(
    {
        "format": OneOf(("vizpub.report/1",)),
        "run": Key(),
        "peer": Key(),
        "interval": Whole(LAST_INTERVAL),
        "seq": Whole(),
        "neighbors": Array(
            KeyOr(Object({"peer": Key(), "layer": Key(), "topic": Key()}, required=("peer",)))
        ),
        "topics": Array(Key()),
        "roles": Array(Object({"role": Key(), "topic": Key()}, required=("role",))),
        "control": _COUNTERS,
        "publication": _COUNTERS,
        "duplicates": Whole(),
        "rpcs_sent": Whole(),
        "rpcs_received": Whole(),
        "gauges": Numbers(),
        "sent": Array(Object({**_MESSAGE, "to": Array(Key()), **_COPY}, required=("message",))),
        "received": Array(
            Object(
                {**_MESSAGE, "from": Key(), **_COPY, "subscribed": Flag()}, required=("message",)
            )
        ),
        "left": Flag(),
    },
    required=("format", "peer", "interval"),
)
RUN = Object(
    {
        "format": OneOf(("vizpub.run/1",)),
        "run": Key(),
        "protocol": Key(),
        "parameters": Free(),
        "seed": Whole(least=-INT64),
        "interval_us": Whole(least=1),
        "epoch": Time(),
        "counters": OneOf(("delta", "total")),
        "lists": OneOf(("partial", "complete")),
        "unknown": Array(Key()),
    },
    required=("format",),
)
END = Object(
    {"format": OneOf(("vizpub.end/1",)), "run": Key(), "last_interval": Whole(LAST_INTERVAL)},
    required=("format", "last_interval"),
)
FORMATS = {"vizpub.report/1": REPORT, "vizpub.run/1": RUN, "vizpub.end/1": END}
