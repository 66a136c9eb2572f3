"""Plainly spelled reports, found among many lines at once by one regular expression.

Nearly all lines that programs write are plain: they have no escapes, nulls or unknown fields. The
expression is made from the grammar, and matches nothing that the contract refuses. All other lines
go to the decoders of vizpub.ingest.sources.reports.decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.steps import open_database
from vizpub.model.arrays import Bools, Integers
from vizpub.reports.fields import REPORT, Array, Flag, KeyOr, Numbers, Object, OneOf, Whole
from vizpub.reports.fields import Kind as Grammar

FEW = 256
"""Fewer lines than these are read faster one by one."""

_NAME = r'"[^"\\\x00-\x1f\x7f-\x{9f}]+"'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?(?:[eE][-+]?[0-9]{1,2})?"
"""A number that a double holds."""
_SPACE = r"[ \t\r]*"
_MOST_GAUGES = next(of.most for of in REPORT.fields.values() if isinstance(of, Numbers))
_FACTS = """
    SELECT
        unnest(json_transform(
            text, '{"run": "VARCHAR", "peer": "VARCHAR", "interval": "BIGINT", "seq": "BIGINT"}'
        )),
        json_keys(text) AS names
    FROM texts
"""
_GAUGES = "SELECT json_keys(text, '$.gauges') AS names FROM texts"


def find_plain_reports(texts: pa.StringArray) -> tuple[Bools, pa.Table]:
    """Return a mask of the texts that are plainly spelled reports, and a table of the `run`,
    `peer`, `interval` and `seq` of these.
    """
    if len(texts) < FEW:
        return np.zeros(len(texts), bool), pa.table({})
    is_plain = pc.match_substring_regex(texts, _whole_pattern())
    with open_database() as database:
        database.register("texts", pa.table({"text": texts.filter(is_plain)}))
        facts = database.sql(_FACTS).to_arrow_table()
        names, places = _distinct_lists(facts)
        is_sound = np.array([_are_sound(of, len(REPORT.fields), REPORT.required) for of in names])
        is_sound = is_sound[places]
        if any("gauges" in of for of in names):
            gauges, places = _distinct_lists(database.sql(_GAUGES).to_arrow_table())
            is_sound &= np.array([_are_sound(of, _MOST_GAUGES) for of in gauges])[places]
    accepted = np.array(is_plain.to_numpy(zero_copy_only=False))
    accepted[accepted] = is_sound
    return accepted, facts.filter(pa.array(is_sound))


def _distinct_lists(rows: pa.Table) -> tuple[list[list[str]], Integers]:
    """Return the different lists of `names`, and which one each row has; null counts as empty."""
    joined = pc.binary_join(rows["names"].combine_chunks(), ",").dictionary_encode()
    lists = [text.split(",") for text in joined.dictionary.to_pylist()]
    places: Integers = joined.indices.fill_null(len(lists)).to_numpy()
    return [*lists, []], places


def _are_sound(names: Sequence[str], most: int, required: Iterable[str] = ()) -> bool:
    """Return True for at most `most` names, each once, with those that are required."""
    return len({*names}) == len(names) <= most and {*required} <= {*names}


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
