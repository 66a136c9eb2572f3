"""The given parameters of a query, as the values that Neo4j gets.

The header of the query says each one's type:

    tick      an interval number ('137'), 'first', 'last' or a time from the epoch ('12.5s');
              tick($other) is one that does not lie before the other
    peer, topic, message   a name, as in the source, or a short form (vizpub.model.naming) → the
                           node's key
    layers    names of layers, separated by commas
    kinds     of validity periods: links, subscriptions, presence; those that the run knows
    count     a whole number, from 1 to a million
    duration  a number of ticks ('3'), or as long a time ('50ms')
    a|b|c     one of these words
    int, string, list<int>, list<string>   as they are; lists separated by commas, or JSON
    run, levels, ranges    not given: the query's run, and where an index has the validity
                           periods of a time or a mode (vizpub.graphstore.ask.periods)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vizpub.cypher import Parameter, Statement
from vizpub.graphstore.ask.periods import check_times, class_ranges, level_ranges, mode_ranges
from vizpub.graphstore.runs import LoadedRun
from vizpub.model.clock import Clock, parse_duration_us
from vizpub.model.errors import AmbiguousName, UnknownName, UseError
from vizpub.model.naming import ends_of, number_of

NO_WHOLE_NUMBER = "is not a whole number"
NO_JSON_LIST = "is not a JSON list"

ABSENT = "is not present at"

MISSING = "is missing"

_OURS = ("run", "levels", "ranges")
_NAMES = ("peer", "topic", "message")
TYPES = (
    *("tick", *_NAMES, "layers", "kinds", "count", "duration"),
    *("int", "string", "list<int>", "list<string>", "run", "levels"),
)
"""The types that a query of the user's own may have, beside words."""
KINDS = ("links", "subscriptions", "presence")
"""The tables of validity periods."""
_MOST = 1_000_000
"""A count at most. Some queries go that many rounds at most, and Neo4j cannot be made to stop
between rounds that find nothing."""
_WORDS = {
    "tick": "time",
    "duration": "time or ticks",
    "int": "whole number",
    "count": "whole number",
}
"""What types are called to people, where the header has another word."""


def asked_of_user(query: Statement) -> list[Parameter]:
    """The parameters a user gives, in the order of the header."""
    return [p for p in query.parameters if p.type not in _OURS]


def check_names(query: Statement, given: Mapping[str, object]) -> None:
    """Raises: UseError for a parameter the query does not have or one that is missing."""
    asked = asked_of_user(query)
    unknown = sorted(set(given) - {p.name for p in asked})
    missing = [p.name for p in asked if not p.optional and p.name not in given]
    if not unknown and not missing:
        return
    wrong = [f"no parameter {name}" for name in unknown]
    wrong += [f"{name} {MISSING}" for name in missing]
    takes = ", ".join(f"{p.name} ({_described(p)})" for p in asked) or "none"
    raise UseError(f"query {query.name}: {'; '.join(wrong)}; it takes: {takes}")


def _described(parameter: Parameter) -> str:
    return _WORDS.get(parameter.type, parameter.type) + (
        ", may be left out" if parameter.optional else ""
    )


def values(query: Statement, given: Mapping[str, object], run: LoadedRun) -> dict[str, Any]:
    """The values of all parameters of a query of a run.

    Raises: UseError, OutOfRange, UnknownName with the nearest names that are there.
    """
    check_names(query, given)
    mode = _mode(query, given)
    ticks = {
        p.name: run.facts.clock.parse_at(str(at), run.facts.epoch)
        for p in query.parameters
        if p.type == "tick" and (at := given.get(p.name, p.default)) is not None
    }
    _check_order(query, ticks, run.facts.clock)
    found = {p.name: _value(p, given.get(p.name, p.default), run, ticks) for p in query.parameters}
    if mode:
        found["ranges"] = class_ranges(run.levels, *mode_ranges(mode, ticks))
    return found


def _mode(query: Statement, given: Mapping[str, object]) -> str | None:
    """The mode of a query that has one, given with the times that it needs."""
    for p in query.parameters if any(p.type == "ranges" for p in query.parameters) else ():
        if p.name == "mode":
            mode = _chosen(p, str(given[p.name]))
            check_times(mode, given)
            return mode
    return None


def default_value(parameter: Parameter, run: LoadedRun) -> Any:
    """The value of a parameter that is left out; it is neither a time nor derived from one.

    Raises: UseError where the run has not what the default names.
    """
    return _value(parameter, parameter.default, run, {})


