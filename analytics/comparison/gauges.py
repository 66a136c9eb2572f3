"""Values of the numbers that peers report of their own, as metrics of a run or of its intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.questions.totals import Span

_MEAN = "mean"


def gauge_values(span: Span, columns: Sequence[str]) -> dict[str, float | None]:
    """The value in the run of each of the `columns`, as vizpub.analytics.comparison.metrics names
    them after the table; null where no peer reports it.
    """
    found = _Reported(span, columns)
    return {column: found.of_run(column) for column in columns}


def gauge_series(span: Span, columns: Sequence[str]) -> dict[str, list[float | None]]:
    """The values in each interval of the span."""
    found = _Reported(span, columns)
    return {column: found.of_intervals(column) for column in columns}


def _parts(column: str) -> tuple[str, str, str]:
    """The gauge, what of it (mean, total, max or per), and the gauge that it is divided by."""
    gauge, *how = [*column.split("/"), _MEAN]
    return gauge, how[0], how[1] if how[0] == "per" else ""


class _Reported:
    """The gauges of a span, summed up for each interval."""

    def __init__(self, span: Span, columns: Sequence[str]) -> None:
        wanted = {gauge for column in columns for gauge in _parts(column)[::2] if gauge}
        where = span.inside & pc.field("gauge").isin(sorted(wanted))
        rows = span.read("gauges", ["interval", "gauge", "peer", "value"], where)
        # In one order and one thread, so that sums are the same to the last digit.
        rows = rows.sort_by([(name, "ascending") for name in ("gauge", "interval", "peer")])
        ways = [("value", way) for way in ("mean", "sum", "max")]
        each = rows.group_by(["gauge", "interval"], use_threads=False).aggregate(ways)
        self._of: dict[str, list[dict[str, float]]] = {gauge: [] for gauge in wanted}
        for row in each.to_pylist():
            self._of[row["gauge"]].append(row)
        self._span = span

    def of_run(self, column: str) -> float | None:
        """The value of the whole span."""
        gauge, how, other = _parts(column)
        if not (rows := self._of[gauge]):
            return None
        if how == _MEAN:
            mean: float = pc.mean(pa.array([row["value_mean"] for row in rows])).as_py()
            return mean
        if how == "max":
            return max(row["value_max"] for row in rows)
        total = _total(rows)
        return total if how == "total" else _over(total, _total(self._of[other]))

    def of_intervals(self, column: str) -> list[float | None]:
        """The value of each interval."""
        gauge, how, other = _parts(column)
        here = {row["interval"]: row for row in self._of[gauge]}
        below = {row["interval"]: row["value_sum"] for row in self._of.get(other, ())}
        found: list[float | None] = []
        for interval in range(self._span.first, self._span.last + 1):
            if (row := here.get(interval)) is None:
                found.append(None)
            elif how == "per":
                found.append(_over(row["value_sum"], below.get(interval)))
            else:
                found.append(row["value_sum" if how == "total" else f"value_{how}"])
        return found


def _total(rows: Sequence[dict[str, float]]) -> float | None:
    return sum(row["value_sum"] for row in rows) if rows else None


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
