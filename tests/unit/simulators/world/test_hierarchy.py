"""Hierarchies of topics: what peers want, against networkx' descendants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated import Simulated
from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.client import ALL_WORKLOADS
from vizpub.simulators.world.hierarchy import HierarchyWorkload, TreeSubscriptions
from vizpub.simulators.world.interest import Changes, ExponentialInterest, InterestChange


def tree(topics: int, arity: int) -> nx.DiGraph:
    """Each topic leads to its subtopics."""
    if arity == 1:
        return nx.path_graph(topics, nx.DiGraph)
    return nx.full_rary_tree(arity, topics, nx.DiGraph)


def closure(graph: nx.DiGraph, chosen: Iterable[int]) -> set[int]:
    return set().union(*({topic} | nx.descendants(graph, topic) for topic in chosen))


def next_of(changes: Changes, was_made: bool | None) -> InterestChange | None:
    try:
        return changes.send(was_made)
    except StopIteration:
        return None


def subscriptions(text: str, peers: int, seed: int = 1) -> TreeSubscriptions:
    workload = parse(text, ALL_WORKLOADS, "workload")
    assert isinstance(workload, HierarchyWorkload)
    return workload.subscriptions(peers, Random(seed))


@pytest.mark.parametrize(("topics", "arity"), [(1, 3), (8, 1), (31, 2), (40, 3), (17, 5)])
def test_peers_want_their_choices_and_all_that_is_below(topics: int, arity: int) -> None:
    each, graph = min(3, topics), tree(topics, arity)
    of = subscriptions(f"hierarchy:topics={topics},arity={arity},subscriptions={each}", 50)
    assert sorted((above, topic) for topic, above in of.supertopics.items()) == sorted(graph.edges)
    for peer in range(50):
        chosen = of.choices.of(peer)
        assert len({*chosen}) == each
        assert of.of(peer) == sorted(closure(graph, chosen))
    paths = nx.single_source_shortest_path(graph, 0)
    assert of.names == ["/".join(map(str, paths[topic])) for topic in range(topics)]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 12)), max_size=30),
    st.sampled_from([1, 2, 3]),
)
def test_changes_of_choices_keep_what_other_choices_want(
    changed: list[tuple[bool, int, int]], arity: int
) -> None:
    graph, names = tree(13, arity), [str(topic) for topic in range(13)]
    of = TreeSubscriptions(3, names, {topic: above for above, topic in graph.edges}, [])
    chosen: list[set[int]] = [set(), set(), set()]
    for is_more, peer, topic in changed:
        before = closure(graph, chosen[peer])
        if is_more:
            chosen[peer].add(topic)
            told, new = of.add(peer, topic), closure(graph, chosen[peer]) - before
        else:
            chosen[peer].discard(topic)
            told, new = of.remove(peer, topic)[::-1], before - closure(graph, chosen[peer])
        assert sorted(told) == sorted(new)
        # Systems hear of new topics from the top down, and of ended ones from the bottom up.
        assert all((b, a) not in graph.edges for place, a in enumerate(told) for b in told[place:])
    for peer in range(3):
        assert of.choices.of(peer) == sorted(chosen[peer])
        assert of.of(peer) == sorted(closure(graph, chosen[peer]))


@pytest.mark.parametrize("popular", ["root", "leaves", "anywhere"])
def test_popular_topics_are_where_they_are_wanted(popular: str) -> None:
    of = subscriptions(f"hierarchy:subscriptions=1,exponent=1,popular={popular}", 20_000)
    sizes = [len(of.choices.subscribers(topic)) for topic in range(40)]
    total = sum(1 / rank for rank in range(1, 41))
    ranked = sorted(sizes, reverse=True)
    # Five standard deviations of the largest share.
    assert ranked[0] / 20_000 == pytest.approx(1 / total, abs=5 * (0.25 / 20_000) ** 0.5)
    assert (sizes.index(ranked[0]) == 0) == (popular == "root")
    assert (sizes.index(ranked[0]) == 39) == (popular == "leaves")


def test_changes_of_interest_replace_choices_by_their_popularity() -> None:
    """The root has the fewest subscribers, as these want all else, too, but most chose it."""
    of = subscriptions("hierarchy:subscriptions=2,popular=root,exponent=1", 200)
    setting, drawn = Setting(200, 400_000_000, 1_000_000), Counter[int]()
    weights = [len(of.choices.subscribers(topic)) for topic in range(40)]
    assert len(of.subscribers(0)) == weights[0] == max(weights)
    changes = ExponentialInterest("20s").changes(of, setting, Random(1))
    made = None
    while change := next_of(changes, made):
        made = True
        (of.add if change.subscribes else of.remove)(change.peer, change.topic)
        chosen = of.choices.of(change.peer)
        assert of.of(change.peer) == sorted(closure(tree(40, 3), chosen))
        assert len(chosen) == 1 + change.subscribes
        drawn[change.topic] += change.subscribes
    assert drawn.total() > 6000
    assert drawn.most_common(1)[0][0] == 0
    assert {topic for topic in drawn if not weights[topic]} == set()


def test_systems_are_told_all_topics_of_changed_choices(tmp_path: Path) -> None:
    """Peer 0 wants a subtree, then less, then a part of what it still wants, without effect."""
    path = tmp_path / "interest.csv"
    path.write_text(
        "2,0,subscribe,0/1\n3,0,subscribe,0/1/4\n4,0,unsubscribe,0/1\n"
        "5,0,subscribe,0\n6,0,unsubscribe,0/1/4\n7,0,unsubscribe,0/1/4\n"
    )
    run = Simulated(
        "damulticast", peers=20, intervals=10, interest=f"script:{path}",
        workload="hierarchy:topics=13,subscriptions=1,popular=leaves,exponent=20",
    )  # fmt: skip
    topics = [{*reports[0]["topics"]} for reports in run.reports]
    leaf, all_of_them = {"0/3/12"}, set(run.running.subscriptions.names or ())
    subtree = {name for name in all_of_them if f"{name}/".startswith("0/1/")}
    assert topics[1:] == [
        leaf, leaf | subtree, leaf | subtree, leaf | {"0/1/4"}, *[all_of_them] * 5
    ]  # fmt: skip
    result = run.running.result(1, 10)
    assert (result.changed, result.unchanged) == (5, 1)
    of = run.running.subscriptions.of
    assert run.system.wanted == [set(of(peer)) for peer in range(20)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics=3,subscriptions=4", naming("hierarchy", "4 of 3")),
        ("topics=101,arity=1", naming("100", "arity")),
    ],
)
def test_hierarchy_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(UseError, match=said):
        subscriptions(f"hierarchy:{text}", 5)
    assert subscriptions("hierarchy:topics=100,arity=1", 1).topics == 100
