"""Tables and numbers of RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """Three significant digits, with separators."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def against(value: float, limit: float | None, prefix: str = "") -> str:
    """Seconds, and the ratio to the limit where there is one."""
    ratio = f" ({number(value / limit)}×)" if limit else ""
    return f"{prefix}{number(value)}{ratio}"
