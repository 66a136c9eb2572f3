"""What is published when: counts and times against the laws."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
from scipy import stats

from tests.support.words import unknown
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.publications import (
    FILE_OR_TIME,
    NO_SUBSCRIBER,
    PUBLICATIONS,
    PlannedPublication,
)
from vizpub.simulators.world.subscriptions import Subscriptions

INTERVAL = 1_000_000
RUN = Setting(10, 1000 * INTERVAL, INTERVAL)

# Topic 0 has one subscriber, topic 1 none, topic 2 four, topic 3 two, topic 4 two.
OF = [(0, 0), *((peer, 2) for peer in range(4)), (5, 3), (6, 3), (7, 4), (8, 4)]
ALL = (
    "poisson:0.5,first=20,last=899",
    "every:7,first=20,last=899",
    "zipf:3,first=20,last=899",
    "script:at=50,count=10",
)


def subscribed(names: list[str] | None = None) -> Subscriptions:
    return Subscriptions(10, 5, OF, names)


def planned(text: str, seed: int = 1, of: Subscriptions | None = None) -> list[PlannedPublication]:
    model = parse(text, PUBLICATIONS, "publications")
    return list(model.plan_publications(of or subscribed(), RUN, Random(seed)))


@pytest.mark.parametrize("text", ALL)
def test_plan_is_in_order_and_within_its_time(text: str) -> None:
    plan = planned(text)
    assert len(plan) >= 10
    assert all(a.time_us <= b.time_us for a, b in pairwise(plan))
    assert all(20 * INTERVAL <= one.time_us < 900 * INTERVAL for one in plan)
    assert {one.topic for one in plan} <= {0, 2, 3, 4}, "topic 1 has no subscribers"
    assert {(one.publisher, one.size) for one in plan} == {(None, 512)}
    assert plan == planned(text)
    assert {one.size for one in planned(f"{text},size=9")} == {9}


@pytest.mark.parametrize("text", ALL[:3])
def test_plan_follows_changing_subscriptions(text: str) -> None:
    of = subscribed()
    plan = parse(text, PUBLICATIONS, "publications").plan_publications(of, RUN, Random(1))
    list(islice(plan, 30))
    of.remove(0, 0)
    assert 0 not in {one.topic for one in list(plan)[1:]}


def test_plan_of_none_is_empty() -> None:
    assert planned("none") == []


def test_poisson_has_its_rate_on_every_topic() -> None:
    plan = planned("poisson:0.5")
    counts = Counter(one.topic for one in plan)
    assert sorted(counts) == [0, 2, 3, 4]
    # 500 expected of each, a standard deviation of 22.
    assert all(abs(count - 500) < 90 for count in counts.values())
    gaps = [b.time_us - a.time_us for a, b in pairwise(plan)]
    assert stats.kstest(gaps, stats.expon(scale=INTERVAL / 2).cdf).pvalue > 0.01


def test_topic_has_one_publication_in_every_period() -> None:
    plan = planned("every:7,first=20,last=89")
    for topic in (0, 2, 3, 4):
        times = [one.time_us for one in plan if one.topic == topic]
        assert len(times) == 10
        assert {b - a for a, b in pairwise(times)} == {7 * INTERVAL}
        assert 20 * INTERVAL <= times[0] < 27 * INTERVAL
    assert len({one.time_us for one in plan}) == 40, "each at its own moment"


def test_peers_publish_their_number_each_at_uniform_times() -> None:
    plan = planned("each:40,first=100,last=299")
    assert Counter(one.publisher for one in plan) == dict.fromkeys(range(10), 40)
    assert {one.topic for one in plan} == {None}, "chosen when it is published"
    times = [one.time_us for one in plan]
    assert times == sorted(times)
    law = stats.uniform(100 * INTERVAL, 200 * INTERVAL)
    assert stats.kstest(times, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("text", [*ALL, "each:2"])
def test_publisher_may_be_anyone(text: str) -> None:
    assert {one.from_ for one in planned(text)} == {"subscriber"}
    assert {one.from_ for one in planned(f"{text},from=anyone")} == {"anyone"}


def test_zipf_publications_follow_topic_popularity() -> None:
    plan = planned("zipf:20,exponent=0.7")
    assert abs(len(plan) - 20_000) < 600
    counts = Counter(one.topic for one in plan)
    weights = [rank**-0.7 for rank in range(1, 5)]
    expected = [len(plan) * weight / sum(weights) for weight in weights]
    # By subscribers, at equal numbers by index.
    assert stats.chisquare([counts[topic] for topic in (2, 3, 4, 0)], expected).pvalue > 0.01


def test_plan_without_subscribers_is_empty_or_refused() -> None:
    nobody = Subscriptions(10, 5)
    for of in (nobody, Subscriptions(10, 0)):
        assert [planned(text, of=of) for text in ALL[:3]] == [[], [], []]
    with pytest.raises(UseError, match=NO_SUBSCRIBER):
        planned("script:at=3", of=nobody)


class TestScript:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("at=50", [(50.0, 2, None)]),
            ("at=1.5s,topic=3,publisher=7", [(1.5, 3, 7)]),
            ("at=2,topic=smallest,count=3", [(2, 0, None), (3, 0, None), (4, 0, None)]),
            ("at=2,topic=1", []),
        ],
    )
    def test_script_may_be_given_inline(
        self, text: str, expected: list[tuple[float, int, int | None]]
    ) -> None:
        plan = planned(f"script:{text}")
        assert [(one.time_us / INTERVAL, one.topic, one.publisher) for one in plan] == expected

    def test_publication_on_several_topics_has_a_message_on_each(self) -> None:
        """Those with subscribers, each once; a name may contain a plus."""
        plan = planned("script:at=2,topic=0+largest+1+3+2")
        assert [(one.topic, one.also) for one in plan] == [(0, (2, 3))]
        of = subscribed(["a+b", "b", "c", "a", "d"])
        plan = planned("script:at=2,topic=a+b", of=of)
        assert [(one.topic, one.also) for one in plan] == [(0, ())]

    def test_random_topic_is_one_with_subscribers(self) -> None:
        plan = planned("script:at=0,topic=random,count=200")
        assert set(Counter(one.topic for one in plan)) == {0, 2, 3, 4}

    def test_topic_is_found_by_name(self) -> None:
        of = subscribed(["news", "sport", "3", "weather", "arts"])
        assert [one.topic for one in planned("script:at=0,topic=weather", of=of)] == [3]
        assert [one.topic for one in planned("script:at=0,topic=3", of=of)] == [2]
        with pytest.raises(UnknownName, match=unknown("topic", "wether", "weather")):
            planned("script:at=0,topic=wether", of=of)

    def test_script_may_be_read_from_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "plan.csv"
        path.write_text("# at,topic,publisher\n50,largest,7\n1.5s,3\n50,0,\n")
        plan = planned(f"script:{path}")
        assert [(one.time_us / INTERVAL, one.topic, one.publisher) for one in plan] == [
            (1.5, 3, None),
            (50, 2, 7),
            (50, 0, None),
        ]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("50", "plan.csv:2: '50' .*at,topic,publisher"),
            ("50,1,x", "plan.csv:2: '50,1,x' .*at,topic,publisher"),
            ("50,1,2,3", "plan.csv:2: '50,1,2,3' .*at,topic,publisher"),
            ("soon,1", "'soon'"),
            ("1000,1", "interval 1000: .*only 1000"),
            ("3,1,10", "peer 10; .*0 to 9"),
            ("3,5", unknown("topic", "5")),
        ],
    )
    def test_invalid_line_is_refused_with_the_reason(
        self, tmp_path: Path, line: str, said: str
    ) -> None:
        (tmp_path / "plan.csv").write_text(f"0,0\n{line}\n")
        with pytest.raises((InputError, UseError), match=said):
            planned(f"script:{tmp_path}/plan.csv")

    def test_unknown_topic_is_refused_before_the_first_publication(self, tmp_path: Path) -> None:
        (tmp_path / "plan.csv").write_text("0,largest\n900,nonsuch\n")
        model = parse(f"script:{tmp_path}/plan.csv", PUBLICATIONS, "publications")
        with pytest.raises(UnknownName, match=unknown("topic", "nonsuch")):
            next(model.plan_publications(subscribed(), RUN, Random(1)))

    @pytest.mark.parametrize("text", ["script", "script:topic=largest", "script:x.csv,at=3"])
    def test_script_needs_either_a_file_or_a_time(self, text: str) -> None:
        with pytest.raises(UseError, match=FILE_OR_TIME):
            planned(text)


@pytest.mark.parametrize(
    "text", ["poisson:first=1000", "every:first=1000", "zipf:first=1000", "script:at=990,count=11"]
)
def test_publications_after_the_run_are_refused(text: str) -> None:
    with pytest.raises(UseError, match=r"interval 1000: .*only 1000"):
        planned(text)


@pytest.mark.parametrize("model", ["each:1", "poisson:0.5", "every:7", "zipf:3"])
def test_span_that_ends_before_it_begins_is_refused(model: str) -> None:
    with pytest.raises(UseError, match="last=3 is before first=5"):
        planned(f"{model},first=5,last=3")
