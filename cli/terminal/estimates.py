"""Estimates as people read them: groups beside one another, with the digits that are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor, log10
from typing import Any

from cli.terminal.layout import Grid
from cli.terminal.output import Rows

_WIDE = 4
"""Up to this many groups are side by side, more are below one another."""
_ANY = 10**6
"""A width in which everything fits."""
_MOST = 7
"""With this many decimals or more, a value is shown by its first six digits."""

Record = dict[str, Any]


def for_people(
    records: Sequence[Record], over: tuple[str, ...] = (), width: int | None = None
) -> tuple[Rows, tuple[str, ...]]:
    """Rows of analytics.comparison.tables.compare: a row per metric, a column per group or
    contrast.

    With `over`, the name of a parameter, the records are those of `compare_settings`: a row
    per metric and setting. More groups than fit stand below one another. In `width` cells the
    last columns are left out, rather than a part of a number; their names are given too.
    """
    runs: Counter[str] = Counter()
    for record in records:
        runs[record["group"]] = max(runs[record["group"]], record["runs"])
    every = [{**record, "runs": runs[record["group"]]} for record in records]
    groups = len({of["group"] for of in every if of["estimate"] == "mean"})
    keys = ("metric", *over)
    rows = _side_by_side(every, keys)
    needed = len(keys) + groups
    if groups > _WIDE or _width(rows, needed) > (width or _ANY):
        rows, needed = _below_one_another(every, keys), len(keys) + 2
    count = len(rows.columns)
    while count > needed and _width(rows, count) > (width or _ANY):
        count -= 1
    return _first(rows, count), rows.columns[count:]


def _side_by_side(records: Sequence[Record], keys: tuple[str, ...]) -> Rows:
    heads = list(dict.fromkeys(map(_head, records)))
    cells: dict[tuple[str, ...], Record] = {}
    for of in records:
        row = cells.setdefault(_place(of), {"unit": of["unit"], "over": of["over"]})
        row[_head(of)] = told(of)
    names = (*heads, "unit", "over")
    values = [(*place, *(row.get(name) for name in names)) for place, row in cells.items()]
    return Rows((*keys, *names), values)


def _below_one_another(records: Sequence[Record], keys: tuple[str, ...]) -> Rows:
    about = ("runs", "unit", "over")
    rows = [(*_place(of), of["group"], told(of), *(of[name] for name in about)) for of in records]
    return Rows((*keys, "group", "estimate, 95 %", *about), rows)


def _first(rows: Rows, count: int) -> Rows:
    """The first columns."""
    return Rows(rows.columns[:count], [values[:count] for values in rows.values])


def _width(rows: Rows, count: int) -> int:
    """Cells that a line of the first columns takes."""
    first = _first(rows, count)
    return Grid.of(first.columns, list(first.values)).width


def _place(of: Record) -> tuple[str, ...]:
    return (of["metric"], *([of["setting"]] if "setting" in of else []))


def _head(of: Record) -> str:
    """'gossip (3 runs)', 'gossip / tree, paired'."""
    if of["estimate"] != "mean":
        paired = ", paired" if of["estimate"].startswith("paired") else ""
        return f"{of['group']}{paired}"
    return f"{of['group']} ({of['runs']} run{'s' if of['runs'] != 1 else ''})"


def told(record: Record) -> str | None:
    """An estimate for people: '22.4 ± 1.3', a ratio or difference '21.1 [19.8, 22.6]'.

    As many digits as its interval supports; how many runs it is of where some do not know it.
    """
    value, low, high = record["value"], record["low"], record["high"]
    if value is None:
        return None
    runs = f" (n = {record['n']})" if record["n"] < record["runs"] else ""
    mean = record["estimate"] == "mean"
    if low is None:
        return f"{_plain(value if mean else float(f'{value:.3g}'))}{runs}"
    half = (high - low) / 2
    if mean:
        return f"{_rounded(value, half)} ± {_rounded(half, half)}{runs}"
    bounds = f"[{_rounded(low, half)}, {_rounded(high, half)}]"
    return f"{_rounded(value, half)} {bounds}{runs}"


def _rounded(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    decimals = 1 - floor(log10(half)) if half else _MOST
    if decimals >= _MOST:
        return _plain(value)
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def _plain(value: float) -> str:
    """Six digits; a count of millions in full."""
    return f"{value:.6g}" if abs(value) < 10**6 else f"{value:.0f}"
