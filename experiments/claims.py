"""Published values, and whether our results agree with them.

A claim in a file is about the mean over the runs. It names a metric (`vizpub runs tables`,
docs/compare.md or `vizpub.experiments.results.EXPERIMENT_METRICS`) and groups. A term is a group,
or a ratio of two groups such as 'PolderCast / Scribe'. Experiments without runs judge the same
claims of what they measured, and statements that only code can check. A claim without bounds is
shown, not judged.

A claim is met if all of the 95 % interval over the runs is within its bounds, not met if none of
it is; otherwise it cannot be told. One run has no interval: its value is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from vizpub.experiments.formatting import UNKNOWN, estimate_text, number_text
from vizpub.experiments.groups import WHOLE, Share, check_share, groups_of
from vizpub.experiments.results import check_metric
from vizpub.model.errors import UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.analytics.comparison.estimates import Estimate
    from vizpub.experiments.results import ExperimentResults
    from vizpub.model.own import OwnMetric

NO_TOLERANCE = "a tolerance needs a value"
NOTHING_GIVEN = "there is no value, range, above or below"
ONE_GROUP = "is of one group"
THREE_POINTS = "a line needs at least three points"
POINT_OF_ONE = "a point is one group"
TWO_TERMS = "an order needs at least two terms"

Outcome = Literal["met", "not met", "cannot be told", "shown", "unknown"]
JUDGED: tuple[Outcome, ...] = ("not met", "cannot be told", "met")
"""Outcomes of what could be judged, worst first."""
_SIGN = {1: "<", 0: "=", -1: ">"}
_Test = Callable[[float], bool]
_EXACT = 1e-9
"""Relative difference that is due to the rounding of doubles."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and what our results say about it."""

    what: str
    source: str
    published: str
    ours: str
    outcome: Outcome
    deviation: str = ""
    """Distance from the published value, if the claim is not met or cannot be told."""
    why: str = ""
    """Why it may not be met, if that is known in advance."""
    expected: bool = False
    """Nobody published it: it is our own expectation."""


def judge_statement(
    statement: str, source: str, published: str, ours: str, holds: bool | None, why: str = ""
) -> JudgedClaim:
    """Judge what the caller has checked: true, false, or null where that is unknown."""
    outcome: Outcome = "unknown" if holds is None else "met" if holds else "not met"
    return JudgedClaim(statement, source, published, ours, outcome, why=why)


def summarize_claims(judged: Sequence[JudgedClaim]) -> str:
    """Number of published claims that are met, and of our own expectations, as text."""
    published, expected = ([one for one in judged if one.expected == own] for own in (False, True))
    texts = [_count_outcomes(published, "published claim")] if published else []
    texts += [_count_outcomes(expected, "own expectation")] if expected else []
    return "; ".join(texts) or "nothing to judge"


def _count_outcomes(judged: Sequence[JudgedClaim], noun: str) -> str:
    """'3 of 5 published claims met, 1 cannot be told, 2 shown'."""
    counts = Counter[str](claim.outcome for claim in judged)
    total = sum(counts[outcome] for outcome in JUDGED)
    parts = [f"{counts['met']} of {amount(total, noun)} met"] if total else []
    rest = ("cannot be told", "shown", "unknown")
    return ", ".join([*parts, *(f"{counts[name]} {name}" for name in rest if counts[name])])


class TermEstimates(Protocol):
    """Results by metric and term."""

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """The mean of a group, or the ratio of two groups."""

    def difference(self, metric: str, terms: tuple[str, str], during: Share = WHOLE) -> Estimate:
        """The first term minus the second."""


class _ClaimFields(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True):
    """Fields of every claim."""

    what: str
    source: str
    """Where it is published."""
    metric: str
    why: str = ""
    """Why it may not be met, if that is known in advance."""
    only: Literal["small", "full"] | None = None
    """The only scale at which it is judged."""
    during: Share = WHOLE

    def __post_init__(self) -> None:
        """Raises: ValueError for a part that ends before it begins."""
        check_share(self.during)

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        check_metric(self.metric, own_metrics=own_metrics)

    @property
    def published_text(self) -> str:
        """The claim as text."""
        raise NotImplementedError

    def _judgement(self, ours: str, outcome: Outcome, deviation: str = "") -> JudgedClaim:
        return JudgedClaim(
            self.what, self.source, self.published_text, ours, outcome, deviation, self.why
        )


