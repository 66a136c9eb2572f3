"""daMulticast: gossip in groups beside Erdős and Rényi's limit, and up the hierarchy."""

from __future__ import annotations

from collections.abc import Collection
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


def chosen(topics: Collection[str]) -> set[str]:
    """Those whose supertopic is not one of them, by their names: 0/1 is below 0."""
    return {topic for topic in topics if topic.rpartition("/")[0] not in topics}


@pytest.mark.parametrize("upward", few([1, 2, 5], [1]))
def test_share_of_messages_that_reach_the_supertopic_follows_its_members(upward: int) -> None:
    """1 - (1 - g/S (1 - (1 - a/z)^z))^S of the messages that a member of the subtopic publishes."""
    run = damulticast(
        workload="hierarchy:topics=2,arity=1,subscriptions=1,popular=leaves,exponent=1",
        publications="each:12,first=15,last=28",
        upward=upward,
        intervals=32,
    )
    topics = {report["peer"]: report["topics"] for report in run.reports[-1]}
    root = {peer for peer, of in topics.items() if "0" in of}
    below = topics.keys() - root
    reached = [
        bool(copies.keys() & root)
        for copies in run.first_copies().values()
        if next(iter(copies.values()))["publisher"] in below
    ]
    assert len(reached) > 400
    predicted = 1 - (1 - upward / len(below) * (1 - (2 / 3) ** 3)) ** len(below)
    assert fmean(reached) == pytest.approx(predicted, abs=0.08)


@pytest.mark.parametrize("from_", ["subscriber", "anyone"])
def test_publications_climb_to_all_that_want_them_and_to_nobody_else(from_: str) -> None:
    publications = f"every:2,first=15,last=28,from={from_}"
    run = damulticast(workload="hierarchy:topics=13", reached=3, publications=publications)
    assert hit_ratio(run) > 0.99
    assert relays_per_delivery(run) == 0


def test_publications_on_topics_without_a_group_begin_in_the_one_above() -> None:
    run = damulticast(workload="hierarchy:topics=4,arity=1,subscriptions=1,popular=root,exponent=9")
    assert {report["topics"][0] for report in run.reports[-1]} == {"0"}
    published = {
        copy["topic"] for copies in run.first_copies().values() for copy in copies.values()
    }
    assert "0/1/2/3" in published
    assert hit_ratio(run) > 0.99


def test_peers_are_in_the_groups_of_their_topmost_topics_alone() -> None:
    run = damulticast(
        workload="hierarchy:topics=13",
        interest="exponential:20s,pause=5s",
        churn="exponential:60s,down=20s,crash=0.5",
    )
    names = run.running.subscriptions.names or ()
    for reports in run.reports:
        for report in reports:
            links = report.get("neighbors", ())
            groups = {link["topic"] for link in links if link["layer"] == "group"}
            assert groups <= chosen(report.get("topics", ()))
    for report in run.reports[-1]:
        if not report.get("left"):
            groups = {names[topic] for topic in run.system.sampling.of[int(report["peer"])]}
            assert groups == chosen(report["topics"])


def test_messages_are_for_the_same_peers_as_those_of_flat_systems() -> None:
    world = {"workload": "hierarchy:topics=13", "publications": "every:4,first=15,last=28"}

    def wanted(system: str) -> dict[str, tuple[str, str, frozenset[str]]]:
        of = {}
        for reports in Simulated(system, peers=60, intervals=30, **world).reports:
            for report in reports:
                for copy in report["sent"]:
                    if not copy["hops"]:
                        there = {one["peer"] for one in reports if copy["topic"] in one["topics"]}
                        of[copy["message"]] = copy["topic"], copy["publisher"], frozenset(there)
        return of

    assert len(wanted("damulticast")) > 40
    assert wanted("damulticast") == wanted("gossipsub") == wanted("scribe")


def test_most_is_delivered_under_churn() -> None:
    assert hit_ratio(damulticast(churn="exponential:60s,down=20s,crash=0.5")) > 0.93
