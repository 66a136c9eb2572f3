"""Who subscribes to what: against the graphs, the laws and the published sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from random import Random
from statistics import mean

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.subscriptions import WORKLOADS, ScribeGroups, Subscriptions


def subscriptions(text: str, peers: int, seed: int = 1) -> Subscriptions:
    return parse(text, WORKLOADS, "workload").subscriptions(peers, Random(seed))


def pairs(of: Subscriptions) -> set[tuple[int, int]]:
    return {(peer, topic) for peer in range(of.peers) for topic in of.of(peer)}


def sizes(of: Subscriptions) -> list[int]:
    return [len(of.subscribers(topic)) for topic in range(of.topics)]


changes = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 6)))


class TestSubscriptions:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6))), changes)
    def test_subscriptions_equal_a_set_of_pairs_after_changes(
        self, start: list[tuple[int, int]], changed: list[tuple[bool, int, int]]
    ) -> None:
        of = Subscriptions(5, 7, start)
        expected = set(start)
        for is_more, peer, topic in changed:
            if is_more:
                of.add(peer, topic)
                expected.add((peer, topic))
            else:
                of.remove(peer, topic)
                expected.discard((peer, topic))
        assert pairs(of) == expected
        for peer in range(5):
            assert of.of(peer) == sorted(t for p, t in expected if p == peer)
        for topic in range(7):
            assert of.subscribers(topic) == {p for p, t in expected if t == topic}

    def test_topics_of_a_peer_are_a_copy(self) -> None:
        of = Subscriptions(1, 2, [(0, 1)])
        of.of(0).append(0)
        assert of.of(0) == [1]


@pytest.mark.parametrize("line", ["0," + "n" * 140_000, "9" * 5_000 + ",news"])
def test_absurd_line_of_a_file_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "who.csv").write_text(f"0,news\n{line}\n")
    with pytest.raises(InputError, match=r"who\.csv:2: "):
        subscriptions(f"file:{tmp_path}/who.csv", 9)


class TestFriends:
    def test_friends_subscribe_to_each_other(self, tmp_path: Path) -> None:
        (tmp_path / "friends").write_text("7 8\n8 9\n")
        of = subscriptions(f"friends:{tmp_path}/friends", 3)
        (middle,) = [peer for peer in range(3) if len(of.of(peer)) == 2]
        assert pairs(of) == {
            p for other in {0, 1, 2} - {middle} for p in permutations((middle, other))
        }

    @pytest.mark.parametrize("sample", ["random", "connected"])
    def test_sample_is_an_induced_subgraph(
        self, outside_data: Callable[[str], Path], sample: str
    ) -> None:
        """Relabelled users cannot be told apart: so are degrees, triangles and components."""
        path = outside_data("facebook_combined_relabelled.txt.gz")
        of = subscriptions(f"friends:{path},sample={sample}", 1000, seed=2)
        sampled = nx.DiGraph(sorted(pairs(of)))
        assert sampled.number_of_edges() == sum(sizes(of)) == 2 * nx.Graph(sampled).size()
        assert all(topic not in of.of(topic) for topic in range(1000))
        assert nx.is_connected(nx.Graph(sampled)) == (sample == "connected")
        # Who has no friend in the sample has no subscriptions, and nobody has him.
        alone = [peer for peer in range(1000) if not of.of(peer)]
        assert all(not of.subscribers(topic) for topic in alone)
        assert bool(alone) == (sample == "random")

    def test_network_of_all_users_has_its_known_counts(
        self, outside_data: Callable[[str], Path]
    ) -> None:
        path = outside_data("facebook_combined_relabelled.txt.gz")
        whole = nx.Graph(sorted(pairs(subscriptions(f"friends:{path}", 4039))))
        assert whole.number_of_edges() == 88_234
        assert max(degree for _, degree in whole.degree()) == 1045
        assert sum(nx.triangles(whole).values()) == 3 * 1_612_010

    def test_sample_larger_than_the_network_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "friends").write_text("7 8\n8 9\n")
        with pytest.raises(UseError, match=naming("4 peers", "3 users")):
            subscriptions(f"friends:{tmp_path}/friends", 4)


class TestFollows:
    @pytest.mark.parametrize("follower", ["first", "second"])
    def test_follower_subscribes_to_the_followed_users(self, tmp_path: Path, follower: str) -> None:
        """A star: user 0 is named first with five others."""
        (tmp_path / "follows").write_text("\n".join(f"0 {user}" for user in range(1, 6)))
        of = subscriptions(f"follows:{tmp_path}/follows,follower={follower}", 6)
        counts = sorted(len(of.of(peer)) for peer in range(6))
        assert counts == ([0, 0, 0, 0, 0, 5] if follower == "first" else [0, 1, 1, 1, 1, 1])

    def test_twitter_subscriptions_have_their_known_counts(
        self, outside_data: Callable[[str], Path]
    ) -> None:
        """Few users have many followers, hardly any user follows nobody."""
        path = outside_data("twitter_follow_bofa_careers.edges.gz")
        of = subscriptions(f"follows:{path}", 13_688)
        assert sum(sizes(of)) == 68_328
        assert max(sizes(of)) == 3469
        assert sum(not of.of(peer) for peer in range(13_688)) == 692
        assert nx.overall_reciprocity(nx.DiGraph(sorted(pairs(of)))) == pytest.approx(
            0.315, abs=5e-4
        )


class TestLaws:
    @pytest.mark.parametrize("text", ["zipf", "uniform"])
    def test_peers_have_equally_many_distinct_subscriptions(self, text: str) -> None:
        of = subscriptions(f"{text}:topics=30,subscriptions=7", 500)
        assert {len(set(of.of(peer))) for peer in range(500)} == {7}
        full = subscriptions(f"{text}:topics=7,subscriptions=7", 3)
        assert full.of(2) == list(range(7))
        with pytest.raises(UseError, match=naming("8 of 7")):
            subscriptions(f"{text}:topics=7,subscriptions=8", 3)

    def test_single_subscriptions_follow_zipfs_law(self) -> None:
        of = subscriptions("zipf:topics=50,subscriptions=1,exponent=0.8", 50_000)
        weights = [rank**-0.8 for rank in range(1, 51)]
        expected = [50_000 * weight / sum(weights) for weight in weights]
        assert stats.chisquare(sizes(of), expected).pvalue > 0.01

    def test_pairs_of_subscriptions_are_drawn_without_replacement(self) -> None:
        """P(i) = w_i + Σ_j w_j · w_i / (1 − w_j), by hand."""
        of = subscriptions("zipf:topics=4,subscriptions=2,exponent=1", 100_000)
        total = 1 + 1 / 2 + 1 / 3 + 1 / 4
        weights = [1 / rank / total for rank in range(1, 5)]
        for topic, own in enumerate(weights):
            others = (w * own / (1 - w) for other, w in enumerate(weights) if other != topic)
            expected = own + sum(others)
            # Five standard deviations of a share of 100,000.
            assert len(of.subscribers(topic)) / 1e5 == pytest.approx(expected, abs=0.008)

    def test_communities_share_topics_and_change_no_popularity(self) -> None:
        text = "zipf:topics=20,subscriptions=1,exponent=0.8,communities=10,alike"
        weights = [rank**-0.8 for rank in range(1, 21)]
        share = weights[0] / sum(weights)
        drawn = [len(subscriptions(f"{text}=0.5", 40, seed).subscribers(0)) for seed in range(200)]
        # At least as many independent draws as communities; five standard deviations.
        near = 5 * (share * (1 - share) / 2_000) ** 0.5
        assert sum(drawn) / 8_000 == pytest.approx(share, abs=near)
        of = subscriptions(f"{text}=1", 40)
        assert [of.of(peer) for peer in range(40)] == [of.of(peer % 10) for peer in range(40)]

    def test_members_of_a_community_have_more_topics_in_common(self) -> None:
        of = subscriptions("zipf:topics=50,subscriptions=5,communities=20", 400)
        common: dict[bool, list[int]] = {True: [], False: []}
        for a, b in combinations(range(400), 2):
            common[a % 20 == b % 20].append(len({*of.of(a)} & {*of.of(b)}))
        alone = subscriptions("zipf:topics=50,subscriptions=5", 400)
        apart = [len({*alone.of(a)} & {*alone.of(b)}) for a, b in combinations(range(400), 2)]
        assert mean(common[True]) > 3 * mean(common[False])
        assert mean(common[False]) == pytest.approx(mean(apart), rel=0.1)

    def test_uniform_subscriptions_are_uniform(self) -> None:
        of = subscriptions("uniform:topics=50,subscriptions=5", 20_000)
        # Drawn without putting back, counts vary by 9/10 of a multinomial's variance.
        assert stats.chisquare(sizes(of), [2000] * 50).statistic < stats.chi2(49).ppf(0.99)

    @pytest.mark.parametrize("text", ["zipf", "uniform", "scribe:groups=20"])
    def test_subscriptions_of_one_seed_are_the_same(self, text: str) -> None:
        assert pairs(subscriptions(text, 60, 3)) == pairs(subscriptions(text, 60, 3))
        assert pairs(subscriptions(text, 60, 3)) != pairs(subscriptions(text, 60, 4))


class TestScribe:
    def test_group_sizes_equal_the_published_ones(self) -> None:
        published = ScribeGroups().sizes(100_000)
        assert (len(published), sum(published)) == (1500, 395_247)
        assert (max(published), min(published)) == (100_000, 11)

    def test_subscriptions_have_the_group_sizes(self) -> None:
        of = subscriptions("scribe:groups=40", 200)
        assert sizes(of) == ScribeGroups(groups=40).sizes(200)
        assert sizes(of)[:3] == [200, 84, 51]


class TestFile:
    def test_topics_keep_their_names(self, tmp_path: Path) -> None:
        (tmp_path / "s.csv").write_text('peer,topic\n2,news\n0,"a,b"\n2,7\n0,news\n2,news\n')
        of = subscriptions(f"file:{tmp_path}/s.csv", 4)
        assert of.names == ["news", "a,b", "7"]
        assert pairs(of) == {(2, 0), (0, 1), (2, 2), (0, 0)}

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("4,news", "s.csv:2: .*0 to 3"),
            ("x,news", "s.csv:2: 'x,news' .*peer,topic"),
            ("1", "s.csv:2: '1' .*peer,topic"),
            ("1,", "s.csv:2: '1,' .*peer,topic"),
            ("1,a,b", "s.csv:2: '1,a,b' .*peer,topic"),
            ("1,a\x07b", "s.csv:2: 'topic'"),
        ],
    )
    def test_invalid_line_is_refused_with_its_number(
        self, tmp_path: Path, line: str, said: str
    ) -> None:
        (tmp_path / "s.csv").write_text(f"0,news\n{line}\n")
        with pytest.raises(InputError, match=said):
            subscriptions(f"file:{tmp_path}/s.csv", 4)
