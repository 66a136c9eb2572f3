"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isinf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.analytics.comparison.estimates import Estimate

UNKNOWN = "–"


def number_text(value: float | None, digits: int = 4) -> str:
    """A value by its first digits; whole numbers in full."""
    if value is None:
        return UNKNOWN
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def estimate_text(estimate: Estimate) -> str:
    """'22.4 ± 1.3', as many digits as the 95 % interval supports; '22.4' of one run.

    An interval that is wider on one side is shown by its ends, and none if it has no ends.
    """
    if estimate.value is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return number_text(estimate.value)
    if isinf(estimate.high):
        return number_text(estimate.value)
    half = (estimate.high - estimate.low) / 2
    if abs(estimate.low + half - estimate.value) > half / 100:
        low, high = _round_text(estimate.low, half), _round_text(estimate.high, half)
        return f"{_round_text(estimate.value, half)} [{low}, {high}]"
    return f"{_round_text(estimate.value, half)} ± {_round_text(half, half)}"


def _round_text(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    from vizpub.analytics.comparison.estimates import decimals

    places = decimals(half)
    if places is None:
        return number_text(value, 6)
    return f"{round(value, places):,.{max(places, 0)}f}"


def size_text(count: int | None) -> str:
    """Bytes in the unit that suits them."""
    if count is None:
        return UNKNOWN
    amount, units = float(count), ["B", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}"


def duration_text(seconds: float | None) -> str:
    """'12 s', '3.5 min', '2.1 h'."""
    if seconds is None:
        return UNKNOWN
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield _markdown_row(heads)
    yield _markdown_row(["---"] * len(heads))
    yield from map(_markdown_row, rows)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
