"""Numbers as text for users."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.comparison.estimates import Estimate

UNKNOWN = "–"
_MOST = 7
"""With this many decimals or more, a value is shown by its first six digits."""


def number(value: float | None, digits: int = 4) -> str:
    """A value by its first digits; whole numbers in full."""
    if value is None:
        return UNKNOWN
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def told(of: Estimate) -> str:
    """'22.4 ± 1.3', as many digits as the 95 % interval supports; '22.4' of one run.

    An interval that is not as wide to both sides is told by its ends.
    """
    if of.value is None:
        return UNKNOWN
    if of.low is None or of.high is None or of.low == of.high:
        return number(of.value)
    half = (of.high - of.low) / 2
    if abs(of.low + half - of.value) > half / 100:
        return f"{_rounded(of.value, half)} [{_rounded(of.low, half)}, {_rounded(of.high, half)}]"
    return f"{_rounded(of.value, half)} ± {_rounded(half, half)}"


def _rounded(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    decimals = 1 - floor(log10(half)) if half else _MOST
    if decimals >= _MOST:
        return number(value, 6)
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def size(count: int | None) -> str:
    """Bytes in the unit that suits them."""
    if count is None:
        return UNKNOWN
    amount, units = float(count), ["B", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}"


def duration(seconds: float | None) -> str:
    """'12 s', '3.5 min', '2.1 h'."""
    if seconds is None:
        return UNKNOWN
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
