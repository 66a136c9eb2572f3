"""Estimates over independent runs, with their 95 % confidence intervals.

A run is one observation: the mean is over runs, not over the intervals or messages of a run,
which depend on one another. A confidence interval needs at least two runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log10, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

_Floats = npt.NDArray[np.float64]

_LEVEL = 0.95
_MOST_DECIMALS = 6
_ROUNDING = 1e-12
"""Relative deviations below it come of sums in another order."""


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % confidence interval; null if there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Number of runs, or pairs of runs."""
    sd: float | None = None
    """Standard deviation over the runs (n - 1); of means only."""


def decimals(half: float) -> int | None:
    """Decimals that show two significant digits of an interval's half-width; at most six.

    Negative for tens and more. Null where the interval supports more digits than that.
    """
    places = 1 - floor(log10(half)) if half else _MOST_DECIMALS + 1
    return None if places > _MOST_DECIMALS else places


def _student_t(freedom: float | _Floats) -> _Floats:
    """The quantile with 2.5 % above it; NaN for unknown degrees of freedom."""
    quantile: _Floats = stdtrit(freedom, (1 + _LEVEL) / 2)
    return quantile


def mean(values: Sequence[float]) -> Estimate:
    """Mean over the runs: mean ± t(n-1)·sd/√n. Student, Biometrika 6 (1908) 1-25."""
    if not values:
        return Estimate(None)
    row = {name: float(row[0]) for name, row in row_means(np.array([values])).items()}
    if len(values) < 2:
        return Estimate(row["value"], n=1)
    return Estimate(row["value"], row["low"], row["high"], len(values), row["sd"])


def row_means(values: _Floats) -> dict[str, _Floats]:
    """`mean` of every row of a matrix whose columns are runs; NaN is unknown and left out.

    Returns value, low, high, sd and n as arrays; NaN if there is none.
    """
    is_known = ~np.isnan(values)
    n = is_known.sum(axis=1).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(is_known, values, 0).sum(axis=1) / n
        deviations = np.where(is_known, values - value[:, None], 0)
        deviations[np.abs(deviations) < _ROUNDING * np.abs(value)[:, None]] = 0
        sd = np.sqrt((deviations**2).sum(axis=1) / np.where(n > 1, n - 1, np.nan))
        half = _student_t(np.where(n > 1, n - 1, np.nan)) * sd / np.sqrt(n)
    return {"value": value, "low": value - half, "high": value + half, "sd": sd, "n": n}


@dataclass(frozen=True)
class _Moments:
    """Means of two samples, the variances of these means and their covariance."""

    x: float
    y: float
    var_x: float
    var_y: float
    covariance: float
    sizes: tuple[int, int]
    paired: bool

    @staticmethod
    def of(x: Sequence[float], y: Sequence[float], *, paired: bool) -> _Moments:
        n, m = len(x), len(y)
        covariance = float(np.cov(x, y)[0, 1]) / n if paired else 0.0
        return _Moments(
            float(np.mean(x)),
            float(np.mean(y)),
            float(np.var(x, ddof=1)) / n,
            float(np.var(y, ddof=1)) / m,
            covariance,
            (n, m),
            paired,
        )

    def variance(self, factor: float) -> float:
        """Variance of x - factor·y."""
        return self.var_x + factor**2 * self.var_y - 2 * factor * self.covariance

    def freedom(self, factor: float) -> float:
        """Degrees of freedom of that variance: n - 1 of pairs, else by Welch and Satterthwaite."""
        if self.paired:
            return self.sizes[0] - 1
        parts = (self.var_x, factor**2 * self.var_y)
        spread = sum(v**2 / (n - 1) for v, n in zip(parts, self.sizes, strict=True))
        return sum(parts) ** 2 / spread if spread else sum(self.sizes) - 2


def difference(x: Sequence[float], y: Sequence[float], *, paired: bool = False) -> Estimate:
    """mean(x) - mean(y): Welch's interval, or Student's over the differences of pairs.

    B. L. Welch, Biometrika 34 (1947) 28-35. Pairs are runs at the same position of `x` and `y`.
    """
    if not x or not y:
        return Estimate(None)
    if paired:
        return replace(mean([a - b for a, b in zip(x, y, strict=True)]), sd=None)
    value, n = float(np.mean(x) - np.mean(y)), len(x) + len(y)
    if min(len(x), len(y)) < 2:
        return Estimate(value, n=n)
    moments = _Moments.of(x, y, paired=False)
    half = float(_student_t(moments.freedom(1))) * sqrt(moments.variance(1))
    return Estimate(value, value - half, value + half, n)


def ratio(x: Sequence[float], y: Sequence[float], *, paired: bool = False) -> Estimate:
    """mean(x) / mean(y) with Fieller's interval.

    E. C. Fieller, J. R. Stat. Soc. B 16 (1954) 175-185; if they are not paired, with
    unequal variances and the degrees of freedom of Welch and Satterthwaite at the ratio
    (A. C. Tamhane and B. R. Logan, J. Biopharm. Stat. 14 (2004) 843-856). There is no value
    if mean(y) is 0, and no interval if mean(y) does not differ from 0 significantly.
    """
    n = len(x) if paired else len(x) + len(y)
    if not x or not y or not np.mean(y):
        return Estimate(None, n=n)
    value = float(np.mean(x) / np.mean(y))
    if min(len(x), len(y)) < 2:
        return Estimate(value, n=n)
    moments = _Moments.of(x, y, paired=paired)
    bounds = _fieller_bounds(moments, float(_student_t(moments.freedom(value))) ** 2)
    return Estimate(value, *bounds, n) if bounds else Estimate(value, n=n)


def _fieller_bounds(moments: _Moments, t2: float) -> tuple[float, float] | None:
    """The ratios r with (x - r·y)² ≤ t²·variance(x - r·y); null if they are unbounded."""
    a = moments.y**2 - t2 * moments.var_y
    if a <= 0:
        return None
    b = moments.x * moments.y - t2 * moments.covariance
    c = moments.x**2 - t2 * moments.var_x
    root = sqrt(max(b**2 - a * c, 0.0))
    return (b - root) / a, (b + root) / a