def _check_order(query: Statement, ticks: Mapping[str, int], clock: Clock) -> None:
    for p in query.parameters:
        if not (p.name in ticks and p.at in ticks):
            continue
        if ticks[p.name] < ticks[p.at]:
            times = f"{clock.describe(ticks[p.name])} is before {clock.describe(ticks[p.at])}"
            raise UseError(f"parameters {p.at} and {p.name}: {times}; swap them")


def _value(parameter: Parameter, given: object, run: LoadedRun, ticks: Mapping[str, int]) -> Any:
    match parameter.type:
        case "run":
            return run.facts.name
        case "tick":
            return ticks.get(parameter.name)
        case "levels":
            return level_ranges(run.levels, ticks[parameter.at])
    return None if given is None else _given(parameter, given, run, ticks)


def _given(parameter: Parameter, given: object, run: LoadedRun, ticks: Mapping[str, int]) -> Any:
    if parameter.type in _NAMES:
        return _key(parameter, str(given), run, ticks.get(parameter.at))
    if parameter.type == "layers":
        return _layers(converted("list<string>", given), run)
    if parameter.type == "kinds":
        return _kinds(converted("list<string>", given), run)
    if parameter.words:
        return _chosen(parameter, str(given))
    try:
        if parameter.type == "duration":
            return _duration(str(given).strip(), run.facts.clock)
        return converted(parameter.type, given)
    except UseError as error:
        raise UseError(f"parameter {parameter.name}: {error}") from None


def converted(type: str, given: object) -> Any:
    """A value of a type that is neither a name nor a time, from itself or from text.

    Raises: UseError.
    """
    if type.startswith("list<"):
        return [converted(type[5:-1], item) for item in _items(given)]
    if type == "string":
        return str(given)
    try:
        number = int(str(given))
    except ValueError:
        raise UseError(f"'{given}' {NO_WHOLE_NUMBER}") from None
    if type == "count" and number < 1:
        raise UseError(f"{number} is less than 1")
    if type == "count" and number > _MOST:
        raise UseError(f"{number} is more than {_MOST:,}")
    return number


def _duration(given: str, clock: Clock) -> int:
    """Ticks, from their number or from a time that is a whole number of them."""
    if given.isdecimal():
        return int(given)
    if clock.tick_us is None:
        raise UseError(f"'{given}' is not a number of ticks, and the length of a tick is unknown")
    ticks, rest = divmod(parse_duration_us(given), clock.tick_us)
    if rest:
        raise UseError(
            f"'{given}' {NO_WHOLE_NUMBER} of ticks; one tick is {clock.tick_us / 1e6:g} s"
        )
    return ticks


def _chosen(parameter: Parameter, given: str) -> str:
    if given not in parameter.words:
        raise UseError(
            f"parameter {parameter.name}: '{given}' is none of {', '.join(parameter.words)}"
        )
    return given


def _items(given: object) -> Sequence[object]:
    if not isinstance(given, str):
        return given if isinstance(given, list | tuple) else [given]
    if not given.startswith("["):
        return [item.strip() for item in given.split(",")]
    try:
        items: list[object] = json.loads(given)
    except ValueError:
        raise UseError(f"'{given}' {NO_JSON_LIST}") from None
    return items


def _layers(layers: list[str], run: LoadedRun) -> list[str]:
    for layer in layers:
        if layer not in run.layers:
            raise UnknownName("layer", layer, run.layers)
    return layers


def _kinds(kinds: list[str], run: LoadedRun) -> list[str]:
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS)
    run.facts.check_known(*kinds)
    return kinds


def _key(parameter: Parameter, name: str, run: LoadedRun, at: int | None) -> str:
    kind = parameter.type
    ends = [list(pair) for pair in ends_of(name)] if name else []
    found = run.rows("read", f"{kind}-named", name=name, number=number_of(name), ends=ends)
    if not found:
        near = [row[0] for row in run.rows("read", f"{kind}-near", name=name)]
        raise UnknownName(kind, name, near)
    key: str = found[0][0]
    is_short: bool = found[0][2]
    if is_short and len(found) > 1:
        raise AmbiguousName(kind, name, [row[1] for row in found])
    if at is not None:
        _check_present(key, name, run, at)
    return key


def _check_present(key: str, name: str, run: LoadedRun, at: int) -> None:
    periods = run.rows("read", "peer-presence", peer=key)
    if any(valid_from <= at < valid_to for valid_from, valid_to in periods):
        return
    clock = run.facts.clock
    there = clock.describe_presence((begin, end) for begin, end in periods)
    raise UseError(f"peer '{name}' {ABSENT} {clock.describe(at)}; it is present {there}")
