"""Reports as columns: the grammar of a report, checked on Arrow arrays instead of JSON values.

Columns are checked as a whole. Only suspicious rows are checked one by one with the grammar
itself, so the reason of a refusal is the same in every format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.reports.fields import (
    INT32,
    REPORT,
    Array,
    Flag,
    Key,
    KeyOr,
    Kind,
    Numbers,
    Object,
    OneOf,
    Whole,
)
from vizpub.reports.records import Report

_Mask = npt.NDArray[np.bool_]

_CONTROL = r"[\x00-\x1f\x7f-\x{9f}]"


class UnfitType(Exception):
    """A column's type that does not fit the grammar, whatever its values are."""


def accepted_types(kind: Kind) -> str:
    """Return the accepted types of a column of that kind, as text."""
    match kind:
        case Array(item):
            return f"list<{accepted_types(item)}>"
        case Object(fields):
            return f"struct<{', '.join(f'{n}: {accepted_types(k)}' for n, k in fields.items())}>"
        case KeyOr(more):
            return f"{accepted_types(Key())} or {accepted_types(more)}"
        case _:
            return _ACCEPTED.get(type(kind), "string or integer")


_ACCEPTED: Mapping[type[Kind], str] = {
    Numbers: "map<string, number> or struct of numbers",
    Whole: "integer",
    Flag: "bool",
}


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the Arrow type of a column of that kind; the simpler one if there are two."""
    match kind:
        case Array(item):
            return pa.list_(arrow_type(item))
        case Object(fields):
            return pa.struct([(name, arrow_type(inner)) for name, inner in fields.items()])
        case Numbers():
            return pa.map_(pa.string(), pa.float64())
        case Whole(most):
            return pa.int32() if most <= INT32 else pa.int64()
        case Flag():
            return pa.bool_()
        case _:
            return pa.string()


def cast_to_grammar(values: pa.Array, kind: Kind) -> pa.Array:
    """Cast values to the types of the grammar, with 64-bit integers; missing fields are null.

    Raises: UnfitType; ArrowInvalid for text that is not UTF-8.
    """
    actual = values.type
    if pa.types.is_dictionary(actual):
        return cast_to_grammar(values.dictionary_decode(), kind)
    if pa.types.is_null(actual):
        return pa.nulls(len(values), arrow_type(kind))
    match kind:
        case KeyOr(more):
            shape = cast_to_grammar(values, more if pa.types.is_struct(actual) else Key())
        case Array(item) if _is_list(actual):
            lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            shape = pa.ListArray.from_arrays(
                pa.array(offsets), cast_to_grammar(values.flatten(), item), mask=values.is_null()
            )
        case Object(fields) if pa.types.is_struct(actual):
            shape = _cast_fields(values, fields)
        case Numbers() if pa.types.is_map(actual) or pa.types.is_struct(actual):
            shape = _cast_numbers(values)
        case Whole() if pa.types.is_integer(actual):
            shape = values.cast(pa.int64(), safe=False)
        case Flag() if pa.types.is_boolean(actual):
            shape = values
        case Key() | OneOf() if pa.types.is_integer(actual) or _is_text(actual):
            # Only a cast from bytes checks that the text is UTF-8.
            plain = values.cast(pa.binary()) if _is_text(actual) else values
            shape = plain.cast(pa.string())
        case _:
            raise UnfitType(str(actual))
    return shape


def _is_list(actual: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(actual) for is_kind in kinds)


def _is_text(actual: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(actual) for is_kind in kinds)


def _cast_fields(structs: pa.Array, fields: Mapping[str, Kind]) -> pa.Array:
    parts = dict(zip((f.name for f in structs.type), structs.flatten(), strict=True))
    if len(parts) < structs.type.num_fields:  # two of one name
        raise UnfitType(str(structs.type))
    absent = pa.nulls(len(structs))
    children = [cast_to_grammar(parts.get(name, absent), kind) for name, kind in fields.items()]
    return pa.StructArray.from_arrays(children, list(fields), mask=structs.is_null())


def _cast_numbers(values: pa.Array) -> pa.Array:
    """Cast to a map of names to numbers; the fields of a struct are names."""
    kind, actual = pa.map_(pa.string(), pa.float64()), values.type
    inner = [actual.item_type] if pa.types.is_map(actual) else [field.type for field in actual]
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    if not all(any(is_kind(one) for is_kind in kinds) for one in inner):
        raise UnfitType(str(actual))
    if pa.types.is_map(actual):
        return values.cast(kind, safe=False)  # as JSON, whose numbers are doubles, too
    fields = [pc.struct_field(values, i).cast(pa.float64(), safe=False) for i in range(len(inner))]
    numbers = pa.StructArray.from_arrays(fields, values.type.names, mask=values.is_null())
    return pa.array([row and list(row.items()) for row in numbers.to_pylist()], kind)


def _doubtful(values: pa.Array, kind: Kind) -> _Mask:
    """Return a mask of the cast values that the grammar may refuse, never too few; null is
    absent.
    """
    match kind:
        case KeyOr(more):
            doubtful = _doubtful(values, more if pa.types.is_struct(values.type) else Key())
        case Array(item):
            flat = values.flatten()
            wrong = _doubtful(flat, item) | _mask(flat.is_null())
            doubtful = np.zeros(len(values), bool)
            doubtful[pc.list_parent_indices(values).to_numpy()[wrong]] = True
        case Object(fields, required):
            doubtful = _any_field_doubtful(values, fields, required)
        case Whole(most, least):
            doubtful = _mask(pc.or_(pc.less(values, least), pc.greater(values, most)))
        case OneOf(words):
            doubtful = _mask(
                pc.and_(values.is_valid(), pc.invert(pc.is_in(values, pa.array(words))))
            )
        case Numbers():
            # Gauges are rare in columns, so each is judged by the grammar.
            doubtful = _mask(values.is_valid())
        case Key():
            doubtful = _unfit_names(values)
        case _:
            doubtful = np.zeros(len(values), bool)
    return doubtful


def _any_field_doubtful(
    structs: pa.Array, fields: Mapping[str, Kind], required: tuple[str, ...]
) -> _Mask:
    parts = dict(zip(fields, structs.flatten(), strict=True))
    doubtful = np.zeros(len(structs), bool)
    for name, kind in fields.items():
        doubtful |= _doubtful(parts[name], kind)
    for name in required:
        doubtful |= _mask(pc.and_(parts[name].is_null(), structs.is_valid()))
    return doubtful


def _unfit_names(names: pa.Array) -> _Mask:
    """Return a mask of invalid names; each distinct name is checked once, as names repeat."""
    encoded = names.dictionary_encode()
    empty = pc.equal(pc.binary_length(encoded.dictionary), 0)
    unfit = pc.or_(empty, pc.match_substring_regex(encoded.dictionary, _CONTROL))
    if not pc.any(unfit).as_py():
        return np.zeros(len(names), bool)
    return _mask(unfit.take(encoded.indices))


def _mask(values: pa.Array) -> _Mask:
    """Convert a mask to numpy; null is false."""
    mask: _Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return mask


def reports_of(batch: pa.RecordBatch) -> tuple[pa.StructArray, dict[int, list[str]]]:
    """Return the rows as structs of REPORT, and the problems of refused rows, by row.

    A batch without a column `format` holds reports. Raises: UnfitType, ArrowInvalid.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns.setdefault("format", pa.repeat(Report.format, len(batch)))
    rows = cast_to_grammar(
        pa.StructArray.from_arrays(list(columns.values()), list(columns)), REPORT
    )
    suspected = np.flatnonzero(_doubtful(rows, REPORT))
    judged = zip(suspected.tolist(), values_of(rows.take(pa.array(suspected))), strict=True)
    wrong = {row: list(dict.fromkeys(REPORT.problems(value, ""))) for row, value in judged}
    return rows, {row: problems for row, problems in wrong.items() if problems}


def values_of(rows: pa.StructArray) -> Iterator[dict[str, Any]]:
    """Yield rows of REPORT as JSON values; a null is an absent field."""
    for value in rows.to_pylist():
        if value["gauges"] is not None:
            numbers = dict(value["gauges"])
            value["gauges"] = {name: n for name, n in numbers.items() if n is not None}
        yield value


def unfit_columns(schema: pa.Schema) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and accepted types of the columns whose type does not fit."""
    for field in schema:
        if kind := REPORT.fields.get(field.name):
            try:
                cast_to_grammar(pa.nulls(0, field.type), kind)
            except UnfitType:
                yield field.name, str(field.type), accepted_types(kind)


def unknown_columns(schema: pa.Schema) -> list[str]:
    """Return the names that the contract does not know, such as 'sent[].colour'."""
    outline = {field.name: _example_value(field.type) for field in schema}
    return list(dict.fromkeys(REPORT.unknown_paths(outline, "")))


def _example_value(actual: pa.DataType) -> Any:
    """Return a JSON value that has all fields of a type."""
    if pa.types.is_struct(actual):
        return {field.name: _example_value(field.type) for field in actual}
    return [_example_value(actual.value_type)] if _is_list(actual) else None
