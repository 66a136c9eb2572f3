"""Models given as one line of text: `NAME[:VALUE][,key=value…]`.

Latency, churn, subscriptions and publications are given like this, on the command line and in
TOML:

    constant:50ms
    friends:facebook.txt.gz,sample=connected
    zipf:topics=200,subscriptions=20,exponent=0.5

A kind is a frozen dataclass whose fields have the types of `vizpub.simulators.engine.parameters`, a
description, and a line `example`; VALUE is its first field. A key that is a keyword of Python
(`from`) is the field with an underscore after it (`from_`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT, inspect

from vizpub.model.errors import UnknownName, UseError
from vizpub.simulators.engine import parameters
from vizpub.simulators.engine.parameters import MOST, Duration, us

T = TypeVar("T")
_MODELS = ("workload", "publications", "interest", "churn", "latency")
"""What `vizpub lab simulate models` lists."""


def parse(text: str, kinds: Mapping[str, type[T]], purpose: str) -> T:
    """The kind that `text` names, with its values; errors name the purpose.

    Raises: UseError for an unknown name or key, or an invalid or missing value.
    """
    name, _, rest = text.strip().partition(":")
    if not rest and "," in name:
        name, _, rest = name.partition(",")
    if name not in kinds:
        see = "vizpub lab simulate models" if purpose in _MODELS else ""
        raise UnknownName(purpose, name, list(kinds), see)
    kind = kinds[name]
    fields = fields_of(kind)
    label = f"{purpose} '{name}'"
    values = dict(_values(rest, fields, label, kind))
    missing = [key for key, field in fields.items() if field.required and key not in values]
    if missing:
        needed = " and ".join(missing)
        raise UseError(f"{label} needs {needed}; write for example {example(kind)}")
    return kind(**{fields[key].name: value for key, value in values.items()})


def describe(kinds: Mapping[str, type[Any]]) -> list[str]:
    """Lines of help: each kind with a summary, an example, and a line for each field."""
    lines = []
    for name, kind in kinds.items():
        summary = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
        lines += [f"{name}: {summary}", f"  such as {example(kind)}"]
        lines += [f"  {key}: {_field_text(field)}" for key, field in fields_of(kind).items()]
    return lines


def example(kind: type[Any]) -> str:
    """An example of the kind that `parse` accepts."""
    return str(kind.example)


def fields_of(kind: type[Any]) -> dict[str, inspect.Field]:
    """The fields of a kind by their keys in the text."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.DataclassType)
    return {field.name.removesuffix("_"): field for field in described.fields}


def _values(
    rest: str, fields: Mapping[str, inspect.Field], label: str, kind: type[Any]
) -> Iterator[tuple[str, Any]]:
    items = [item.strip() for item in rest.split(",")] if rest.strip() else []
    types = get_type_hints(kind, include_extras=True)
    seen = set()
    for place, item in enumerate(items):
        key, value = _pair(item, place, fields, label, kind)
        if key in seen:
            raise UseError(f"{label}: '{key}' is given twice")
        seen.add(key)
        yield key, check_value(f"{label}: {key}", value, fields[key], types[fields[key].name])


def _pair(
    item: str, place: int, fields: Mapping[str, inspect.Field], label: str, kind: type[Any]
) -> tuple[str, str]:
    """Key and text of the value; only the first item may lack a key."""
    key, is_given, value = item.partition("=")
    key = key.strip()
    if is_given and key.isidentifier():
        if key not in fields:
            raise UseError(f"{label} has no '{key}'; {_nearest(key, fields)}")
        return key, value.strip()
    if place > 0:
        raise UseError(f"{label}: '{item}' is not key=value; write for example {example(kind)}")
    if not fields:
        raise UseError(f"{label} takes no value, so not '{item}'")
    return next(iter(fields)), item


def _nearest(key: str, fields: Mapping[str, inspect.Field]) -> str:
    if not fields:
        return "it takes no value"
    near = get_close_matches(key, fields, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(fields)}"


def check_value(name: str, raw: Any, field: inspect.Field, kind: Any) -> Any:
    """The raw value of a field, possibly a text, converted to the annotated type `kind`.

    Raises: UseError naming the valid values.
    """
    if raw == "none" and _is_optional(field.type):
        return None
    try:
        # JSON has no numbers that begin with a point.
        is_point_first = isinstance(raw, str) and re.fullmatch(r"\.[0-9]+", raw)
        text = f"0{raw}" if is_point_first else raw
        value = msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        # Words with a bound above are better: their maximum is another one.
        words = _words(field.type)
        if _is_beyond(raw) and re.search("at least|above", words):
            raise UseError(f"{name} is {words} and at most {MOST:,}, not '{raw}'") from None
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise UseError(f"{name} is {_words(field.type)}, not '{raw}'")
    if isinstance(value, str) and _IS_DURATION in get_args(kind):
        try:
            us(value)
        except UseError as error:
            raise UseError(f"{name}: {error}") from error
    return value


def _is_beyond(raw: Any) -> bool:
    """Return True for a number above the maximum of those whose words say none."""
    try:
        return float(raw) > MOST
    except (TypeError, ValueError, OverflowError):
        return False


def _field_text(field: inspect.Field) -> str:
    """Meaning, type and default of a field."""
    text = f"{_description(field.type)} ({_words(field.type)}"
    if field.default is NODEFAULT:
        return f"{text}; required)"
    return f"{text}; default: {'none' if field.default is None else field.default})"


def _description(described: inspect.Type) -> str:
    if isinstance(described, inspect.Metadata):
        return str((described.extra_json_schema or {}).get("description", ""))
    return ""


def _is_optional(described: inspect.Type) -> bool:
    if isinstance(described, inspect.Metadata):
        return _is_optional(described.type)
    return isinstance(described, inspect.UnionType) and described.includes_none


def _words(described: inspect.Type) -> str:
    """The values of a type as text: 'a whole number of at least 1'."""
    match described:
        case inspect.Metadata():
            return _words(described.type)
        case inspect.UnionType():
            return " or ".join(_words(one) for one in described.types)
        case inspect.LiteralType():
            return " or ".join(str(value) for value in described.values)
        case inspect.IntType() | inspect.FloatType():
            step = f", a multiple of {described.multiple_of}" if described.multiple_of else ""
            return _NUMBERS[type(described)] + _bounds(described) + step
        case inspect.StrType(pattern=pattern) if pattern == _IS_DURATION.pattern:
            return "a duration such as 50ms or 1.5s"
    return _OTHERS.get(type(described), "text")


_NUMBERS = {inspect.IntType: "a whole number", inspect.FloatType: "a number"}
_OTHERS = {inspect.BoolType: "true or false", inspect.NoneType: "none"}


def _bounds(described: inspect.IntType | inspect.FloatType) -> str:
    match described.ge, described.le, described.gt:
        case (None, None, None):
            return ""
        case (low, None | parameters.MOST, None):
            return f" of at least {low:,}"
        case (None, None | parameters.MOST, above):
            return f" above {above:,}"
        case (None, high, _):
            return f" of at most {high:,}"
        case (low, high, _):
            return f" from {low:,} to {high:,}"


(_IS_DURATION,) = [note for note in get_args(Duration) if isinstance(note, msgspec.Meta)]
