"""Rows of data as a table for people, or as JSON, JSON lines, CSV or Markdown for programs.

Programs get every value in full. A table on a terminal is fitted to its width: long texts are
shortened, and columns that do not fit are named on stderr.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from vizpub.cli.completion import FORMATS
from vizpub.cli.options import Output
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import cell_text, json_safe, json_value, plain_text, printable
from vizpub.cli.terminal.streams import standard_output, terminal_width
from vizpub.experiments.formatting import markdown_table
from vizpub.machine.files import not_writable, replacing
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

_SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".md": "md"}
_SUFFIXES |= {".txt": "table", ".xml": "junit"}


@dataclass(frozen=True)
class OutputRows:
    """Data to print: column names and rows. The rows may be an iterator."""

    columns: tuple[str, ...]
    values: Iterable[Sequence[Any]]
    leaving: tuple[str, ...] = ()
    """Columns that a table without room for all leaves out first, in this order."""
    provisional: str = ""
    """A message that appends may still change the rows; empty if they cannot. In JSON each row has
    `provisional`, too.
    """

    @staticmethod
    def of_records(records: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> OutputRows:
        """Rows from dictionaries with the same keys; `columns` names them if there are no rows."""
        names = tuple(columns) or tuple(records[0] if records else ())
        return OutputRows(names, ([record[name] for name in names] for record in records))

    @staticmethod
    def of_arrow(columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> OutputRows:
        """Rows from Arrow batches, one batch in memory at a time."""
        rows = (
            row for batch in batches for row in zip(*map(_plain_values, batch.columns), strict=True)
        )
        return OutputRows(tuple(columns), rows)

    @staticmethod
    def of_table(table: pa.Table) -> OutputRows:
        """Rows from an Arrow table."""
        return OutputRows.of_arrow(table.column_names, table.to_batches(10_000))

    def first(self, count: int) -> OutputRows:
        """The first `count` rows; 0 = all."""
        return replace(self, values=islice(self.values, count or None))

    def with_provisional(self) -> OutputRows:
        """Add the column `provisional` if appends may still change the rows."""
        if not self.provisional:
            return self
        return replace(
            self,
            columns=(*self.columns, "provisional"),
            values=([*row, True] for row in self.values),
        )

    def upright(self, output: Output) -> OutputRows:
        """A single row as one line per column in tables; unchanged in formats for programs."""
        if output_format(output) not in ("table", "md"):
            return self
        (values,) = self.values
        facts = zip(self.columns, values, strict=True)
        return OutputRows(
            ("fact", "value"), [(name, _table_value(name, value)) for name, value in facts]
        )


def _table_value(name: str, value: Any) -> Any:
    """A fact as a table shows it."""
    if value is not None and name in ("pid", "java"):
        return str(value)  # the number of a process counts nothing, and is typed elsewhere
    if value is not None and name == "memory":
        return f"{value / 1e6:,.0f} MB"
    return value


def _plain_values(column: pa.Array[Any]) -> list[Any]:
    """The values, with decimals (SQL's sums of whole numbers) as plain numbers."""
    from pyarrow.types import is_decimal

    values: list[Any] = column.to_pylist()
    if not is_decimal(column.type):
        return values
    number = float if column.type.scale else int
    return [None if value is None else number(value) for value in values]


def show_rows(rows: OutputRows, output: Output, settings: Settings) -> None:
    """Write the rows to the chosen output in the chosen format.

    Raises: UseError for an unknown format or a file that cannot be written.
    """
    form = output_format(output)
    with open_output(output.file) as out:
        if form == "table":
            _write_table(rows, out, settings)
        else:
            _WRITERS[form](rows.with_provisional() if form in ("json", "jsonl") else rows, out)
    if output.file:
        settings.say(f"wrote {output.file}")
    if rows.provisional:
        settings.say(f"({rows.provisional})")


def output_format(output: Output, formats: Sequence[str] = FORMATS) -> str:
    """The format given by name or by the suffix of the file. Raises: UseError."""
    if output.format:
        if output.format not in formats:
            raise UnknownName("format", output.format, formats)
        return output.format
    if output.file is None or to_stdout(output.file) or _is_no_file(output.file):
        return "table"
    form = _SUFFIXES.get(output.file.suffix.lower(), "")
    if form not in formats:
        suffixes = ", ".join(suffix for suffix, of in _SUFFIXES.items() if of in formats)
        raise UseError(f"{output.file}: unknown suffix; give --format, or one of {suffixes}")
    return form


def to_stdout(path: Path | None) -> bool:
    """Return True if `-o` means standard output: it is missing or '-'."""
    return path is None or str(path) == "-"


def _is_no_file(path: Path) -> bool:
    """Return True for a pipe or a device: its suffix means nothing."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Open a file or stdout to write text. The file appears complete or not at all.

    Raises: UseError where the file cannot be written, VizpubError if stdout cannot.
    """
    if path is None or to_stdout(path):
        with standard_output() as out:
            yield out
        return
    with replaced_file(path) as place, place.open("w", encoding="utf-8", newline="") as out:
        yield out


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` if the block succeeds.

    Pipes and devices such as /dev/stdout are written directly.
    Raises: UseError if it cannot be written.
    """
    goal = Path(os.path.realpath(path))
    try:
        if _is_no_file(goal):
            yield goal
            return
        with replacing(goal) as part:
            yield part
    except BrokenPipeError:
        raise typer.Exit(0) from None  # the reader of the pipe has ended
    except OSError as error:
        raise not_writable(path, error) from error


def figure_format(file: Path) -> str:
    """The format of a figure, by the suffix of its file. Raises: UseError."""
    from vizpub.analytics.figures import FORMATS

    form = file.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise UseError(f"{file}: a figure is written as {', '.join('.' + f for f in FORMATS)}")
    return form


def write_figure(figure: Figure, file: Path, settings: Settings) -> None:
    """Write a figure in the format of the suffix. Raises: UseError."""
    from vizpub.analytics.figures import save

    with replaced_file(file) as place:
        save(figure, place, figure_format(file))
    settings.say(f"wrote {file}")


def _write_json(rows: OutputRows, out: TextIO) -> None:
    separator = "[\n"
    for values in rows.values:
        out.write(separator + _json_object(rows.columns, values))
        separator = ",\n"
    out.write("[]\n" if separator == "[\n" else "\n]\n")


def _write_json_lines(rows: OutputRows, out: TextIO) -> None:
    out.writelines(_json_object(rows.columns, values) + "\n" for values in rows.values)


def _json_object(columns: Sequence[str], values: Sequence[Any]) -> str:
    record = dict(zip(columns, map(json_value, values), strict=True))
    return json_safe(json.dumps(record, ensure_ascii=False, default=str, allow_nan=False))


def _write_csv(rows: OutputRows, out: TextIO) -> None:
    escape = printable if out.isatty() else str
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows([escape(plain_text(value)) for value in values] for values in rows.values)


def _write_markdown(rows: OutputRows, out: TextIO) -> None:
    cells = ([cell_text(value) for value in values] for values in rows.values)
    out.writelines(f"{line}\n" for line in markdown_table(rows.columns, cells))


_WRITERS: dict[str, Callable[[OutputRows, TextIO], None]] = {
    "json": _write_json,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    "md": _write_markdown,
}


def _write_table(rows: OutputRows, out: TextIO, settings: Settings) -> None:
    from vizpub.cli.terminal.layout import Grid

    values = [tuple(row) for row in rows.values]
    grid = Grid.of(rows.columns, values).fit(terminal_width(out), rows.leaving)
    bold = settings.color and out.isatty() and not os.environ.get("NO_COLOR")
    out.writelines(line + "\n" for line in grid.lines(bold=bold))
    if hidden := grid.hidden:
        more = f"{len(hidden)} more column{'s' if len(hidden) > 1 else ''}"
        some = ", ".join([*hidden[:3], *(["…"] if len(hidden) > 3 else [])])
        settings.say(f"(no room for {more}: {some}; --format csv shows all)")
    if not values:
        settings.say("(no rows)")
