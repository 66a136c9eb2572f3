from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from vizpub.analytics.comparison.estimates import Estimate, mean, ratio
from vizpub.experiments.claims import (
    NO_TOLERANCE,
    NOTHING_GIVEN,
    ONE_GROUP,
    POINT_OF_ONE,
    THREE_POINTS,
    TWO_TERMS,
    Claim,
)
from vizpub.experiments.groups import WHOLE, Share, groups_of
from vizpub.experiments.results import ExperimentResults
from vizpub.model.errors import UnknownName, UseError

ABOUT: dict[str, Any] = {"what": "w", "source": "s", "metric": "links"}


@dataclass
class Told(ExperimentResults):
    """Values that were written down, by metric and group, or group and part of the run."""

    values: dict[Any, list[float]] = field(default_factory=dict)

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        first, *others = (self.values.get(group, []) for group in groups_of(term))
        return ratio(first, others[0]) if others else mean(first)

    def change(self, metric: str, group: str, parts: tuple[Share, Share]) -> Estimate:
        before, after = (self.values[group, part][0] for part in parts)
        return Estimate(after / before - 1)

    def correlation(self, metrics: tuple[str, str], group: str, during: Share) -> Estimate:
        return Estimate(self.values[metrics][0])

    def fit(self, metrics: tuple[str, str], groups: Sequence[str], during: Share) -> Estimate:
        return Estimate(self.values[metrics, *groups][0])


def claim(**given: Any) -> Claim:
    made: Claim = msgspec.convert({**ABOUT, **given}, Claim)
    return made


def outcome(values: dict[Any, list[float]], **given: Any) -> str:
    return claim(**given).judge(Told([], values=values)).outcome


class TestValues:
    @pytest.mark.parametrize(
        ("bounds", "ours", "expected"),
        [
            ({"value": 10, "relative": 0.1}, 11.0, "met"),
            ({"value": 10, "relative": 0.1}, 11.1, "not met"),
            ({"value": -10, "relative": 0.1}, -9.5, "met"),
            ({"value": 10, "absolute": 0.5}, 9.5, "met"),
            ({"value": 10, "absolute": 0.5}, 9.4, "not met"),
            ({"value": 10, "relative": 0}, 10.0, "met"),
            ({"value": 10, "relative": 0}, 10.0001, "not met"),
            ({"value": 0.1 + 0.2, "relative": 0}, 0.3, "met"),
            ({"range": [8, 30]}, 8.0, "met"),
            ({"range": [8, 30]}, 31.0, "not met"),
            ({"value": 21, "range": [8, 30]}, 12.0, "met"),
            ({"above": 20}, 20.0, "not met"),
            ({"below": 20}, 19.0, "met"),
            ({"above": 1, "below": 2}, 1.5, "met"),
            ({"value": 10}, 99.0, "shown"),
        ],
    )
    def test_bounds_decide_the_outcome(
        self, bounds: dict[str, Any], ours: float, expected: str
    ) -> None:
        assert outcome({"a": [ours]}, kind="value", of="a", **bounds) == expected

    def test_mean_of_the_runs_is_judged(self) -> None:
        values = {"a": [8.0, 12.0]}
        assert outcome(values, kind="value", of="a", value=10, relative=0) == "met"

    def test_term_of_two_groups_is_their_ratio(self) -> None:
        values = {"a": [30.0], "b": [3.0]}
        assert outcome(values, kind="value", of="a / b", value=10, relative=0) == "met"

    def test_group_without_runs_makes_the_outcome_not_known(self) -> None:
        assert outcome({}, kind="value", of="a", above=1) == "unknown"
        assert outcome({"a": [1.0]}, kind="order", order=["a", "b"]) == "unknown"

    def test_deviation_is_told_in_percent_or_times(self) -> None:
        found = claim(kind="value", of="a", value=10, relative=0.01)
        assert found.judge(Told([], values={"a": [12.0]})).deviation == "+20%"
        assert found.judge(Told([], values={"a": [50.0]})).deviation == "5 times"

    def test_change_is_a_share_of_the_value_before(self) -> None:
        values = {("a", (0.0, 0.1)): [10.0], ("a", (0.5, 0.6)): [9.0]}
        spans = {"before": [0.0, 0.1], "after": [0.5, 0.6]}
        assert outcome(values, kind="change", of="a", range=[-0.11, 0], **spans) == "met"
        assert outcome(values, kind="change", of="a", above=0, **spans) == "not met"

    def test_correlation_of_two_peer_metrics_is_judged(self) -> None:
        found = claim(kind="correlation", metric="degree", to="subscriptions", of="a", above=0.7)
        found.check()
        assert found.judge(Told([], values={("degree", "subscriptions"): [0.8]})).outcome == "met"

    def test_line_through_several_groups_is_judged(self) -> None:
        given = {"kind": "line", "along": "publications", "points": ["a", "b", "c"], "above": 0.99}
        found = claim(**given)
        found.check()
        assert found.terms == ("a", "b", "c")
        values = {(("links", "publications"), "a", "b", "c"): [0.995]}
        assert found.judge(Told([], values=values)).outcome == "met"


class TestOrders:
    def test_order_needs_each_value_below_the_next(self) -> None:
        values = {"a": [1.0], "b": [2.0], "c": [3.0]}
        assert outcome(values, kind="order", order=["a", "b", "c"]) == "met"
        assert outcome(values, kind="order", order=["a", "c", "b"]) == "not met"
        assert outcome(values | {"b": [1.0]}, kind="order", order=["a", "b"]) == "not met"

    def test_ratios_can_be_ordered(self) -> None:
        values = {"a": [1.0], "b": [2.0], "c": [3.0]}
        assert outcome(values, kind="order", order=["a / b", "c / b"]) == "met"

    def test_published_text_states_order_value_and_range(self) -> None:
        assert claim(kind="order", order=["a", "b / c"]).published_text == "a < (b / c)"
        told = claim(kind="value", of="a", value=21.1, range=[8, 30]).published_text
        assert told == "21.1 (8 to 30)"
        assert claim(kind="value", of="a", value=189, relative=0).published_text == "189 exactly"


class TestChecks:
    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({"kind": "value", "of": "a"}, NOTHING_GIVEN),
            ({"kind": "value", "of": "a", "relative": 0.1}, NO_TOLERANCE),
            ({"kind": "order", "order": ["a"]}, TWO_TERMS),
            (
                {
                    "kind": "correlation",
                    "metric": "degree",
                    "to": "degree",
                    "of": "a / b",
                    "above": 0,
                },
                f"'a / b': {ONE_GROUP}",
            ),
            (
                {"kind": "line", "along": "links", "points": ["a", "b", "a"], "above": 0},
                THREE_POINTS,
            ),
            (
                {"kind": "line", "along": "links", "points": ["a", "b", "c / d"], "above": 0},
                f"'c / d': {POINT_OF_ONE}",
            ),
        ],
    )
    def test_claim_that_cannot_be_judged_is_refused(self, given: dict[str, Any], told: str) -> None:
        with pytest.raises(UseError, match=told):
            claim(**given).check()

    def test_unknown_metric_is_refused(self) -> None:
        claim(kind="value", metric="union/degree / links", of="a", above=0).check()
        with pytest.raises(UnknownName, match="degree"):
            claim(kind="value", metric="union/degre", of="a", above=0).check()
        with pytest.raises(UnknownName):
            claim(kind="correlation", metric="density", to="degree", of="a", above=0).check()
