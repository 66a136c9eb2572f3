"""Sessions against the published counts of a trace and against theory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import gamma
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import integrate, stats

from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.churn import CHURNS, Session, Setting
from vizpub.simulators.world.scenario import NO_EVENT

DAY = 86_400
SECOND = 1_000_000
RUN = Setting(2000, 1000 * SECOND, SECOND)
"""1000 intervals of a second."""

# Of the first 2,000 nodes, over one day and over two, and of the first 1,000 over two days:
# at the beginning of every fiftieth interval of 1,000.
ONE_DAY = "132 131 135 144 784 820 835 841 851 887 895 896 873 872 829 600 721 692 686 696"
TWO_DAYS = "132 135 784 835 851 895 873 829 721 686 677 697 783 794 809 829 850 830 716 692"
OF_1000 = "76 76 389 415 426 449 429 418 356 339 342 351 390 399 408 423 428 420 369 356"


def sessions(text: str, setting: Setting = RUN, seed: int = 1) -> list[Session]:
    return parse(text, CHURNS, "churn").sessions(setting, Random(seed))


def up(of: Iterable[Session], time_us: int) -> int:
    return sum(s.start_us <= time_us and (s.end_us is None or time_us < s.end_us) for s in of)


def check(of: Sequence[Session], setting: Setting) -> None:
    """What every model promises."""
    assert of == sorted(of, key=lambda s: (s.start_us, s.peer))
    assert all(0 <= s.start_us < setting.duration_us for s in of)
    assert all(s.end_us is None or s.start_us < s.end_us < setting.duration_us for s in of)
    assert not any(s.crash for s in of if s.end_us is None)
    by_peer: dict[int, list[Session]] = {}
    for session in of:
        by_peer.setdefault(session.peer, []).append(session)
    assert set(by_peer) <= set(range(setting.peers))
    for own in by_peer.values():
        assert all(a.end_us is not None and a.end_us < b.start_us for a, b in pairwise(own))


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "exponential:session=30s,down=10s",
        "weibull:session=30s,down=60s,shape=0.4,crash=0.5",
        "weibull:session=3us,down=2us,shape=0.5",
        "script:join 50 over 20 intervals; kill 30 % at interval 40; return all at interval 60",
        "script:kill all at interval 40; return all at interval 40; kill all at interval 40",
        "script:leave all at interval 40; return all at interval 40",
        "weibull:session=3s,down=2s,shape=0.01",
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sessions_are_in_order_and_apart(text: str, seed: int) -> None:
    is_short = "us," in text
    setting = Setting(50, 500, 5) if is_short else Setting(200, 100 * SECOND, SECOND)
    got = sessions(text, setting, seed)
    check(got, setting)
    assert got == sessions(text, setting, seed), "the same seed gives the same"


def test_peers_are_all_up_without_churn() -> None:
    assert sessions("none", Setting(3, 10, 1)) == [Session(i, 0, None, False) for i in range(3)]


class TestTrace:
    @pytest.fixture
    def skype(self, outside_data: Callable[[str], Path]) -> str:
        return f"trace:{outside_data('skype.avt.gz')}"

    @pytest.mark.parametrize(
        ("peers", "seconds", "expected"),
        [(2000, DAY, ONE_DAY), (2000, 2 * DAY, TWO_DAYS), (1000, 2 * DAY, OF_1000)],
    )
    def test_peers_up_are_as_many_as_in_the_trace(
        self, skype: str, peers: int, seconds: int, expected: str
    ) -> None:
        setting = Setting(peers, RUN.duration_us, SECOND)
        got = sessions(f"{skype},to={seconds}", setting)
        check(got, setting)
        counts = [up(got, interval * SECOND) for interval in range(0, 1000, 50)]
        assert counts == [int(count) for count in expected.split()]

    def test_trace_times_are_exact_in_real_time(self, skype: str) -> None:
        real_time = Setting(2000, 2 * DAY * SECOND, SECOND)
        got = sessions(f"{skype},to={2 * DAY}", real_time)
        assert [up(got, t * SECOND) for t in (0, DAY // 2, DAY)] == [132, 895, 677]

    @pytest.mark.parametrize(("seconds", "peers"), [(172_800, 832), (174_600, 833)])
    def test_distinct_peers_are_as_many_as_in_the_trace(
        self, skype: str, seconds: int, peers: int
    ) -> None:
        got = sessions(f"{skype},to={seconds}", Setting(1000, RUN.duration_us, SECOND))
        assert len({session.peer for session in got}) == peers

    def test_window_may_begin_later_in_the_trace(self, skype: str) -> None:
        got = sessions(f"{skype},from={DAY // 2},to={DAY}")
        assert up(got, 0) == 895
        assert up(got, RUN.duration_us // 2) == 600
        assert min(session.start_us for session in got) == 0

    def test_window_is_the_whole_trace_by_default(self, skype: str) -> None:
        whole = sessions(f"{skype},to=2478200")
        assert sessions(skype) == whole
        assert len(whole) > 25_000

    def test_scaling_is_exact_at_every_microsecond(self, tmp_path: Path) -> None:
        """Against the definition, over a trace that does not divide."""
        (tmp_path / "t.avt").write_text("a 3 1 2 2.5 3 4 7\nb 1 0 7\nc 1 3 5\nd 0\n")
        stays = [[(1, 2), (2.5, 3), (4, 7)], [(0, 7)], [(3, 5)], []]
        setting = Setting(4, 53, 1)
        got = sessions(f"trace:{tmp_path}/t.avt,from=1,to=6.5", setting)
        check(got, setting)
        for t in range(53):
            meant = 1 + t * 5.5 / 53
            assert {s.peer for s in got if s.start_us <= t < (s.end_us or 53)} == {
                i for i, own in enumerate(stays) if any(a <= meant < b for a, b in own)
            }

    def test_stays_joined_by_scaling_are_one_session(self, tmp_path: Path) -> None:
        (tmp_path / "t.avt").write_text("a 2 0 50 51 99\nb 1 0 1000\n")
        got = sessions(f"trace:{tmp_path}/t.avt", Setting(2, 10, 1))
        assert [session[:3] for session in got] == [(0, 0, 1), (1, 0, None)]

    @pytest.mark.parametrize(("share", "few", "many"), [(0.0, 0, 0), (0.3, 0.28, 0.32), (1, 1, 1)])
    def test_crashes_are_a_share_of_departures(
        self, skype: str, share: float, few: float, many: float
    ) -> None:
        got = [s for s in sessions(f"{skype},crash={share}") if s.end_us is not None]
        assert few <= sum(s.crash for s in got) / len(got) <= many

    @pytest.mark.parametrize(
        ("extra", "error", "said"),
        [
            ("", InputError, naming("t.avt", 1, 2000)),
            (",to=7", UseError, naming("from=0,to=7", "t.avt", "6 s")),
            (",from=3,to=3", UseError, "from=3,to=3"),
            (",from=-3", UseError, "from .* 0"),
        ],
    )
    def test_window_or_peers_beyond_the_trace_are_refused(
        self, tmp_path: Path, extra: str, error: type[Exception], said: str
    ) -> None:
        (tmp_path / "t.avt").write_text("a 1 0 6\n")
        setting = RUN if not extra else Setting(1, 10, 1)
        with pytest.raises(error, match=said):
            sessions(f"trace:{tmp_path}/t.avt{extra}", setting)


class TestDistributions:
    """20,000 peers, a mean session of 30 and a mean absence of 10 intervals; fixed seeds."""

    SETTING = Setting(20_000, 100 * SECOND, SECOND)

    @pytest.mark.parametrize(
        "text", ["exponential:session=30s,down=10s", "weibull:session=30s,down=10s,shape=0.5"]
    )
    def test_availability_is_stationary(self, text: str) -> None:
        got = sessions(text, self.SETTING, seed=5)
        counts = [up(got, t * SECOND) for t in (0, 1, 3, 10, 30, 60, 99)]
        # Binomial(20,000, 3/4) has a standard deviation of 61: four of them.
        assert all(abs(count - 15_000) < 250 for count in counts), counts

    @staticmethod
    def lived(text: str, seed: int, seconds: int) -> list[list[Session]]:
        """The sessions of each of 4,000 peers in a run that is long for the first two of each."""
        setting = Setting(4000, seconds * SECOND, SECOND)
        by_peer: list[list[Session]] = [[] for _ in range(setting.peers)]
        for session in sessions(text, setting, seed):
            by_peer[session.peer].append(session)
        return by_peer

    @pytest.mark.parametrize(("shape", "seconds"), [(0.5, 200), (1.0, 60), (2.0, 40)])
    def test_first_sessions_are_residual_and_later_ones_whole(
        self, shape: float, seconds: int
    ) -> None:
        peers = self.lived(f"weibull:session=2s,down=2s,shape={shape}", 6, seconds)
        law = stats.weibull_min(shape, scale=2 * SECOND / gamma(1 + 1 / shape))
        whole = [(own[1].end_us or 0) - own[1].start_us for own in peers]
        assert stats.kstest(whole, law.cdf).pvalue > 0.01
        residual = [own[0].end_us or 0 for own in peers if own[0].start_us == 0]
        # The equilibrium law F(x) = ∫₀ˣ S(u) du / mean, integrated by the trapezoidal rule.
        grid = np.linspace(0, 200 * SECOND, 200_001)
        law_of_rest = integrate.cumulative_trapezoid(law.sf(grid), grid, initial=0) / law.mean()
        assert law_of_rest[-1] == pytest.approx(1, abs=1e-3)
        assert stats.kstest(residual, lambda x: np.interp(x, grid, law_of_rest)).pvalue > 0.01

    def test_absences_are_exponential(self) -> None:
        peers = self.lived("weibull:session=2s,down=3s,shape=0.5", 7, 160)
        gaps = [own[1].start_us - (own[0].end_us or 0) for own in peers]
        assert stats.kstest(gaps, stats.expon(scale=3 * SECOND).cdf).pvalue > 0.01

    def test_exponential_equals_weibull_of_shape_1(self) -> None:
        exponential = sessions("exponential:session=30s,down=10s,crash=.5")
        assert exponential == sessions("weibull:session=30s,down=10s,shape=1,crash=.5")
        crashes = [s.crash for s in exponential if s.end_us is not None]
        assert sum(crashes) / len(crashes) == pytest.approx(0.5, abs=0.01)


class TestScript:
    RUN = Setting(1000, 1000 * SECOND, SECOND)

    def test_killed_peers_crash_and_return_as_scripted(self) -> None:
        text = "script:kill 30 % at interval 400; return all over 100 intervals at interval 500"
        got = sessions(text, self.RUN)
        counts = [up(got, interval * SECOND) for interval in (0, 399, 400, 499, 550, 600, 999)]
        assert counts == [1000, 1000, 700, 700, 851, 1000, 1000]
        assert sum(session.crash for session in got) == 300

    def test_joining_peers_come_up_evenly_over_the_intervals(self) -> None:
        got = sessions("script:join 500 over 20 intervals", self.RUN)
        counts = [up(got, interval * SECOND) for interval in range(0, 25)]
        assert counts == [min(501 + 25 * interval, 1000) for interval in range(25)]

    def test_leaving_peers_do_not_crash_and_killed_peers_do(self) -> None:
        got = sessions("script:leave 10 at interval 3; kill 5 at interval 4", self.RUN)
        ended = [(s.end_us, s.crash) for s in got if s.end_us is not None]
        assert sorted(ended) == [(3 * SECOND, False)] * 10 + [(4 * SECOND, True)] * 5

    def test_peers_joining_and_crashing_at_once_have_no_session(self) -> None:
        got = sessions("script:join all at interval 2; kill all at interval 2", self.RUN)
        assert got == []

    @pytest.mark.parametrize("text", ["kill 3 at interval 1000", "join 5 over 1001 intervals"])
    def test_event_after_the_run_is_refused(self, text: str) -> None:
        with pytest.raises(UseError, match=naming(text, "1,000 intervals")):
            sessions(f"script:{text}", self.RUN)

    def test_invalid_event_is_refused_when_the_script_is_parsed(self) -> None:
        with pytest.raises(UseError, match=f"'eat 3' {NO_EVENT}"):
            parse("script:eat 3", CHURNS, "churn")
