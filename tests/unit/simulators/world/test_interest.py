"""Who subscribes and unsubscribes when: counts and times against the laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from scipy import stats

from tests.support.words import unknown
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.interest import INTERESTS, InterestChange
from vizpub.simulators.world.subscriptions import Subscriptions

INTERVAL = 1_000_000
RUN = Setting(100, 400 * INTERVAL, INTERVAL)
TOPICS = 30


def subscribed(per_peer: int = 4) -> Subscriptions:
    """Topic t has a weight of 1 / (t + 1)."""
    random = Random(5)
    pairs = set()
    for peer in range(RUN.peers):
        while sum(one == peer for one, _ in pairs) < per_peer:
            weights = [1 / (topic + 1) for topic in range(TOPICS)]
            pairs.add((peer, random.choices(range(TOPICS), weights)[0]))
    return Subscriptions(RUN.peers, TOPICS, sorted(pairs))


def played(
    text: str, of: Subscriptions, down: Container[int] = (), seed: int = 1
) -> Iterator[tuple[InterestChange, bool]]:
    """The changes and whether they were made: not those of peers that are down."""
    changes = parse(text, INTERESTS, "interest").changes(of, RUN, Random(seed))
    made: bool | None = None
    while True:
        try:
            change = changes.send(made)
        except StopIteration:
            return
        made = change.peer not in down
        if made:
            assert (change.topic in of.of(change.peer)) != change.subscribes, "nothing to change"
            (of.add if change.subscribes else of.remove)(change.peer, change.topic)
        yield change, made


def test_interest_of_none_stays() -> None:
    assert not [*played("none", subscribed())]


def test_changes_are_in_order_within_the_run_and_of_one_seed_equal() -> None:
    text = "exponential:20s,pause=5s"
    changes = [change for change, _ in played(text, subscribed())]
    assert all(a.time_us <= b.time_us for a, b in pairwise(changes))
    assert all(0 <= change.time_us < RUN.duration_us for change in changes)
    assert changes == [change for change, _ in played(text, subscribed())]
    assert changes != [change for change, _ in played(text, subscribed(), seed=2)]


def test_subscriptions_last_exponential_times_and_are_replaced_at_once() -> None:
    of = subscribed()
    since: dict[tuple[int, int], int] = {}
    lengths = []
    for change, _ in played("exponential:20s", of):
        pair = change.peer, change.topic
        if change.subscribes:
            since[pair] = change.time_us
            assert len(of.of(change.peer)) == 4
        elif pair in since and since[pair] < RUN.duration_us / 2:
            lengths.append(change.time_us - since.pop(pair))
    # 400 subscriptions for 400 s of 20 s each: 8,000 ends; half of them began in the first half.
    assert abs(len(lengths) - 4000) < 5 * 4000**0.5
    # Those that began in the first half have ten times their mean to end in.
    assert stats.kstest(lengths, stats.expon(scale=20 * INTERVAL).cdf).pvalue > 0.01


@pytest.mark.parametrize("topics", ["popular", "any"])
def test_new_topics_follow_popularity_or_are_equally_likely(topics: str) -> None:
    of = subscribed(1)
    sizes = [len(of.subscribers(topic)) if topics == "popular" else 1 for topic in range(TOPICS)]
    drawn: Counter[int] = Counter()
    expected = [0.0] * TOPICS
    for change, _ in played(f"exponential:5s,topics={topics}", of):
        if change.subscribes:
            drawn[change.topic] += 1
        else:
            left = sum(sizes) - sizes[change.topic]
            for topic in range(TOPICS):
                expected[topic] += (topic != change.topic) * sizes[topic] / left
    assert {topic for topic in range(TOPICS) if not expected[topic]}.isdisjoint(drawn)
    pairs = [(drawn[topic], share) for topic, share in enumerate(expected) if share]
    assert len(pairs) > 10
    assert stats.chisquare(*zip(*pairs, strict=True), sum_check=False).pvalue > 0.01


def test_paused_subscriptions_are_as_many_from_the_start() -> None:
    of = subscribed()
    played_all = played("exponential:20s,pause=10s", of)
    counts = [sum(len(of.of(peer)) for peer in range(RUN.peers)) for _ in played_all]
    # Binomial of 400 with 2/3: a mean of 267, a standard deviation of 9.4.
    assert abs(counts[0] - 267) < 40
    assert abs(sum(counts) / len(counts) - 267) < 8
    assert min(counts) > 220
    assert max(counts) < 310


def test_peer_that_is_down_keeps_its_subscriptions() -> None:
    of = subscribed()
    before = of.of(7)
    made = [*played("exponential:20s", of, down={7})]
    refused = [change for change, was_made in made if not was_made]
    assert len(refused) > 50
    assert all(change.topic in before and not change.subscribes for change in refused)
    assert of.of(7) == before


def test_peer_with_all_topics_keeps_them() -> None:
    everything = Subscriptions(2, 3, [(peer, topic) for peer in range(2) for topic in range(3)])
    assert not [*played("exponential:1s", everything)]


class TestScript:
    def test_lines_are_changes_in_order_of_time(self, tmp_path: Path) -> None:
        path = tmp_path / "interest.csv"
        path.write_text("# later first\n50,7,unsubscribe,news\n1.5s,3,subscribe,arts\n")
        of = Subscriptions(100, 2, [(7, 0)], ["news", "arts"])
        assert [change for change, _ in played(f"script:{path}", of)] == [
            InterestChange(INTERVAL * 3 // 2, 3, 1, True),
            InterestChange(50 * INTERVAL, 7, 0, False),
        ]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("50,7,subscribe", r"interest.csv:1: .*at,peer,action,topic"),
            ("50,7,likes,1", r"interest.csv:1: .*at,peer,action,topic"),
            ("400,7,subscribe,1", "interval 400: .*only 400"),
            ("5,100,subscribe,1", "peer 100; .*0 to 99"),
            ("5,7,subscribe,nonsuch", unknown("topic", "nonsuch")),
        ],
    )
    def test_invalid_line_is_refused_with_the_reason(
        self, tmp_path: Path, line: str, said: str
    ) -> None:
        (tmp_path / "interest.csv").write_text(f"{line}\n")
        with pytest.raises((InputError, UseError, UnknownName), match=said):
            [*played(f"script:{tmp_path}/interest.csv", subscribed())]
