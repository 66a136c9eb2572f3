"""Delays between peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import stats

from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.latency import LATENCIES, Delay


def delays(text: str, peers: int = 10, seed: int = 1) -> Delay:
    return parse(text, LATENCIES, "latency").delays(peers, Random(seed))


def written(folder: Path, text: str) -> str:
    (folder / "rtt").write_text(text)
    return f"matrix:{folder}/rtt"


def all_delays(delay: Delay, peers: int) -> list[int]:
    return [delay(one, other) for one, other in combinations(range(peers), 2)]


def test_constant_latency_is_the_same_for_all_pairs() -> None:
    assert set(all_delays(delays("constant:50ms"), 10)) == {50_000}


def test_latency_none_lets_messages_arrive_at_once() -> None:
    assert {delays("none")(one, other) for one in range(5) for other in range(5)} == {0}


def test_uniform_latency_is_drawn_for_every_message() -> None:
    delay = delays("uniform:10ms,high=20ms", seed=3)
    drawn = [delay(1, 2) for _ in range(10_000)]
    assert stats.kstest(drawn, stats.uniform(10_000, 10_000).cdf).pvalue > 0.01
    few = delays("uniform:1us,high=3us")
    counts = Counter(few(1, 2) for _ in range(3000))
    assert set(counts) == {1, 2, 3}
    assert min(counts.values()) > 900
    again = delays("uniform:10ms,high=20ms", seed=3)
    assert [again(1, 2) for _ in range(100)] == drawn[:100]
    assert delays("uniform:5ms,high=5ms")(0, 1) == 5000
    with pytest.raises(UseError, match=naming("low=20ms", "high=10ms")):
        delays("uniform:20ms,high=10ms")


class TestMatrix:
    """Of three sites: 10, 20 and 30 ms of round trip."""

    TEXT = "0 10 20\n10 0 30\n20 30 0\n"

    def test_delay_is_half_of_the_round_trip(self, tmp_path: Path) -> None:
        delay = delays(f"{written(tmp_path, self.TEXT)},unit=ms", peers=3)
        assert sorted(all_delays(delay, 3)) == [5000, 10_000, 15_000]
        assert all(delay(a, b) == delay(b, a) for a, b in combinations(range(3), 2))
        one_way = delays(f"{written(tmp_path, self.TEXT)},unit=s,times=one-way", peers=3)
        assert sorted(all_delays(one_way, 3)) == [10_000_000, 20_000_000, 30_000_000]

    def test_peers_share_sites_when_sites_are_fewer(self, tmp_path: Path) -> None:
        delay = delays(f"{written(tmp_path, self.TEXT)},unit=ms,inside=2ms", peers=7)
        # Sites of 3, 2 and 2 peers, in some order: 3 + 1 + 1 pairs inside, 6 + 6 + 4 between.
        counts = Counter(all_delays(delay, 7))
        assert counts[2000] == 5
        assert sorted(counts[time] for time in (5000, 10_000, 15_000)) == [4, 6, 6]

    @pytest.mark.parametrize("seed", range(4))
    def test_sites_are_drawn_at_random(self, tmp_path: Path, seed: int) -> None:
        """Every arrangement comes up."""
        name = f"{written(tmp_path, self.TEXT)},unit=ms"
        seen = {delays(name, 2, seed=100 * seed + i)(0, 1) for i in range(30)}
        assert seen == {5000, 10_000, 15_000}

    def test_zero_time_is_the_delay_inside_a_site(self, tmp_path: Path) -> None:
        delay = delays(f"{written(tmp_path, '7 0' + chr(10) + '0 7')},unit=s", peers=2)
        assert (delay(0, 1), delay(0, 0)) == (500, 500)

    def test_missing_times_are_refused_or_replaced_on_request(self, tmp_path: Path) -> None:
        name = f"{written(tmp_path, '0 -1' + chr(10) + '-1 0')},unit=ms"
        with pytest.raises(InputError, match=naming("site 1 to 2", "missing=100ms")):
            delays(name)
        assert delays(f"{name},missing=70ms", peers=2)(0, 1) == 70_000
        assert delays(f"{name},missing=1h", peers=2)(0, 1) == 3_600_000_000

    def test_king_file_gives_the_same_delays_as_the_matrix(self, tmp_path: Path) -> None:
        expected = all_delays(delays(f"{written(tmp_path, self.TEXT)},unit=ms", peers=9), 9)
        king = "topology E2EGraph 3\n\nnode 1\nnode 2\nnode 3\n\n1,2 10\n1,3 20\n2,3 30\n"
        assert all_delays(delays(f"{written(tmp_path, king)},unit=ms", peers=9), 9) == expected

    def test_matrix_without_a_unit_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UseError, match=naming("unit")):
            delays(written(tmp_path, self.TEXT))

    def test_planetlab_matrix_has_its_known_delays(
        self, outside_data: Callable[[str], Path]
    ) -> None:
        path = outside_data("planetlab490_rtt_ms_slice1.txt.gz")
        delay = delays(f"matrix:{path},unit=ms", peers=490)
        trips = np.array(all_delays(delay, 490)) / 500
        assert np.mean(trips) == pytest.approx(146.84, abs=0.01)
        assert np.median(trips) == pytest.approx(135.01, abs=0.01)
        assert np.percentile(trips, 95) == pytest.approx(324.9, abs=0.1)

    def test_seattle_matrix_is_refused_unless_asymmetry_is_averaged(
        self, outside_data: Callable[[str], Path]
    ) -> None:
        name = f"matrix:{outside_data('seattle99_rtt_s_slice1.txt.gz')},unit=s"
        with pytest.raises(InputError, match=naming("0.17", "site 1 to 2", "0.12")):
            delays(name)
        delay = delays(f"{name},asymmetric=mean", peers=99)
        measured = np.loadtxt(outside_data("seattle99_rtt_s_slice1.txt.gz"))
        off_diagonal = measured[~np.eye(99, dtype=bool)]
        assert np.mean(all_delays(delay, 99)) / 5e5 == pytest.approx(off_diagonal.mean(), rel=1e-3)
