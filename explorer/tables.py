"""Any table of a run, by the SQL that `vizpub sql` answers: a part of its rows, or all as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pyarrow as pa

from vizpub.explorer.commands import shell_command, sql_text
from vizpub.explorer.messages import MessageOrder
from vizpub.model.clock import OPEN
from vizpub.model.columns import Table
from vizpub.model.errors import UnknownName
from vizpub.model.tables import TABLES
from vizpub.questions import sql
from vizpub.questions.names import NAMED, NamedRun

PART = 100
"""Rows that a page shows at once."""
_REFERENCES = {"peer": "peers", "topic": "topics", "message": "publications"}
"""Filters by an index, and the tables that these number."""
_MEANINGS = {"delay_us": ("from the publication to the arrival, null = unknown", "µs")}
"""Meaning and unit of columns that are computed (sql.COMPUTED)."""
_LIMITS = sql.QueryLimits(timeout_s=60.0)
_LIMITS_OF_CSV = sql.QueryLimits()


@dataclass(frozen=True)
class RowFilter:
    """The rows to show; null = of any."""

    peer: int | None = None
    """In whatever role: a link's source or destination, a publisher, a receiver."""
    other_end: int | None = None
    """With a peer: the one at the other end of its links and copies."""
    topic: int | None = None
    message: int | None = None
    interval: int | None = None
    """Rows of it, or those that hold at its end."""
    text: str = ""
    """A part of a name or another text."""


def describe_tables(run: NamedRun) -> list[dict[str, Any]]:
    """`name`, `row` (what a row is), `rows`, `filters` and `columns` of each table of the run."""
    return [
        _describe(run, run.stored.definition(of.name)) for of in TABLES if run.stored.has(of.name)
    ]


def _describe(run: NamedRun, definition: Table) -> dict[str, Any]:
    names = _name_columns(run, definition)
    filters = [of for of in _REFERENCES if _referring(definition, of)]
    if len(_referring(definition, "peer")) > 1:
        filters.append("other_end")
    if "interval" in definition.names or "valid_from" in definition.names:
        filters.append("interval")
    return {
        "name": definition.name,
        "row": definition.row,
        "rows": run.stored.rows(definition.name),
        "filters": filters,
        "key": list(definition.key),
        "columns": [
            {"name": column.name, "meaning": column.meaning, "unit": column.unit,
             "of": _kind_of(definition, column.name), "text": column.type == "string",
             "named": f"{column.name}_name" in names}
            for column in definition
        ] + [
            {"name": name, "meaning": _MEANINGS[name][0], "unit": _MEANINGS[name][1],
             "of": "", "text": False, "named": False}
            for name in computed_columns(definition)
        ],
    }  # fmt: skip


def computed_columns(definition: Table) -> list[str]:
    """The columns that a table has beside its stored ones and names."""
    return list(sql.COMPUTED.get(definition.name, {}))


def _kind_of(definition: Table, column: str) -> str:
    """The filter that takes the values of a column; empty = they are no indexes."""
    return next((of for of in _REFERENCES if column in _referring(definition, of)), "")


def _referring(definition: Table, kind: str) -> list[str]:
    return [name for name in definition.names if NAMED.get(name) == _REFERENCES[kind]]


def read_part(run: NamedRun, table: str, chosen: RowFilter, order: MessageOrder) -> dict[str, Any]:
    """At most PART `rows` in an order, their `columns`, the `total`, and the `command` for them.

    Raises: UnknownName for a table or column, UseError.
    """
    definition = _definition(run, table)
    where = _condition(run, definition, chosen)
    statement = _statement(run, definition, where, order)
    limited = f"{statement} LIMIT {PART} OFFSET {order.first}"
    # One statement: to open the tables takes longer than most answers.
    counted = f"(SELECT count(*) AS total FROM {sql.sql_name(table)}{where})"
    sorting = _order_columns(definition, order)
    both = f"FROM {counted} LEFT JOIN ({limited}) ON true ORDER BY {sorting}"
    with sql.answer(run.stored, both, limits=_LIMITS) as reader:
        rows = reader.read_all()
    total = rows.column(0)[0].as_py()
    rows = rows.remove_column(0).slice(0, max(total - order.first, 0))
    values = zip(*(map(_json_value, column.to_pylist()) for column in rows.columns), strict=True)
    return {
        "total": total,
        "first": order.first,
        "columns": rows.column_names,
        "rows": list(values),
        "command": shell_command(["vizpub", "sql", run.facts.name, limited]),
    }


