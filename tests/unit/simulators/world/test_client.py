"""Automated clients: what they do and how often."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from scipy import stats

from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.engine.plan import SimulatedWorld
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.client import (
    ALL_WORKLOADS,
    ClientInterest,
    ClientPublications,
    ClientWorkload,
)

INTERVAL = 1_000_000
RUN = Setting(50, 2000 * INTERVAL, INTERVAL)


def client(text: str = "client") -> ClientWorkload:
    made = parse(text, ALL_WORKLOADS, "workload")
    assert isinstance(made, ClientWorkload)
    return made


def test_clients_act_at_their_rate_and_share_it_between_actions() -> None:
    made = client("client:topics=10,every=5s,publish=0.25")
    of = made.subscriptions(50, Random(1))
    published = [*ClientPublications(made).plan_publications(of, RUN, Random(2))]
    changes = []
    for change in ClientInterest(made).changes(of, RUN, Random(3)):
        (of.add if change.subscribes else of.remove)(change.peer, change.topic)
        changes.append(change)
    # 50 peers act 400 times each; a publication in one of four, a standard deviation of 71.
    assert abs(len(published) - 5000) < 300
    # Some find nothing to end or to begin: of 15,000 fewer than one in ten.
    assert 13_000 < len(changes) < 15_000
    assert stats.chisquare(list(Counter(p.publisher for p in published).values())).pvalue > 0.01
    assert {one.topic for one in published} == {None}
    assert {change.topic for change in changes} == {*range(10)}


def test_clients_publish_no_more_than_they_may() -> None:
    made = client("client:every=1s,messages=20")
    of = made.subscriptions(50, Random(1))
    counts = Counter(
        p.publisher for p in ClientPublications(made).plan_publications(of, RUN, Random(2))
    )
    assert counts == dict.fromkeys(range(50), 20)


def test_clients_begin_with_so_many_topics() -> None:
    of = client("client:topics=10,subscriptions=3").subscriptions(50, Random(1))
    assert {len(of.of(peer)) for peer in range(50)} == {3}
    assert not client().subscriptions(5, Random(1)).of(0)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        ({"publications": "every:10"}, "publications 'every:10'"),
        ({"interest": "exponential:5s"}, "interest 'exponential:5s'"),
    ],
)
def test_client_beside_another_model_is_refused(world: dict[str, str], said: str) -> None:
    with pytest.raises(UseError, match=said):
        SimulatedWorld(workload="client", **world)


def test_client_with_more_subscriptions_than_topics_is_refused() -> None:
    with pytest.raises(UseError, match=naming("4 of 3")):
        client("client:topics=3,subscriptions=4")
