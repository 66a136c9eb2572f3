"""The grammar of a report: the valid values of each field, and the texts of problems.

A *kind* checks one JSON value: it yields the problems of the value and the paths of its unknown
fields. The types for decoding and for columns are made from the same kinds, so they cannot differ.
Standard library only.
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
"""The deepest nesting of a JSON value; Python's own limit depends on the caller."""


class Kind(Protocol):
    """The valid JSON values of a field."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Yield the problems of the value of the field `at`, as stable texts."""

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Yield the paths of unknown fields below `at`, such as `sent[].colour`."""


class _Scalar:
    """A kind without fields."""

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Return no paths."""
        return iter(())


@dataclass(frozen=True)
class Key(_Scalar):
    """A name: a string, not empty, without control characters."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no string, empty strings and control characters."""
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
        """Refuse all other values."""
        if value not in self.words:
            yield f"'{at}' is not {' or '.join(self.words)}"


@dataclass(frozen=True)
class Time(_Scalar):
    """A wall-clock time, ISO 8601."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no string or no time."""
        try:
            datetime.fromisoformat(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            yield f"'{at}' is not a time"


@dataclass(frozen=True)
class Whole(_Scalar):
    """An integer from `least` to `most`."""

    most: int = INT64
    least: int = 0

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no integer (as 1.0 and true), too small or too large."""
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
        """Refuse all other values."""
        if type(value) is not bool:
            yield f"'{at}' is not true or false"


@dataclass(frozen=True)
class Numbers(_Scalar):
    """Numbers by name; a null is an absent number."""

    pattern: str = f"^{GAUGE}$"
    """The pattern of a name."""
    most: int = 100
    """The most numbers in one report."""

    def problems(self, value: object, at: str = "gauges") -> Iterator[str]:
        """Refuse what is no object, too many numbers, wrong names, and all but finite numbers."""
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
    """An object defined by the source; only checked for values that JSON cannot hold."""

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no object, and values that JSON or its readers do not accept: numbers that
        are not finite, such as 1e999, halves of surrogate pairs, deep nesting.
        """
        if not isinstance(value, dict):
            yield f"'{at}' is not an object"
            return
        for inner, depth in _values_in(value):
            if depth > DEEPEST:
                yield f"'{at}' is nested more than {DEEPEST} deep"
                return
            if isinstance(inner, str) and SURROGATE.search(inner):
                yield f"'{at}' has half of a surrogate pair"
            if isinstance(inner, float) and not math.isfinite(inner):
                yield f"'{at}' has a number that is not finite"


def _values_in(value: object) -> Iterator[tuple[object, int]]:
    """Yield a value and all names and values inside it, with their depths."""
    waiting = [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, dict) and depth <= DEEPEST:
            waiting += ((inner, depth + 1) for pair in value.items() for inner in pair)
        elif isinstance(value, list) and depth <= DEEPEST:
            waiting += ((inner, depth + 1) for inner in value)


@dataclass(frozen=True)
class Array:
    """An array of one kind."""

    item: Kind

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no array, and wrong items."""
        if not isinstance(value, list):
            yield f"'{at}' is not an array"
            return
        for item in value:
            yield from self.item.problems(item, f"{at}[]")

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Yield those of the items."""
        for item in value if isinstance(value, list) else ():
            yield from self.item.unknown_paths(item, f"{at}[]")


@dataclass(frozen=True)
class Object:
    """Fields by name. A null is an absent field."""

    fields: Mapping[str, Kind]
    required: tuple[str, ...] = ()

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is no object, missing required fields, and wrong fields."""
        if not isinstance(value, dict):
            yield f"'{at}' is not an object" if at else "not an object"
            return
        for name in self.required:
            if value.get(name) is None:
                yield f"no '{_path(at, name)}'"
        for name, kind in self.fields.items():
            if value.get(name) is not None:
                yield from kind.problems(value[name], _path(at, name))

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Yield those of the object and of its fields."""
        for name, inner in value.items() if isinstance(value, dict) else ():
            if kind := self.fields.get(name):
                yield from kind.unknown_paths(inner, _path(at, name))
            else:
                yield _path(at, SURROGATE.sub("\N{REPLACEMENT CHARACTER}", name))


@dataclass(frozen=True)
class KeyOr:
    """A key, or an object with more fields."""

    more: Object

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Refuse what is neither, or wrong."""
        return (self.more if isinstance(value, dict) else Key()).problems(value, at)

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Yield those of the object."""
        return self.more.unknown_paths(value, at)


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


_TRAFFIC = Object({"messages": Whole(), "bytes": Whole()})
_COUNTERS = Object({"sent": _TRAFFIC, "received": _TRAFFIC})
_KIND = Object(
    {
        "kind": Key(),
        "topic": Key(),
        **{
            f"{unit}_{way}": Whole()
            for unit in ("messages", "ids", "bytes")
            for way in ("sent", "received", "dropped")
        },
    },
    required=("kind",),
)
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
        "attributes": Array(Object({"key": Key(), "value": Key()}, required=("key", "value"))),
        "control": _COUNTERS,
        "control_kinds": Array(_KIND),
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
