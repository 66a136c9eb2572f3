"""Published values, and whether our results agree with them.

A claim in a file is about the mean over the runs. It names a metric (`vizpub tables`,
docs/compare.md or `vizpub.experiments.results.EXPERIMENT_METRICS`) and groups. A term is a group,
or a ratio of two groups such as 'PolderCast / Scribe'. Experiments without runs judge the same
claims of what they measured, and statements that only code can check. A claim without bounds is
shown, not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from vizpub.experiments.formatting import UNKNOWN, estimate_text, number_text
from vizpub.experiments.groups import WHOLE, Share, groups_of
from vizpub.experiments.results import check_metric
from vizpub.model.errors import UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.analytics.comparison.estimates import Estimate
    from vizpub.experiments.results import ExperimentResults
    from vizpub.model.own import OwnMetric

NO_TOLERANCE = "a tolerance needs a value"
NOTHING_GIVEN = "there is no value, range, above or below"
ONE_GROUP = "a correlation is of one group"
THREE_POINTS = "a line needs at least three points"
POINT_OF_ONE = "a point is one group"
TWO_TERMS = "an order needs at least two terms"

Outcome = Literal["met", "not met", "shown", "unknown"]
_SIGN = {1: "<", 0: "=", -1: ">"}
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
    """Distance from the published value, if the claim is not met."""
    why: str = ""
    """Why it may not be met, if that is known in advance."""


def judge_statement(
    statement: str, source: str, published: str, ours: str, holds: bool | None, why: str = ""
) -> JudgedClaim:
    """Judge what the caller has checked: true, false, or null where that is unknown."""
    outcome: Outcome = "unknown" if holds is None else "met" if holds else "not met"
    return JudgedClaim(statement, source, published, ours, outcome, why=why)


def summarize_claims(judged: Sequence[JudgedClaim]) -> str:
    """Number of claims that are met, as text."""
    counts = Counter[str](claim.outcome for claim in judged)
    total = counts["met"] + counts["not met"]
    parts = [f"{counts['met']} of {amount(total, 'claim')} met"] if total else []
    rest = ("shown", "unknown")
    parts += [f"{counts[outcome]} {outcome}" for outcome in rest if counts[outcome]]
    return ", ".join(parts) or "nothing to judge"


class TermEstimates(Protocol):
    """Results by metric and term."""

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """The mean of a group, or the ratio of two groups."""


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

    def holds(self, ours: float) -> bool | None:
        """Return True if our value lies within the bounds; null without any."""
        tests = []
        if self.value is not None and (self.relative, self.absolute) != (None, None):
            slack = max(max(self.relative or 0, _EXACT) * abs(self.value), self.absolute or 0)
            tests.append(isclose(ours, self.value, rel_tol=0, abs_tol=slack))
        if self.range is not None:
            tests.append(self.range[0] <= ours <= self.range[1])
        tests += [] if self.above is None else [ours > self.above]
        tests += [] if self.below is None else [ours < self.below]
        return all(tests) if tests else None

    def _judge_estimate(self, ours: Estimate) -> JudgedClaim:
        """Compare an estimate with the bounds."""
        if ours.value is None:
            return self._judgement(UNKNOWN, "unknown")
        text, holds = estimate_text(ours), self.holds(ours.value)
        if holds:
            return self._judgement(text, "met")
        outcome: Outcome = "shown" if holds is None else "not met"
        return self._judgement(text, outcome, self._deviation(ours.value))

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
        if len(groups_of(self.of)) > 1:
            raise UseError(f"'{self.of}': {ONE_GROUP}")


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
        return self._judgement(ours.strip(), "met" if {*signs} == {"<"} else "not met")


Claim = ValueClaim | ChangeClaim | CorrelationClaim | LineClaim | OrderClaim