class _BoundedClaim(_ClaimFields, frozen=True, kw_only=True):
    """A claim on a number."""

    value: float | None = None
    """The published value."""
    relative: float | None = None
    """Tolerance as a share of the value; 0 = exactly."""
    absolute: float | None = None
    range: tuple[float, float] | None = None
    above: float | None = None
    below: float | None = None

    @property
    def published_text(self) -> str:
        """The claim as text."""
        words = [] if self.value is None else [number_text(self.value)]
        if self.relative == 0:
            words.append("exactly")
        elif self.relative is not None:
            words.append(f"± {number_text(100 * self.relative)} %")
        if self.absolute is not None:
            words.append(f"± {number_text(self.absolute)}")
        if self.range is not None:
            bounds = f"{number_text(self.range[0])} to {number_text(self.range[1])}"
            words.append(f"({bounds})" if words else bounds)
        words += [] if self.above is None else [f"> {number_text(self.above)}"]
        words += [] if self.below is None else [f"< {number_text(self.below)}"]
        return " ".join(words)

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        super().check(own_metrics)
        if self.value is None and (self.relative is not None or self.absolute is not None):
            raise UseError(NO_TOLERANCE)
        if not self.published_text:
            raise UseError(NOTHING_GIVEN)
        if self.range and self.range[0] > self.range[1]:
            raise UseError(f"range: {self.range[0]:g} is greater than {self.range[1]:g}")
        if min(self.relative or 0, self.absolute or 0) < 0:
            raise UseError("relative, absolute: a tolerance is not negative")

    def outcome(self, ours: Estimate) -> Outcome:
        """The outcome by the bounds that all, or none, of the interval is within."""
        low, high = _interval(ours)
        least, most = self._tests()
        if not least and not most:
            return "shown"
        if all(test(low) for test in least) and all(test(high) for test in most):
            return "met"
        is_outside = not (all(test(high) for test in least) and all(test(low) for test in most))
        return "not met" if is_outside else "cannot be told"

    def _tests(self) -> tuple[list[_Test], list[_Test]]:
        """The bounds from below and from above."""
        least: list[_Test] = []
        most: list[_Test] = []
        if self.value is not None and (self.relative, self.absolute) != (None, None):
            value = self.value
            slack = max(max(self.relative or 0, _EXACT) * abs(value), self.absolute or 0)
            least.append(lambda ours: ours - value >= -slack)
            most.append(lambda ours: ours - value <= slack)
        if self.range is not None:
            first, last = self.range
            least.append(lambda ours: ours >= first)
            most.append(lambda ours: ours <= last)
        if (above := self.above) is not None:
            least.append(lambda ours: ours > above)
        if (below := self.below) is not None:
            most.append(lambda ours: ours < below)
        return least, most

    def _judge_estimate(self, ours: Estimate) -> JudgedClaim:
        """Compare an estimate with the bounds."""
        if ours.value is None:
            return self._judgement(UNKNOWN, "unknown")
        outcome = self.outcome(ours)
        deviation = "" if outcome == "met" else self._deviation(ours.value)
        return self._judgement(estimate_text(ours), outcome, deviation)

    def _deviation(self, ours: float) -> str:
        if not self.value:
            return ""
        share = ours / self.value - 1
        if abs(share) >= 2:
            return f"{ours / self.value:.3g} times"
        return f"{share:+.0%}" if abs(share) >= 0.01 else f"{share:+.2%}"