def write_csv(run: NamedRun, table: str, chosen: RowFilter, order: MessageOrder) -> Iterator[bytes]:
    """All rows in an order, as CSV with a head; null is an empty field.

    Raises: UnknownName for a table or column, UseError.
    """
    definition = _definition(run, table)
    statement = _statement(run, definition, _condition(run, definition, chosen), order)
    with sql.answer(run.stored, statement, limits=_LIMITS_OF_CSV) as reader:
        yield _csv_lines([reader.schema.names])
        for batch in reader:
            yield _csv_lines(_records(batch))


def _records(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv_lines(rows: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _definition(run: NamedRun, table: str) -> Table:
    names = [of.name for of in TABLES if run.stored.has(of.name)]
    if table not in names:
        raise UnknownName("table", table, names)
    return run.stored.definition(table)


def _name_columns(run: NamedRun, definition: Table) -> list[str]:
    """The columns of names that `vizpub sql` puts beside indexes."""
    return [
        f"{column}_name"
        for column in definition.names
        if (names := NAMED.get(column)) and names != definition.name and run.stored.has(names)
    ]


def _statement(run: NamedRun, definition: Table, where: str, order: MessageOrder) -> str:
    """The query of the rows. Raises: UnknownName for a column to sort by."""
    columns = [*definition.names, *_name_columns(run, definition), *computed_columns(definition)]
    if order.by and order.by not in columns:
        raise UnknownName(f"column of {definition.name}", order.by, columns)
    sorting = _order_columns(definition, order)
    return f"FROM {sql.sql_name(definition.name)}{where} ORDER BY {sorting}"


def _order_columns(definition: Table, order: MessageOrder) -> str:
    down = " DESC" if order.down else ""
    first = [f'"{order.by}"{down} NULLS LAST'] if order.by else []
    return ", ".join([*first, *(f'"{name}"' for name in definition.key if name != order.by)])


def _condition(run: NamedRun, definition: Table, chosen: RowFilter) -> str:
    """The WHERE of a filter, for the parts of it that the table has columns for."""
    conditions = [of for kind in _REFERENCES if (of := _index_condition(definition, kind, chosen))]
    if chosen.interval is not None and "interval" in definition.names:
        conditions.append(f'"interval" = {chosen.interval}')
    elif chosen.interval is not None and "valid_from" in definition.names:
        tick = run.clock.sampling_tick(chosen.interval)
        conditions.append(f"valid_from <= {tick} AND valid_to > {tick}")
    if chosen.text:
        texts = [column.name for column in definition if column.type == "string"]
        texts += _name_columns(run, definition)
        part = sql_text(chosen.text.lower())
        conditions.append(
            " OR ".join(f'contains(lower("{name}"), {part})' for name in texts) or "false"
        )
    return " WHERE " + " AND ".join(f"({text})" for text in conditions) if conditions else ""


def _index_condition(definition: Table, kind: str, chosen: RowFilter) -> str:
    """The condition of a filter by an index; empty = the table has no column for it."""
    index, columns = getattr(chosen, kind), _referring(definition, kind)
    if index is None:
        return ""
    if kind == "peer" and chosen.other_end is not None and len(columns) > 1:
        pairs = permutations(columns, 2)
        return " OR ".join(f'("{x}" = {index} AND "{y}" = {chosen.other_end})' for x, y in pairs)
    return " OR ".join(f'"{name}" = {index}' for name in columns)


def _json_value(value: Any) -> Any:
    """A value as JSON has it: null for NaN, and 'open' for an open end."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return "open" if value == OPEN and not isinstance(value, bool) else value
