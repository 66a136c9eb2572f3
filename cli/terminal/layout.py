"""A text table that fits the width of a terminal.

Tables of rich take 17 times as long (2.2 s for 5,000 rows of six columns), cut off the ends of ids,
by which these differ, and leave out no columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size

from vizpub.cli.terminal.formatting import cell_text, printable
from vizpub.model.wording import NAME_HEAD

_GAP = 2
_LEAST = 12
"""No name is shortened below this, and no prose wrapped into less."""
_NAME = 25
"""A name of up to this many cells is for typing: it is shortened only where nothing else helps."""
_PROSE = 24
"""Prose is wrapped into less only where shorter names do not help."""
_MOST_LINES = 12
"""Lines of a wrapped cell; the rest of a longer one is cut off."""

_LEAST_NAME = 6
"""Cells of a name after a branch: two of the head, the ellipsis, three of the tail."""
_BRANCH = re.compile(r"^[│ ]*[├└]─ ")


def shorten(text: str, width: int) -> str:
    """At most `width` cells: the head, an ellipsis and the tail, as vizpub.model.wording has them.

    The branch of a tree before a name is kept if there is room for both.
    """
    if cell_len(text) <= width:
        return text
    match = _BRANCH.match(text)
    branch = match[0] if match and width - len(match[0]) >= _LEAST_NAME else ""
    name, room = text.removeprefix(branch), width - len(branch)
    head = min(NAME_HEAD, room // 3)
    tail = room - head - 1
    return f"{branch}{set_cell_size(name, head)}…{set_cell_size(name[::-1], tail)[::-1]}"


def wrap_prose(text: str, width: int) -> str:
    """Lines of at most `width` cells, broken between words; a longer word is shortened."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else shorten(word, width)
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(shorten(word, width))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = ["…"]
    return "\n".join(lines)


@dataclass(frozen=True)
class Grid:
    """Cells of text, the width of every column, and which columns are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A cell may have several lines."""
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

    def fit(self, width: int | None, leaving: Sequence[str] = ()) -> Grid:
        """Fit the grid into `width` cells.

        Puts names in the place of numbers that stand for them, shortens long names and wraps
        prose, then removes columns: those of `leaving` in their order, then from the right.
        """
        if width is None or self.width <= width:
            return self
        by_names = self._by_names()
        narrow = by_names._narrow_columns(width)
        shown = list(range(len(narrow.header)))
        places = [by_names.header.index(name) for name in leaving if name in by_names.header]
        order = [place for place in shown if place not in places] + places[::-1]
        while len(shown) > 1 and narrow._only(shown).width > width:
            shown.remove(order.pop())
        hidden = tuple(name for place, name in enumerate(by_names.header) if place not in shown)
        return replace(narrow._only(shown), hidden=hidden)

    @property
    def width(self) -> int:
        """Width of a line in cells."""
        return sum(self.widths) + _GAP * (len(self.widths) - 1)

    def _by_names(self) -> Grid:
        """Merge `peer` and `peer_name` into one column `peer`, of names."""
        numbered = {name for name in self.header if f"{name}_name" in self.header}
        places = [place for place, name in enumerate(self.header) if name not in numbered]
        titles = (self.header[place] for place in places)
        header = tuple(
            short if (short := title.removesuffix("_name")) in numbered else title
            for title in titles
        )
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        widths = (max(map(cell_len, cells)) for cells in zip(header, *rows, strict=True))
        return Grid(header, rows, tuple(widths), tuple(self.numeric[place] for place in places))

    def _narrow_columns(self, width: int) -> Grid:
        """Shorten names in their middle first, then wrap prose."""
        widths = list(self.widths)
        prose = [self._is_prose(column) for column in range(len(widths))]
        columns = list(zip(self.header, self.widths, self.numeric, prose, strict=True))
        for of_name, of_prose in ((_NAME, _PROSE), (_NAME, _LEAST + 4), (_LEAST, _LEAST)):
            least = [
                wide if number or (not is_prose and wide <= of_name)
                else max(of_prose if is_prose else _LEAST, min(cell_len(title), _NAME))
                for title, wide, number, is_prose in columns
            ]  # fmt: skip
            while sum(widths) > width - _GAP * (len(widths) - 1):
                spare = [wide - floor for wide, floor in zip(widths, least, strict=True)]
                if max(spare) <= 0:
                    break
                widths[spare.index(max(spare))] -= 1
        cut = [wrap_prose if is_prose else shorten for is_prose in prose]
        rows = tuple(
            tuple(fit(cell, wide) for fit, cell, wide in zip(cut, row, widths, strict=True))
            for row in self.rows
        )
        return replace(
            self, header=tuple(map(shorten, self.header, widths)), rows=rows, widths=tuple(widths)
        )

    def _is_prose(self, column: int) -> bool:
        """Return True if cells have several words, and are not branches of a tree."""
        cells = [row[column] for row in self.rows]
        return any(" " in cell for cell in cells) and not any(map(_BRANCH.match, cells))

    def _only(self, places: Sequence[int]) -> Grid:
        def of(cells: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(cells[place] for place in places)

        return Grid(of(self.header), tuple(map(of, self.rows)), of(self.widths), of(self.numeric))

    def lines(self, *, bold: bool = False) -> Iterator[str]:
        """The header, a rule and the rows."""
        if not self.header:
            return
        header = self._join_cells(self.header)
        yield typer.style(header, bold=True) if bold else header
        yield (" " * _GAP).join("─" * width for width in self.widths)
        for row in self.rows:
            cells = (cell.split("\n") for cell in row)
            yield from map(self._join_cells, zip_longest(*cells, fillvalue=""))

    def _join_cells(self, cells: Sequence[str]) -> str:
        return (" " * _GAP).join(map(_pad, cells, self.widths, self.numeric)).rstrip()


def _all_numbers(values: Sequence[Sequence[Any]], column: int) -> bool:
    known_values = [row[column] for row in values if row[column] is not None]
    return bool(known_values) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in known_values
    )


def _pad(cell: str, width: int, numeric: bool) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if numeric else cell + space