class _TermClaim(_BoundedClaim, frozen=True, kw_only=True):
    """A claim on a number of one term."""

    of: str

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that the claim compares."""
        return (self.of,)


def _check_one_group(kind: str, term: str) -> None:
    if len(groups_of(term)) > 1:
        raise UseError(f"'{term}': {kind} {ONE_GROUP}")


class ValueClaim(_TermClaim, frozen=True, kw_only=True, tag="value"):
    """The value of a metric for a term."""

    def judge(self, results: TermEstimates) -> JudgedClaim:
        """Compare the claim with our results."""
        return self._judge_estimate(results.estimate(self.metric, self.of, self.during))


class ChangeClaim(_TermClaim, frozen=True, kw_only=True, tag="change"):
    """Relative change of a metric from one part of the run to another: -0.1 is 10 % less."""

    before: Share
    after: Share

    def judge(self, results: ExperimentResults) -> JudgedClaim:
        """Compare the claim with our runs."""
        return self._judge_estimate(results.change(self.metric, self.of, (self.before, self.after)))

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        super().check(own_metrics)
        _check_one_group("a change", self.of)


class CorrelationClaim(_TermClaim, frozen=True, kw_only=True, tag="correlation"):
    """Spearman's rank correlation of two metrics of peers, each averaged over the run."""

    to: str
    """The other metric."""

    def judge(self, results: ExperimentResults) -> JudgedClaim:
        """Compare the claim with our runs."""
        return self._judge_estimate(
            results.correlation((self.metric, self.to), self.of, self.during)
        )

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        super().check(own_metrics)
        for metric in (self.metric, self.to):
            check_metric(metric, "peers", own_metrics)
        _check_one_group("a correlation", self.of)


class LineClaim(_BoundedClaim, frozen=True, kw_only=True, tag="line"):
    """R² of the straight line that fits the metric best along another one, with a point for each
    group: 1 if the metric is linear in the other one.
    """

    along: str
    """The other metric."""
    points: tuple[str, ...]
    """The groups."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that the claim compares."""
        return self.points

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        super().check(own_metrics)
        check_metric(self.along, own_metrics=own_metrics)
        if len({*self.points}) < 3:
            raise UseError(THREE_POINTS)
        if ratios := [term for term in self.points if len(groups_of(term)) > 1]:
            raise UseError(f"'{ratios[0]}': {POINT_OF_ONE}")

    def judge(self, results: ExperimentResults) -> JudgedClaim:
        """Compare the claim with our runs."""
        return self._judge_estimate(
            results.fit((self.metric, self.along), self.points, self.during)
        )


class OrderClaim(_ClaimFields, frozen=True, kw_only=True, tag="order"):
    """The metric increases from term to term."""

    order: tuple[str, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that the claim compares."""
        return self.order

    @property
    def published_text(self) -> str:
        """The claim as text."""
        return " < ".join(f"({term})" if " / " in term else term for term in self.order)

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError if the claim cannot be evaluated."""
        super().check(own_metrics)
        if len(self.order) < 2:
            raise UseError(TWO_TERMS)

    def judge(self, results: TermEstimates) -> JudgedClaim:
        """Compare the claim with our results."""
        estimates = [results.estimate(self.metric, term, self.during) for term in self.order]
        values = [estimate.value for estimate in estimates if estimate.value is not None]
        texts = list(map(estimate_text, estimates))
        if len(values) < len(estimates):
            return self._judgement(", ".join(texts), "unknown")
        signs = [_SIGN[(a < b) - (a > b)] for a, b in pairwise(values)]
        ours = "".join(f"{text} {sign} " for text, sign in zip(texts, [*signs, ""], strict=True))
        outcomes = {
            _judge_increase(results.difference(self.metric, terms, self.during))
            for terms in pairwise(self.order)
        }
        outcome: Outcome = next((one for one in JUDGED if one in outcomes), "unknown")
        return self._judgement(ours.strip(), outcome)


def _judge_increase(difference: Estimate) -> Outcome:
    """Judge that a difference is below 0."""
    low, high = _interval(difference)
    return "met" if high < 0 else "not met" if low >= 0 else "cannot be told"


def _interval(estimate: Estimate) -> tuple[float, float]:
    """The bounds of an estimate with a value: that value if one run has none."""
    if estimate.value is None:
        raise ValueError(estimate)
    if estimate.low is None or estimate.high is None:
        return estimate.value, estimate.value
    return estimate.low, estimate.high


Claim = ValueClaim | ChangeClaim | CorrelationClaim | LineClaim | OrderClaim
