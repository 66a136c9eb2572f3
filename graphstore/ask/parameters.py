"""Conversion of a query's arguments to the values that Neo4j gets.

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
    run, levels, ranges    set by vizpub: the query's run, and the ranges of an index that hold the
                           validity periods of a time or a mode (vizpub.graphstore.ask.periods)
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
"""The types of parameters in a user's own query; words such as in|out are possible too."""
KINDS = ("links", "subscriptions", "presence")
"""The tables of validity periods."""
_MOST = 1_000_000
"""The largest count. Some queries go as many rounds, and Neo4j cannot be stopped between rounds
that find nothing."""
_WORDS = {
    "tick": "time",
    "duration": "time or ticks",
    "int": "whole number",
    "count": "whole number",
}
"""Names of types for people, where they differ from those in the header."""


def user_parameters(query: Statement) -> list[Parameter]:
    """Return the parameters that a user sets, in the order of the header."""
    return [p for p in query.parameters if p.type not in _OURS]


def check_names(query: Statement, arguments: Mapping[str, object]) -> None:
    """Raise UseError for arguments that the query does not have, or that are missing."""
    parameters = user_parameters(query)
    unknown = sorted(set(arguments) - {p.name for p in parameters})
    missing = [p.name for p in parameters if not p.optional and p.name not in arguments]
    if not unknown and not missing:
        return
    wrong = [f"no parameter {name}" for name in unknown]
    wrong += [f"{name} {MISSING}" for name in missing]
    takes = [
        f"{p.name} ({_WORDS.get(p.type, p.type)}{', may be left out' * p.optional})"
        for p in parameters
    ]
    raise UseError(
        f"query {query.name}: {'; '.join(wrong)}; it takes: {', '.join(takes) or 'none'}"
    )


def values(query: Statement, arguments: Mapping[str, object], run: LoadedRun) -> dict[str, Any]:
    """Return the values of all parameters of a query, by name.

    Raises: UseError, OutOfRange, UnknownName with the nearest names of the run.
    """
    check_names(query, arguments)
    mode = _mode(query, arguments)
    ticks = {
        p.name: run.facts.clock.parse_at(str(at), run.facts.epoch)
        for p in query.parameters
        if p.type == "tick" and (at := arguments.get(p.name, p.default)) is not None
    }
    for p in query.parameters:
        if p.name in ticks and p.at in ticks and ticks[p.name] < ticks[p.at]:
            early, late = (run.facts.clock.describe(ticks[name]) for name in (p.name, p.at))
            raise UseError(f"parameters {p.at} and {p.name}: {early} is before {late}; swap them")
    by_name = {
        p.name: _value(p, arguments.get(p.name, p.default), run, ticks) for p in query.parameters
    }
    if mode:
        by_name["ranges"] = class_ranges(run.levels, *mode_ranges(mode, ticks))
    return by_name


def _mode(query: Statement, arguments: Mapping[str, object]) -> str | None:
    """Return the mode of a query that has one, after a check that its times are set."""
    for p in query.parameters if any(p.type == "ranges" for p in query.parameters) else ():
        if p.name == "mode":
            mode = _check_word(p, str(arguments[p.name]))
            check_times(mode, arguments)
            return mode
    return None


def default_value(parameter: Parameter, run: LoadedRun) -> Any:
    """Return the default of a parameter that is neither a time nor derived from one.

    Raises: UseError if the run lacks what the default names.
    """
    return _value(parameter, parameter.default, run, {})


def _value(parameter: Parameter, argument: object, run: LoadedRun, ticks: Mapping[str, int]) -> Any:
    match parameter.type:
        case "run":
            return run.facts.name
        case "tick":
            return ticks.get(parameter.name)
        case "levels":
            return level_ranges(run.levels, ticks[parameter.at])
    return None if argument is None else _argument_value(parameter, argument, run, ticks)


def _argument_value(
    parameter: Parameter, argument: object, run: LoadedRun, ticks: Mapping[str, int]
) -> Any:
    if parameter.type in _NAMES:
        return _find_key(parameter, str(argument), run, ticks.get(parameter.at))
    if parameter.type == "layers":
        return _check_items("layer", convert("list<string>", argument), run.layers)
    if parameter.type == "kinds":
        kinds = _check_items("kind", convert("list<string>", argument), KINDS)
        run.facts.check_known(*kinds)
        return kinds
    if parameter.words:
        return _check_word(parameter, str(argument))
    try:
        if parameter.type == "duration":
            return _ticks(str(argument).strip(), run.facts.clock)
        return convert(parameter.type, argument)
    except UseError as error:
        raise UseError(f"parameter {parameter.name}: {error}") from None


def convert(type: str, argument: object) -> Any:
    """Convert text, or a value itself, to a type that is neither a name nor a time.

    Raises: UseError.
    """
    if type.startswith("list<"):
        return [convert(type[5:-1], item) for item in _items(argument)]
    if type == "string":
        return str(argument)
    try:
        number = int(str(argument))
    except ValueError:
        raise UseError(f"'{argument}' {NO_WHOLE_NUMBER}") from None
    if type == "count" and number < 1:
        raise UseError(f"{number} is less than 1")
    if type == "count" and number > _MOST:
        raise UseError(f"{number} is more than {_MOST:,}")
    return number


def _ticks(text: str, clock: Clock) -> int:
    """Return a number of ticks, from text that has their number or a time such as 50ms."""
    if text.isdecimal():
        return int(text)
    if clock.tick_us is None:
        raise UseError(f"'{text}' is not a number of ticks, and the length of a tick is unknown")
    ticks, rest = divmod(parse_duration_us(text), clock.tick_us)
    if rest:
        raise UseError(
            f"'{text}' {NO_WHOLE_NUMBER} of ticks; one tick is {clock.tick_us / 1e6:g} s"
        )
    return ticks


def _check_word(parameter: Parameter, word: str) -> str:
    if word not in parameter.words:
        raise UseError(
            f"parameter {parameter.name}: '{word}' is none of {', '.join(parameter.words)}"
        )
    return word


def _items(argument: object) -> Sequence[object]:
    if not isinstance(argument, str):
        return argument if isinstance(argument, list | tuple) else [argument]
    if not argument.startswith("["):
        return [item.strip() for item in argument.split(",")]
    try:
        items: list[object] = json.loads(argument)
    except ValueError:
        raise UseError(f"'{argument}' {NO_JSON_LIST}") from None
    return items


def _check_items(kind: str, items: list[str], available: Sequence[str]) -> list[str]:
    for item in items:
        if item not in available:
            raise UnknownName(kind, item, available)
    return items


def _find_key(parameter: Parameter, name: str, run: LoadedRun, at: int | None) -> str:
    kind = parameter.type
    ends = [list(pair) for pair in ends_of(name)] if name else []
    rows = run.rows("read", f"{kind}-named", name=name, number=number_of(name), ends=ends)
    if not rows:
        near = [row[0] for row in run.rows("read", f"{kind}-near", name=name)]
        raise UnknownName(kind, name, near)
    key: str = rows[0][0]
    is_short: bool = rows[0][2]
    if is_short and len(rows) > 1:
        raise AmbiguousName(kind, name, [row[1] for row in rows])
    if at is None:
        return key
    periods = run.rows("read", "peer-presence", peer=key)
    if any(valid_from <= at < valid_to for valid_from, valid_to in periods):
        return key
    clock = run.facts.clock
    presence = clock.describe_presence((begin, end) for begin, end in periods)
    raise UseError(f"peer '{name}' {ABSENT} {clock.describe(at)}; it is present {presence}")
