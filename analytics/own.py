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
_ATTRIBUTE = "vizpub_metric"
_SHOWN = 5


@dataclass(frozen=True)
class MetricDeclaration:
    """Declaration of a metric by the decorator."""

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
        setattr(function, _ATTRIBUTE, MetricDeclaration(level, own_name, unit))
        return function

    return declare


def declaration_of(function: object) -> MetricDeclaration | None:
    """Declaration that the decorator attached; null where it was not used."""
    declaration = getattr(function, _ATTRIBUTE, None)
    return declaration if isinstance(declaration, MetricDeclaration) else None


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
        topics = np.unique(self.subscriptions["topic"].to_numpy())
        return pa.array(topics, pa.int32())

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
class OwnFunction:
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
        result = self._call(interval, where)
        if self.metric.level == "overlay":
            return np.array([self._number(result, where)])
        keys = interval.peers if self.metric.level == "peer" else interval.topics
        return self._numbers(result, keys.to_pylist(), where)

    def of_message(self, message: Message) -> float:
        """Its value for a message. Raises: OwnMetricFailed."""
        where = f"message #{message.number}"
        return self._number(self._call(message, where), where)

    def _call(self, subject: Interval | Message, where: str) -> Any:
        try:
            return self._function(subject)
        except (Exception, SystemExit) as error:  # any: it is the user's code
            line = _error_line(error, self._function)
            raise self._failure(where, f"{type(error).__name__}: {error}{line}") from error

    def _numbers(self, result: Any, keys: Sequence[int], where: str) -> _Floats:
        plural = f"{self.metric.level}s"
        if isinstance(result, Mapping):
            if extra_keys := [key for key in result if key not in {*keys}]:
                reason = f"returned {plural} that are not there: {_list_some(extra_keys)}"
                raise self._failure(where, reason)
            if missing_keys := [key for key in keys if key not in result]:
                reason = (
                    f"returned nothing for {plural} {_list_some(missing_keys)}; None means unknown"
                )
                raise self._failure(where, reason)
            result = [result[key] for key in keys]
        result = result.to_pylist() if isinstance(result, pa.Array | pa.ChunkedArray) else result
        if not isinstance(result, Sequence | np.ndarray) or isinstance(result, str | bytes):
            reason = f"returned {_kind(result)}, not a number for each of the {plural}"
            raise self._failure(where, reason)
        if len(result) != len(keys):
            reason = f"returned {amount(len(result), 'number')} for {len(keys)} {plural}"
            raise self._failure(where, reason)
        return np.array([self._number(value, where) for value in result], np.float64)

    def _number(self, value: Any, where: str) -> float:
        """NaN for None."""
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        if value is None:
            return np.nan
        if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
            raise self._failure(where, f"returned {_kind(value)}, not a number")
        try:
            number = float(value)
        except OverflowError:
            raise self._failure(where, "returned a number beyond the range of a double") from None
        if np.isinf(number):
            raise self._failure(where, "returned an infinite number; None means unknown")
        return number

    def _failure(self, where: str, reason: str) -> OwnMetricFailed:
        return OwnMetricFailed(self.metric.name, where, " ".join(reason.split()))


def _error_line(error: BaseException, function: Callable[..., Any]) -> str:
    """Line of the function's file that raised the error, as text; empty if unknown."""
    code = getattr(function, "__code__", None)
    step, line = error.__traceback__, 0
    while step is not None:
        if code and step.tb_frame.f_code.co_filename == code.co_filename:
            line = step.tb_lineno
        step = step.tb_next
    return f" (line {line})" if line else ""


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _list_some(keys: Sequence[Any]) -> str:
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
        is_valid = (self.start <= interval) & (interval < self.stop)
        return self.columns.take(np.flatnonzero(is_valid))


@dataclass(frozen=True)
class OverlayPeriods:
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
        links, subscriptions = self.links.at(number), self.subscriptions.at(number)
        src, dst = links["src"].to_numpy(), links["dst"].to_numpy()
        is_valid_link = (src != dst) & np.isin(src, peers) & np.isin(dst, peers)
        links = links.filter(pa.array(is_valid_link))
        subscriptions = subscriptions.filter(
            pa.array(np.isin(subscriptions["peer"].to_numpy(), peers))
        )
        subscriptions = subscriptions.sort_by([("topic", "ascending"), ("peer", "ascending")])
        return Interval(number, pa.array(peers, pa.int32()), links, subscriptions)


def measure_own(
    own_functions: Sequence[OwnFunction], overlay: OverlayPeriods, window: range, begins: int
) -> dict[str, Columns]:
    """The values of the own metrics in each interval of the window that has peers, by level: by
    interval, then by peer or topic. `begins` is the first interval of the run.

    Raises: OwnMetricFailed.
    """
    values_by_level: dict[str, dict[str, list[_Floats]]] = {
        level: {
            function.metric.name: [] for function in own_functions if function.metric.level == level
        }
        for level in ("overlay", "peer", "topic")
    }
    for interval in _intervals(overlay, window, begins):
        if len(interval.peers):
            for function in own_functions:
                if function.metric.level in values_by_level:
                    values = function.of_interval(interval)
                    values_by_level[function.metric.level][function.metric.name].append(values)
    return {
        level: {name: np.concatenate([np.empty(0), *parts]) for name, parts in columns.items()}
        for level, columns in values_by_level.items()
    }


def _intervals(overlay: OverlayPeriods, window: range, begins: int) -> Iterator[Interval]:
    previous = overlay.at(window.start - 1) if window.start > begins else None
    for number in window:
        current = overlay.at(number)
        yield replace(current, before=previous)
        previous = current
