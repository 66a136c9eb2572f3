"""Rows of a run for pandas, Arrow readers and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vizpub.model.clock import OPEN
from vizpub.model.errors import UnknownName
from vizpub.model.wording import amount

if TYPE_CHECKING:
    import pandas as pd

IDENTIFYING = frozenset(
    (
        *("message", "interval", "peer", "topic", "publisher", "group", "to_group", "kind"),
        *("of", "layer", "size_at_most", "length", "longer_than"),
    )
)
"""Columns that say what a row is of; that of a name ends in `_name`."""
ABOUT = IDENTIFYING | {"peers", "intervals"}
"""These, and those that say of how many a row is."""
_SHOWN_ROWS = 10
_SHOWN_COLUMNS = 20
_SHOWN_CHARACTERS = 60
"""Most characters of each text: names in foreign sources may be very long."""


def choose_columns(rows: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    """The columns ABOUT a row, and those chosen, also by the name of what they are the mean of.

    Raises: UnknownName.
    """
    if columns is None:
        return rows
    for column in columns:
        if not {column, f"{column}_mean"} & {*rows.column_names}:
            raise UnknownName("column", column, rows.column_names)
    kept = {*columns, *(f"{column}_mean" for column in columns)}
    return rows.select(
        [n for n in rows.column_names if n in kept or n.removesuffix("_name") in ABOUT]
    )


@dataclass(frozen=True, repr=False, eq=False)
class Frame:
    """A titled Arrow table. Libraries that read Arrow (polars, DuckDB, pyarrow) accept it directly.

    `frame["degree"]` is a column.
    """

    title: str
    rows: pa.Table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.rows.column_names
        return names

    def to_arrow(self) -> pa.Table:
        """The rows as they are."""
        return self.rows

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame; nullable columns keep their integer types."""
        import pandas as pd

        nullable = {
            pa.bool_(): pd.BooleanDtype(),
            pa.int8(): pd.Int8Dtype(),
            pa.int16(): pd.Int16Dtype(),
            pa.int32(): pd.Int32Dtype(),
            pa.int64(): pd.Int64Dtype(),
        }
        return self.rows.to_pandas(types_mapper=nullable.get)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        records: list[dict[str, Any]] = self.rows.to_pylist()
        return records

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.rows[column]

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __repr__(self) -> str:
        return f"<{self.title}: {amount(len(self), 'row')} of {', '.join(self.columns)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    def _repr_html_(self) -> str:
        """Show the first rows and columns, and the numbers of all."""
        shown = self.rows.slice(0, _SHOWN_ROWS).select(self.columns[:_SHOWN_COLUMNS])
        values = zip(*(column.to_pylist() for column in shown.columns), strict=True)
        caption = (
            f"{self.title}: {amount(len(self), 'row')} of {amount(len(self.columns), 'column')}"
        )
        if len(self) > _SHOWN_ROWS:
            caption += f", the first {_SHOWN_ROWS} rows"
        if len(self.columns) > _SHOWN_COLUMNS:
            caption += f", the first {_SHOWN_COLUMNS} columns"
        return html_table(caption, shown.column_names, list(values))


def html_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    longest: int = _SHOWN_CHARACTERS,
) -> str:
    """Return an HTML table with all texts escaped, and cut after `longest` characters."""

    def table_row(tag: str, values: Sequence[Any]) -> str:
        cells = (f"<{tag}>{escape(_short(_text(v), longest))}</{tag}>" for v in values)
        return f"<tr>{''.join(cells)}</tr>"

    head = f"<thead>{table_row('th', columns)}</thead>"
    lines = (table_row("td", row) for row in rows)
    body = f"<tbody>{''.join(lines)}</tbody>"
    return f"<table><caption>{escape(_short(caption, 200))}</caption>{head}{body}</table>"


def _text(value: object) -> str:
    """Format a value for people: a dash if it is unknown, `open` for an open end."""
    if value is None:
        return "–"
    if value == OPEN:
        return "open"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
