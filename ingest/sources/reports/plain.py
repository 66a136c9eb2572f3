"""Plainly spelled reports, found among many lines at once by a regular expression.

Nearly all lines that programs write are plain: they have no escapes, nulls or unknown fields, and
their fields are in one order. The expression for this order is made from the grammar, and matches
nothing that the contract refuses. Another one matches lines in any order. All other lines go to the
decoders of vizpub.ingest.sources.reports.decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.steps import open_database
from vizpub.model.arrays import Bools
from vizpub.reports.fields import REPORT, Array, Flag, KeyOr, Numbers, Object, OneOf, Whole
from vizpub.reports.fields import Kind as Grammar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FEW = 256
"""Fewer lines than these are read faster one by one."""

_NAME = r'"[^"\\\x00-\x1f\x7f-\x{9f}]+"'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?(?:[eE][-+]?[0-9]{1,2})?"
"""A number that a double holds."""
_SPACE = r"[ \t\r]*"
_MOST_GAUGES = next(of.most for of in REPORT.fields.values() if isinstance(of, Numbers))
_FACTS = """
    SELECT unnest(json_transform(
        text, '{"run": "VARCHAR", "peer": "VARCHAR", "interval": "BIGINT", "seq": "BIGINT"}'
    ))
    FROM texts
"""
_NAMES = "SELECT json_keys(text) AS names FROM texts"
_GAUGES = "SELECT json_keys(text, '$.gauges') AS names FROM texts"
_LOOKED_AT = 100
"""Lines of which the longest shows the order of the fields."""


def find_plain_reports(texts: pa.StringArray) -> tuple[Bools, pa.Table]:
    """Return a mask of the texts that are plainly spelled reports, and a table of the `run`,
    `peer`, `interval` and `seq` of these.
    """
    if len(texts) < FEW:
        return np.zeros(len(texts), bool), pa.table({})
    order = _order_in(texts)
    accepted = _match(texts, _ordered_pattern(order))
    others = ~accepted
    with open_database() as database:
        if others.sum() >= FEW:
            accepted[others] = _are_plain(database, texts.filter(pa.array(others)))
        unsure = accepted & (others | ("gauges" in order))  # may name a gauge twice, or too many
        if unsure.any():
            names = _names(database, _GAUGES, texts.filter(pa.array(unsure)))
            accepted[unsure] = _are_sound(names, _MOST_GAUGES)
        database.register("texts", pa.table({"text": texts.filter(pa.array(accepted))}))
        return accepted, database.sql(_FACTS).to_arrow_table()


def _order_in(texts: pa.StringArray) -> tuple[str, ...]:
    """Return the fields of the contract in the order in which a line has them, then those that it
    lacks but the contract requires.
    """
    longest = max(texts.slice(0, _LOOKED_AT).to_pylist(), key=len)
    try:
        report = msgspec.json.decode(longest, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        report = {}
    names = (name for name in report if name in REPORT.fields)
    return tuple(dict.fromkeys([*names, *REPORT.required]))


def _are_plain(database: DuckDBPyConnection, texts: pa.StringArray) -> Bools:
    """Return a mask of the plain reports among texts with fields in any order, except for their
    gauges.
    """
    is_plain = _match(texts, _whole_pattern())
    names = _names(database, _NAMES, texts.filter(pa.array(is_plain)))
    is_plain[is_plain] = _are_sound(names, len(REPORT.fields), REPORT.required)
    return is_plain


def _match(texts: pa.StringArray, pattern: str) -> Bools:
    """Return a mask of the texts that match, which can be changed."""
    matches = pc.match_substring_regex(texts, pattern)
    mask: Bools = np.array(matches.to_numpy(zero_copy_only=False), bool)
    return mask


def _names(database: DuckDBPyConnection, query: str, texts: pa.StringArray) -> pa.DictionaryArray:
    """Return the names of an object in each text, joined by commas; null without an object."""
    database.register("texts", pa.table({"text": texts}))
    names = database.sql(query).to_arrow_table()["names"]
    return pc.binary_join(names.combine_chunks(), ",").dictionary_encode()


def _are_sound(names: pa.DictionaryArray, most: int, required: Iterable[str] = ()) -> Bools:
    """Return a mask of at most `most` names, each once, with those that are required."""
    lists = [*(text.split(",") for text in names.dictionary.to_pylist()), []]
    is_sound = [len({*one}) == len(one) <= most and {*required} <= {*one} for one in lists]
    mask: Bools = np.array(is_sound)[names.indices.fill_null(len(lists) - 1).to_numpy()]
    return mask


@lru_cache(maxsize=16)
def _ordered_pattern(order: Sequence[str]) -> str:
    """Return the pattern of reports with some of these fields in this order, none of them twice;
    the first one, and those that the contract requires, are in each.
    """
    first, *others = (_field_pattern(name, REPORT.fields[name]) for name in order)
    later = (
        f"(?:, ?{field}){'' if name in REPORT.required else '?'}"
        for name, field in zip(order[1:], others, strict=True)
    )
    return rf"^{_SPACE}\{{{first}{''.join(later)}\}}{_SPACE}$"


@cache
def _whole_pattern() -> str:
    """Return the pattern of reports with fields in any order; some may be missing or occur
    twice.
    """
    fields = "|".join(_field_pattern(name, kind) for name, kind in REPORT.fields.items())
    return rf"^{_SPACE}\{{{_list_pattern(f'(?:{fields})')}\}}{_SPACE}$"


def _pattern(kind: Grammar) -> str:
    """Return the pattern of values of a kind, with at most a space behind a colon or comma.

    The fields of an object are in the order of the contract. Names of numbers may occur twice, or
    be too many.
    """
    match kind:
        case Array(item):
            regex = rf"\[(?:{_list_pattern(_pattern(item))})?\]"
        case KeyOr(more):
            regex = f"(?:{_NAME}|{_pattern(more)})"
        case Object(fields, required):
            regex = _object_pattern(
                [_field_pattern(name, of) for name, of in fields.items()], bool(required)
            )
        case Whole(most):
            regex = rf"(?:0|[1-9][0-9]{{0,{len(str(most)) - 2}}})"
        case Flag():
            regex = "(?:true|false)"
        case Numbers(pattern):
            number = f'"{pattern.strip("^$")}": ?{_NUMBER}'
            regex = rf"\{{(?:{_list_pattern(number)})?\}}"
        case OneOf(words):
            regex = f'"(?:{"|".join(map(re.escape, words))})"'
        case _:
            regex = _NAME
    return regex


def _field_pattern(name: str, kind: Grammar) -> str:
    return f'"{name}": ?{_pattern(kind)}'


def _list_pattern(item: str) -> str:
    return f"{item}(?:, ?{item})*"


def _object_pattern(fields: Sequence[str], begins: bool) -> str:
    """Return the pattern of an object with some of the fields; the first is required if
    `begins`.
    """
    starts = [
        field + "".join(f"(?:, ?{later})?" for later in fields[place + 1 :])
        for place, field in enumerate(fields)
    ]
    return rf"\{{{starts[0]}\}}" if begins else rf"\{{(?:{'|'.join(starts)})?\}}"
