"""daMulticast: gossip in groups beside Erdős and Rényi's limit, and up the hierarchy."""

from __future__ import annotations

from collections import defaultdict
from math import ceil, exp, log
from statistics import fmean
from typing import Any

import pytest

from tests.support.few import few
from tests.support.simulated import Simulated, hit_ratio, relays_per_delivery


def damulticast(**chosen: Any) -> Simulated:
    world = {"peers": 60, "intervals": 30, "workload": "zipf:topics=20,subscriptions=5"}
    publications = {"publications": "every:2,first=15,last=28,from=anyone"}
    return Simulated("damulticast", **{**world, **publications, **chosen})


def test_publications_reach_nearly_all_subscribers_and_nobody_else() -> None:
    """'Preserves processes from receiving messages related to topics they have not subscribed to'
    (abstract).
    """
    run = damulticast()
    assert hit_ratio(run) > 0.995
    assert relays_per_delivery(run) == 0


@pytest.mark.parametrize("more", few([0, 1, 2], [1]))
def test_share_of_messages_that_all_get_follows_the_fanout(more: int) -> None:
    """exp(-S exp(-f)) for a fan-out of f = ln S + c: the trade-off of messages and reliability."""
    one = {"workload": "uniform:topics=1,subscriptions=1", "view": 50}
    run = damulticast(more=more, publications="each:5,first=15,last=28", **one)
    reached = [
        len(copies.keys() - {copy["publisher"] for copy in copies.values()})
        for copies in run.first_copies().values()
    ]
    assert len(reached) > 200
    predicted = exp(-60 * exp(-(ceil(log(60)) + more)))
    assert fmean(count == 59 for count in reached) == pytest.approx(predicted, abs=0.12)


def test_subscribers_of_supertopics_get_publications_of_subtopics() -> None:
    run = damulticast(arity=3, workload="zipf:topics=13,subscriptions=1", reached=3)
    topics = defaultdict(set)
    for report in run.reports[-1]:
        for topic in report["topics"]:
            topics[int(topic)].add(report["peer"])
    first, reached, wanted = run.first_copies(), 0, 0
    for copies in first.values():
        copy = next(iter(copies.values()))
        topic, chain = int(copy["topic"]), set[str]()
        for member in copies:  # nobody that is in no group on the way up
            groups, above = {topic}, topic
            while above:
                above = (above - 1) // 3
                groups.add(above)
            assert any(member in topics[group] for group in groups)
            chain = set().union(*(topics[group] for group in groups))
        wanted += len(chain - {copy["publisher"]})
        reached += len(copies.keys() & chain)
    assert reached / wanted > 0.95


def test_most_is_delivered_under_churn() -> None:
    assert hit_ratio(damulticast(churn="exponential:60s,down=20s,crash=0.5")) > 0.93
