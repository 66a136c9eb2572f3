from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any

import msgspec
import pytest
from scipy import stats

from vizpub.analytics.comparison.estimates import Estimate
from vizpub.experiments.claims import (
    NO_TOLERANCE,
    NOTHING_GIVEN,
    ONE_GROUP,
    POINT_OF_ONE,
    THREE_POINTS,
    TWO_TERMS,
    Claim,
)
from vizpub.experiments.groups import WHOLE, Share
from vizpub.experiments.results import UNLIKE_PARTS, ExperimentResults
from vizpub.model.errors import UnknownName, UseError

ABOUT: dict[str, Any] = {"what": "w", "source": "s", "metric": "links"}


@dataclass
class Told(ExperimentResults):
    """Values that were written down, by metric and group, or group and part of the run."""

    values: dict[Any, list[float]] = field(default_factory=dict)

    def of(self, metric: str, group: str, during: Share = WHOLE) -> dict[int, float]:
        return dict(enumerate(self.values.get(group, [])))

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

    @pytest.mark.parametrize(
        ("seeds", "expected"),
        [
            ([9.9, 10.0, 10.1], "met"),
            ([10.0, 10.0, 10.0], "met"),
            ([10.2, 11.0, 11.8], "cannot be told"),  # the mean is within, a part is not
            ([8.0, 12.0, 16.0], "cannot be told"),  # the mean is not within, the value is
            ([12.0, 12.1, 11.9], "not met"),
            ([11.1], "not met"),
            ([10.9], "met"),
        ],
    )
    def test_interval_over_the_seeds_decides_the_outcome(
        self, seeds: list[float], expected: str
    ) -> None:
        judged = claim(kind="value", of="a", value=10, relative=0.1).judge(
            Told([], values={"a": seeds})
        )
        assert judged.outcome == expected
        assert (judged.deviation == "") == (expected == "met")
        bounds = {"above": 9, "below": 11}
        assert outcome({"a": seeds}, kind="value", of="a", **bounds) == expected

    @pytest.mark.parametrize("seed", range(10))
    def test_interval_that_covers_the_published_value_never_fails_the_claim(
        self, seed: int
    ) -> None:
        random = Random(seed)
        for _ in range(50):
            seeds = [random.gauss(10, random.choice([0.01, 1, 5])) for _ in range(4)]
            low, high = stats.t.interval(0.95, 3, fmean(seeds), stats.sem(seeds))
            verdict = outcome({"a": seeds}, kind="value", of="a", value=10, relative=0.05)
            if low <= 10 <= high:
                assert verdict != "not met"
            assert (verdict == "met") == (low >= 9.5 and high <= 10.5)
            assert (verdict == "not met") == (high < 9.5 or low > 10.5)

    def test_exact_value_that_all_seeds_have_is_met(self) -> None:
        assert outcome({"a": [0.1] * 3}, kind="value", of="a", value=0.1, relative=0) == "met"
        values = {"a": [1.0, 1.0, 0.99]}
        assert outcome(values, kind="value", of="a", value=1, relative=0) == "cannot be told"

    def test_ratio_to_a_mean_that_may_be_0_cannot_be_told(self) -> None:
        values = {"a": [1.0, 2.0, 3.0], "b": [-5.0, 0.1, 9.0]}
        assert outcome(values, kind="value", of="a / b", above=0) == "cannot be told"

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

    @pytest.mark.parametrize(
        ("greater", "expected"),
        [
            ([1.5, 2.4, 3.6], "met"),  # in each world, though the groups overlap
            ([0.5, 2.5, 3.9], "cannot be told"),
            ([1.0, 2.0, 3.0], "not met"),
            ([0.5, 1.4, 2.6], "not met"),
            ([9.0, 9.1], "met"),
            ([2.0, 3.0], "met"),  # in both worlds that the groups share
            ([2.0, 1.9], "cannot be told"),
        ],
    )
    def test_interval_of_the_difference_decides_an_order(
        self, greater: list[float], expected: str
    ) -> None:
        values = {"a": [1.0, 2.0, 3.0], "b": greater}
        assert outcome(values, kind="order", order=["a", "b"]) == expected

    def test_order_is_as_its_least_certain_step(self) -> None:
        values = {"a": [1.0, 1.1], "b": [1.0, 9.0], "c": [20.0, 20.1], "d": [3.0, 3.1]}
        assert outcome(values, kind="order", order=["a", "c"]) == "met"
        assert outcome(values, kind="order", order=["a", "b", "c"]) == "cannot be told"
        assert outcome(values, kind="order", order=["a", "b", "c", "d"]) == "not met"

    def test_ratios_whose_intervals_overlap_cannot_be_ordered(self) -> None:
        values = {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.1, 3.9], "c": [2.0, 2.1, 1.9]}
        assert outcome(values, kind="order", order=["a / c", "b / c"]) == "cannot be told"

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
            ({"kind": "value", "of": "a", "value": 1, "relative": -0.1}, "negative"),
            ({"kind": "value", "of": "a", "range": [2, 1]}, "2 is greater than 1"),
            ({"kind": "order", "order": ["a"]}, TWO_TERMS),
            (
                {
                    "kind": "correlation",
                    "metric": "degree",
                    "to": "degree",
                    "of": "a / b",
                    "above": 0,
                },
                f"'a / b': a correlation {ONE_GROUP}",
            ),
            (
                {
                    "kind": "change",
                    "of": "a / b",
                    "before": (0, 0.5),
                    "after": (0.5, 1),
                    "above": 0,
                },
                f"'a / b': a change {ONE_GROUP}",
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

    @pytest.mark.parametrize(
        ("metric", "is_refused"),
        [
            ("publication_messages_sent / publications", True),
            ("links / gauges/lookups/total", True),
            ("traffic/publication/sent / publications", False),
            ("messages/receptions / messages/delivered", False),
        ],
    )
    def test_total_over_a_mean_is_refused(self, metric: str, *, is_refused: bool) -> None:
        checked = claim(kind="value", metric=metric, of="a", above=0)
        with pytest.raises(UseError, match=UNLIKE_PARTS) if is_refused else nullcontext():
            checked.check()

    def test_unknown_metric_is_refused(self) -> None:
        claim(kind="value", metric="union/degree / links", of="a", above=0).check()
        with pytest.raises(UnknownName, match="degree"):
            claim(kind="value", metric="union/degre", of="a", above=0).check()
        with pytest.raises(UnknownName):
            claim(kind="correlation", metric="density", to="degree", of="a", above=0).check()
