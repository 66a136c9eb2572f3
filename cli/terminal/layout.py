"""A text table that fits the width of a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TextIO

import typer
from rich.cells import cell_len, set_cell_size

from cli.terminal.formatting import cell_text, printable

_GAP = 2
_LEAST = 12
"""A text column is not shortened below this."""
_HEAD = 4
"""Cells kept before the ellipsis: ids often begin alike and differ at the end."""

_LEAST_NAME = 6
"""Cells of a name after a branch: two of the head, the ellipsis, three of the tail."""
_BRANCH = re.compile(r"^[│ ]*[├└]─ ")


def terminal_width(out: TextIO) -> int | None:
    """Columns of the terminal of `out` (COLUMNS takes precedence); null if there is none."""
    if given := os.environ.get("COLUMNS", ""):
        return int(given) if given.isdigit() and int(given) else None
    # A terminal of unknown size reports 0.
    return os.get_terminal_size(out.fileno()).columns or None if out.isatty() else None


def shortened(text: str, width: int) -> str:
    """At most `width` cells: the head, an ellipsis and the tail.

    The branch of a tree before a name is kept if there is room for both.
    """
    if cell_len(text) <= width:
        return text
    found = _BRANCH.match(text)
    branch = found[0] if found and width - len(found[0]) >= _LEAST_NAME else ""
    name, room = text.removeprefix(branch), width - len(branch)
    head = min(_HEAD, room // 3)
    tail = room - head - 1
    return f"{branch}{set_cell_size(name, head)}…{set_cell_size(name[::-1], tail)[::-1]}"


@dataclass(frozen=True)
class Grid:
    """Cells of text, the width of every column, and which columns are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    numeric: tuple[bool, ...]
    hidden: tuple[str, ...] = ()
    """Titles of columns for which there was no room."""

    @staticmethod
    def of(columns: Sequence[str], values: Sequence[Sequence[Any]]) -> Grid:
        """The values as text, every column as wide as its widest cell."""
        header = tuple(map(printable, columns))
        rows = tuple(tuple(map(cell_text, row)) for row in values)
        by_column = list(zip(header, *rows, strict=True))
        return Grid(
            header,
            rows,
            tuple(max(map(cell_len, cells)) for cells in by_column),
            tuple(_all_numbers(values, i) for i in range(len(header))),
        )

    def fitted(self, width: int | None) -> Grid:
        """At most `width` cells wide: puts names in the place of numbers that stand for them,
        shortens long texts, then removes the last columns.
        """
        if width is None or self.width <= width:
            return self
        named = self._by_names()
        narrow = named._narrowed(width)
        count = len(narrow.header)
        while count > 1 and narrow._first(count).width > width:
            count -= 1
        return replace(narrow._first(count), hidden=named.header[count:])

    @property
    def width(self) -> int:
        """Width of a line in cells."""
        return sum(self.widths) + _GAP * (len(self.widths) - 1)

    def _by_names(self) -> Grid:
        """`peer` and `peer_name` become one column `peer`, of names."""
        named = {name for name in self.header if f"{name}_name" in self.header}
        kept = [place for place, name in enumerate(self.header) if name not in named]
        titles = (self.header[place] for place in kept)
        header = tuple(
            short if (short := title.removesuffix("_name")) in named else title for title in titles
        )
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        widths = (max(map(cell_len, cells)) for cells in zip(header, *rows, strict=True))
        return Grid(header, rows, tuple(widths), tuple(self.numeric[place] for place in kept))

    def _narrowed(self, width: int) -> Grid:
        widths = list(self.widths)
        excess = self.width - width
        while excess > 0:
            text = [w if not n else 0 for w, n in zip(widths, self.numeric, strict=True)]
            widest = text.index(max(text))
            if text[widest] <= _LEAST:
                break
            widths[widest] -= 1
            excess -= 1
        rows = tuple(tuple(map(shortened, row, widths)) for row in self.rows)
        return replace(
            self, header=tuple(map(shortened, self.header, widths)), rows=rows, widths=tuple(widths)
        )

    def _first(self, count: int) -> Grid:
        return Grid(
            self.header[:count],
            tuple(row[:count] for row in self.rows),
            self.widths[:count],
            self.numeric[:count],
        )

    def lines(self, *, bold: bool = False) -> Iterator[str]:
        """The header, a rule and the rows."""
        if not self.header:
            return
        header = self._line(self.header)
        yield typer.style(header, bold=True) if bold else header
        yield (" " * _GAP).join("─" * width for width in self.widths)
        yield from map(self._line, self.rows)

    def _line(self, cells: Sequence[str]) -> str:
        return (" " * _GAP).join(map(_padded, cells, self.widths, self.numeric)).rstrip()


def _all_numbers(values: Sequence[Sequence[Any]], column: int) -> bool:
    found = [row[column] for row in values if row[column] is not None]
    return bool(found) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in found
    )


def _padded(cell: str, width: int, numeric: bool) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if numeric else cell + space
