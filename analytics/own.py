"""Own metrics: functions of users that a run is measured by.

    @vizpub.metric(level="overlay")
    def mean_age(interval):
        "What it means, in a line."
        return ...

A function of level `message` takes a `Message`, every other an `Interval`. It returns a number
(None = unknown); of level `peer` or `topic` one for each peer present or topic with subscribers: a
mapping by peer or topic, or a sequence in the order of `interval.peers` or `interval.topics`.
Numbers are stored as doubles. Tasks get the function by value, so they need not have its file.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vizpub.model.errors import OwnMetricFailed
from vizpub.model.own import OwnMetric
from vizpub.model.wording import amount

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Floats = npt.NDArray[np.float64]
_DECLARED = "vizpub_metric"
_SHOWN = 5


@dataclass(frozen=True)
class Declared:
    """What the decorator says of a function."""

    level: str
    name: str
    unit: str = ""


def metric(
    level: str, *, name: str | None = None, unit: str = ""
) -> Callable[[_Function], _Function]:
    """Declare a function an own metric of a level: overlay, peer, topic or message.

    Its name is that of the function, unless `name` is given; the first line of its docstring says
    what it means.
    """

    def declare(function: _Function) -> _Function:
        own_name = name or str(getattr(function, "__name__", ""))
        setattr(function, _DECLARED, Declared(level, own_name, unit))
        return function

    return declare


def declared(function: object) -> Declared | None:
    """What the decorator said; null where it was not used."""
    found = getattr(function, _DECLARED, None)
    return found if isinstance(found, Declared) else None


@dataclass(frozen=True)
class Interval:
    """The overlay at the end of an interval. Peers and topics are dense indices."""

    number: int
    peers: pa.Int32Array
    """The peers present, ascending."""
    links: pa.Table
    """src, dst, layer, topic (null = none): links of the measured layers, of a peer to another."""
    subscriptions: pa.Table
    """topic, peer; ascending."""
    before: Interval | None = None
    """The interval before; null in the first one, and of `before` itself."""

    @cached_property
    def topics(self) -> pa.Int32Array:
        """The topics with subscribers, ascending."""
        found = np.unique(self.subscriptions["topic"].to_numpy())
        return pa.array(found, pa.int32())

    def edges(self, *layers: str) -> set[tuple[int, int]]:
        """The links as pairs (src, dst), each once; only those of the layers, if any are named."""
        columns = (self.links[name].to_pylist() for name in ("src", "dst", "layer"))
        return {
            (src, dst)
            for src, dst, layer in zip(*columns, strict=True)
            if not layers or layer in layers
        }


@dataclass(frozen=True)
class Message:
    """A message and all its arrivals. Peers and topics are dense indices; null = unknown."""

    number: int
    topic: int | None
    publisher: int | None
    interval: int
    """Of the publication."""
    tick: int
    time_us: int | None
    arrivals: pa.Table
    """The columns of `receptions` but `message`, by peer."""


@dataclass(frozen=True)
class Own:
    """An own metric with its function."""

    metric: OwnMetric
    code: bytes
    """The function, by value (cloudpickle)."""

    @cached_property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = pickle.loads(self.code)
        return function

    def of_interval(self, interval: Interval) -> _Floats:
        """Its values in an interval: one, or of each peer or topic. Raises: OwnMetricFailed."""
        where = f"interval {interval.number}"
        found = self._called(interval, where)
        if self.metric.level == "overlay":
            return np.array([self._number(found, where)])
        keys = interval.peers if self.metric.level == "peer" else interval.topics
        return self._of_each(found, keys.to_pylist(), where)

    def of_message(self, message: Message) -> float:
        """Its value for a message. Raises: OwnMetricFailed."""
        where = f"message #{message.number}"
        return self._number(self._called(message, where), where)

    def _called(self, given: Interval | Message, where: str) -> Any:
        try:
            return self._function(given)
        except (Exception, SystemExit) as error:  # any: it is the user's code
            line = _line_in(error, self._function)
            raise self._failed(where, f"{type(error).__name__}: {error}{line}") from error

    def _of_each(self, found: Any, keys: Sequence[int], where: str) -> _Floats:
        what = f"{self.metric.level}s"
        if isinstance(found, Mapping):
            if others := [key for key in found if key not in {*keys}]:
                why = f"returned {what} that are not there: {_listed(others)}"
                raise self._failed(where, why)
            if left_out := [key for key in keys if key not in found]:
                why = f"returned nothing for {what} {_listed(left_out)}; None means unknown"
                raise self._failed(where, why)
            found = [found[key] for key in keys]
        found = found.to_pylist() if isinstance(found, pa.Array | pa.ChunkedArray) else found
        if not isinstance(found, Sequence | np.ndarray) or isinstance(found, str | bytes):
            why = f"returned {_kind(found)}, not a number for each of the {what}"
            raise self._failed(where, why)
        if len(found) != len(keys):
            why = f"returned {amount(len(found), 'number')} for {len(keys)} {what}"
            raise self._failed(where, why)
        return np.array([self._number(value, where) for value in found], np.float64)

    def _number(self, value: Any, where: str) -> float:
        """NaN for None."""
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        if value is None:
            return np.nan
        if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
            raise self._failed(where, f"returned {_kind(value)}, not a number")
        if np.isinf(float(value)):
            raise self._failed(where, "returned an infinite number; None means unknown")
        return float(value)

    def _failed(self, where: str, why: str) -> OwnMetricFailed:
        return OwnMetricFailed(self.metric.name, where, " ".join(why.split()))


def _line_in(error: BaseException, function: Callable[..., Any]) -> str:
    """Where in the function's file the error was raised."""
    code = getattr(function, "__code__", None)
    step, line = error.__traceback__, 0
    while step is not None:
        if code and step.tb_frame.f_code.co_filename == code.co_filename:
            line = step.tb_lineno
        step = step.tb_next
    return f" (line {line})" if line else ""


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _listed(keys: Sequence[Any]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(map(str, keys[:_SHOWN])) + more


Columns = dict[str, _Floats]


@dataclass(frozen=True)
class Spans:
    """Columns of equal length, with the intervals [start, stop) in which each row holds."""

    columns: pa.Table
    start: npt.NDArray[np.int32]
    stop: npt.NDArray[np.int32]

    def at(self, interval: int) -> pa.Table:
        """The rows of an interval."""
        there = (self.start <= interval) & (interval < self.stop)
        return self.columns.take(np.flatnonzero(there))


@dataclass(frozen=True)
class Overlay:
    """Validity periods of a block of intervals, of distinct rows."""

    presence: Spans
    """peer"""
    links: Spans
    """src, dst, layer, topic"""
    subscriptions: Spans
    """topic, peer"""

    def at(self, number: int) -> Interval:
        """The overlay of an interval. What absent peers hold does not count."""
        peers = np.unique(self.presence.at(number)["peer"].to_numpy())
        links, taken = self.links.at(number), self.subscriptions.at(number)
        src, dst = links["src"].to_numpy(), links["dst"].to_numpy()
        both = (src != dst) & np.isin(src, peers) & np.isin(dst, peers)
        links = links.filter(pa.array(both))
        taken = taken.filter(pa.array(np.isin(taken["peer"].to_numpy(), peers)))
        taken = taken.sort_by([("topic", "ascending"), ("peer", "ascending")])
        return Interval(number, pa.array(peers, pa.int32()), links, taken)


def measured_by_own(
    own: Sequence[Own], overlay: Overlay, window: range, begins: int
) -> dict[str, Columns]:
    """The values of the own metrics in each interval of the window that has peers, by level: by
    interval, then by peer or topic. `begins` is the first interval of the run.

    Raises: OwnMetricFailed.
    """
    found: dict[str, dict[str, list[_Floats]]] = {
        level: {one.metric.name: [] for one in own if one.metric.level == level}
        for level in ("overlay", "peer", "topic")
    }
    for interval in _intervals(overlay, window, begins):
        if len(interval.peers):
            for one in own:
                if one.metric.level in found:
                    values = one.of_interval(interval)
                    found[one.metric.level][one.metric.name].append(values)
    return {
        level: {name: np.concatenate([np.empty(0), *parts]) for name, parts in columns.items()}
        for level, columns in found.items()
    }


def _intervals(overlay: Overlay, window: range, begins: int) -> Iterator[Interval]:
    before = overlay.at(window.start - 1) if window.start > begins else None
    for number in window:
        now = overlay.at(number)
        yield replace(now, before=before)
        before = now
