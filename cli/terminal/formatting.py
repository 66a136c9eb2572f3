"""Values as text: in full for programs, on one line for people.

Text from a run may contain control characters; `printable` escapes them, so that they cannot
move the cursor or reverse the line.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

from vizpub.model.clock import OPEN


def json_value(value: Any) -> Any:
    """The value for JSON; null for NaN and infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value


def plain_text(value: Any) -> str:
    """A value in full: empty for null, JSON for booleans and nested values."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, list, tuple, dict)):
        return json.dumps(json_value(value), ensure_ascii=False, default=str)
    return str(value)


def cell_text(value: Any) -> str:
    """A value for people: '-' for unknown, six digits, thousands apart, 'open' for an open end."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if 10**6 <= abs(value) < 10**15 else f"{value:,.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell_text, value))
    if isinstance(value, dict):
        value = json.dumps(json_value(value), ensure_ascii=False, default=str)
    if isinstance(value, int):
        return "open" if value == OPEN else f"{value:,}"
    return printable(str(value))


_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLAIN = re.compile(r"[\x20-\x7e]*")


def printable(text: str) -> str:
    """The text on one line, with control, format and surrogate characters as escapes."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _UNSAFE else c
        for c in text
    )


def printable_lines(text: str) -> str:
    """The text with escapes as in `printable`, keeping its line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def json_safe(text: str) -> str:
    r"""The same JSON, with control and format characters as \u escapes."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        json.dumps(c)[1:-1] if unicodedata.category(c) in _UNSAFE and c >= "\x7f" else c
        for c in text
    )


def estimate_text(record: dict[str, Any]) -> str | None:
    """An estimate for people: '22.4 ± 1.3', a ratio or difference '21.1 [19.8, 22.6]'.

    Shows as many digits as the interval supports, and n if some runs lack the metric.
    """
    value, low, high = record["value"], record["low"], record["high"]
    if value is None:
        return None
    runs = f" (n = {record['n']})" if record["n"] < record["runs"] else ""
    mean = record["estimate"] == "mean"
    if low is None:
        return f"{_number_text(value if mean else float(f'{value:.3g}'))}{runs}"
    half = (high - low) / 2
    if mean:
        return f"{round_by_interval(value, half)} ± {round_by_interval(half, half)}{runs}"
    bounds = f"[{round_by_interval(low, half)}, {round_by_interval(high, half)}]"
    return f"{round_by_interval(value, half)} {bounds}{runs}"


def round_by_interval(value: float, half: float) -> str:
    """The value to two significant digits of its interval's half-width."""
    from vizpub.analytics.comparison.estimates import decimals

    places = decimals(half)
    return _number_text(value) if places is None else f"{round(value, places):.{max(places, 0)}f}"


def _number_text(value: float) -> str:
    """Six digits; millions in full."""
    return f"{value:.6g}" if abs(value) < 10**6 else f"{value:.0f}"
