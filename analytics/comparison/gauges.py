"""Values of the numbers that peers report of their own, as metrics of a run or of its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.questions.sums.totals import Span

_MEAN = "mean"


def gauge_values(span: Span, columns: Sequence[str]) -> dict[str, float | None]:
    """The value in the run of each of the `columns`, as vizpub.analytics.comparison.metrics names
    them after the table; null where no peer reports it.
    """
    totals = _GaugeTotals(span, columns)
    return {column: totals.of_run(column) for column in columns}


def gauge_series(span: Span, columns: Sequence[str]) -> dict[str, list[float | None]]:
    """The values in each interval of the span."""
    totals = _GaugeTotals(span, columns)
    return {column: totals.of_intervals(column) for column in columns}


def _split_column(column: str) -> tuple[str, str, str]:
    """The gauge, what of it (mean, total, max, per or a percentile), and what it is divided by."""
    gauge, *statistic = [*column.split("/"), _MEAN]
    return gauge, statistic[0], statistic[1] if statistic[0] == "per" else ""


class _GaugeTotals:
    """The gauges of a span, summed up for each interval."""

    def __init__(self, span: Span, columns: Sequence[str]) -> None:
        gauges = {gauge for column in columns for gauge in _split_column(column)[::2] if gauge}
        where = span.inside & pc.field("gauge").isin(sorted(gauges))
        rows = span.read("gauges", ["interval", "gauge", "peer", "value"], where)
        # In one order and one thread, so that sums are the same to the last digit.
        rows = rows.sort_by([(name, "ascending") for name in ("gauge", "interval", "peer")])
        statistics = ["mean", "sum", "max"]
        if any(_split_column(column)[1].startswith("p") for column in columns):
            statistics.append("list")
        aggregations = [("value", statistic) for statistic in statistics]
        per_interval = rows.group_by(["gauge", "interval"], use_threads=False).aggregate(
            aggregations
        )
        self._of: dict[str, list[dict[str, Any]]] = {gauge: [] for gauge in gauges}
        for row in per_interval.to_pylist():
            self._of[row["gauge"]].append(row)
        self._span = span

    def of_run(self, column: str) -> float | None:
        """The value of the whole span."""
        gauge, statistic, divisor = _split_column(column)
        if not (rows := self._of[gauge]):
            return None
        if statistic == "max":
            largest: float = max(row["value_max"] for row in rows)
            return largest
        if statistic in ("total", "per"):
            total = _total(rows)
            return total if statistic == "total" else _quotient(total, _total(self._of[divisor]))
        mean: float = pc.mean(pa.array([_of_peers(row, statistic) for row in rows])).as_py()
        return mean

    def of_intervals(self, column: str) -> list[float | None]:
        """The value of each interval."""
        gauge, statistic, divisor = _split_column(column)
        rows_by_interval = {row["interval"]: row for row in self._of[gauge]}
        divisors = {row["interval"]: row["value_sum"] for row in self._of.get(divisor, ())}
        values: list[float | None] = []
        for interval in range(self._span.first, self._span.last + 1):
            if (row := rows_by_interval.get(interval)) is None:
                values.append(None)
            elif statistic == "per":
                values.append(_quotient(row["value_sum"], divisors.get(interval)))
            else:
                values.append(_of_peers(row, statistic))
        return values


def _of_peers(row: dict[str, Any], statistic: str) -> float:
    """The mean, total, largest value or percentile (by nearest rank) of an interval's peers."""
    if statistic.startswith("p"):
        values: list[float] = sorted(row["value_list"])
        return values[-(-len(values) * int(statistic[1:]) // 100) - 1]
    value: float = row["value_sum" if statistic == "total" else f"value_{statistic}"]
    return value


def _total(rows: Sequence[dict[str, Any]]) -> float | None:
    return sum(row["value_sum"] for row in rows) if rows else None


def _quotient(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator is not None and denominator else None
