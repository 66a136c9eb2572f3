"""Churn: the sessions of peers, drawn before a run starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gamma
from random import Random
from typing import Annotated, ClassVar, NamedTuple, Protocol

from msgspec import Meta

from vizpub.model.errors import InputError, UseError
from vizpub.model.wording import amount
from vizpub.simulators.engine.parameters import MOST, Duration, Share, us
from vizpub.simulators.world.availability import Stays, read_availability
from vizpub.simulators.world.scenario import GRAMMAR, Crowd, CrowdEvent, changes, crowd, read_events

_Seconds = Annotated[float, Meta(ge=0, le=MOST)]
_Uptime = Annotated[Duration, Meta(description="Mean length of a session.")]
_Down = Annotated[Duration, Meta(description="Mean time between two sessions.")]
_Crash = Annotated[Share, Meta(description="Share of departures without notice.")]


class Session(NamedTuple):
    """A session of a peer: it is up at t where start_us ≤ t < end_us."""

    peer: int
    start_us: int
    end_us: int | None
    """None: it does not end during the run."""
    crash: bool
    """Whether it ends without notice."""


@dataclass(frozen=True)
class Setting:
    """Size and length of a run."""

    peers: int
    duration_us: int
    interval_us: int

    @property
    def intervals(self) -> int:
        """Number of reporting intervals."""
        return self.duration_us // self.interval_us


class Churn(Protocol):
    """A model of the sessions of peers."""

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """The sessions of one run in the order in which they start; those of a peer do not
        touch or overlap, and start before the run ends.
        """


@dataclass(frozen=True)
class NoChurn:
    """All peers are up for the whole run."""

    example: ClassVar[str] = "none"

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """One session of each peer, from 0."""
        return [Session(peer, 0, None, False) for peer in range(setting.peers)]


@dataclass(frozen=True)
class TraceChurn:
    """The first nodes of an availability trace (.avt), with a window of it scaled to the run."""

    file: Annotated[str, Meta(description="The trace, plain or gzip.")]
    from_: Annotated[
        _Seconds, Meta(description="Start of the window, in seconds of the trace.")
    ] = 0.0
    to: Annotated[
        _Seconds | None, Meta(description="End of the window, in seconds; none: the trace's.")
    ] = None
    crash: _Crash = 1.0
    example: ClassVar[str] = "trace:skype.avt.gz,to=86400"

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """Peer i is up at run time t exactly if the trace's node i (from 0, by lines) is at
        from + t · (to − from) / duration.

        Raises: InputError if the trace cannot be read or has too few nodes, UseError if the
        window is not in it.
        """
        nodes = read_availability(self.file)
        if len(nodes) < setting.peers:
            raise InputError(f"{self.file}: has {len(nodes)} nodes, too few for {setting.peers}")
        start, end = self._window(
            max(node_sessions[-1][1] for node_sessions in nodes if node_sessions)
        )
        return _by_start(
            Session(peer, *stay, crash=stay[1] is not None and random.random() < self.crash)
            for peer, node_sessions in enumerate(nodes[: setting.peers])
            for stay in _scale_stays(node_sessions, (start, end), setting.duration_us)
        )

    def _window(self, end_of_trace: int) -> tuple[int, int]:
        start = round(self.from_ * 1e6)
        end = end_of_trace if self.to is None else round(self.to * 1e6)
        if not start < end <= end_of_trace:
            raise UseError(
                f"churn 'trace': from={start / 1e6:g},to={end / 1e6:g} is not a window of "
                f"{self.file}, which ends at {end_of_trace / 1e6:g} s"
            )
        return start, end


def _scale_stays(
    sessions: Stays, window: tuple[int, int], duration_us: int
) -> Iterator[tuple[int, int | None]]:
    """Sessions in run time, rounded up, which is exact at each whole µs of the run."""
    start, end = window
    joined: list[tuple[int, int]] = []
    for stay in sessions:
        first, last = (-((start - t) * duration_us // (end - start)) for t in stay)
        first, last = max(first, 0), min(last, duration_us)
        if first >= last:
            continue
        if joined and joined[-1][1] >= first:
            first = joined.pop()[0]
        joined.append((first, last))
    for first, last in joined:
        yield first, None if last >= duration_us else last


@dataclass(frozen=True)
class ExponentialChurn:
    """Sessions and times between them are exponential; stationary from time 0."""

    session: _Uptime
    down: _Down
    crash: _Crash = 1.0
    example: ClassVar[str] = "exponential:session=30m,down=10m"

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """Each peer is up at 0 with the probability session / (session + down)."""
        return WeibullChurn(self.session, self.down, 1.0, self.crash).sessions(setting, random)


@dataclass(frozen=True)
class WeibullChurn:
    """Sessions are Weibull, times between them exponential; stationary from time 0.

    The distribution that fits measured sessions best (Stutzbach and Rejaie, IMC 2006).
    """

    session: _Uptime
    down: _Down
    shape: Annotated[
        float, Meta(ge=0.01, le=MOST, description="Below 1: many short, few long.")
    ] = 0.5
    crash: _Crash = 1.0
    example: ClassVar[str] = "weibull:session=30m,down=10m,shape=0.5"

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """Each peer is up at 0 with the probability session / (session + down), and then for
        the rest of a session that began before.
        """
        return _by_start(
            Session(peer, start, end, end is not None and random.random() < self.crash)
            for peer in range(setting.peers)
            for start, end in self._draw_stays(setting.duration_us, random)
        )

    def _draw_stays(self, duration_us: int, random: Random) -> Iterator[tuple[int, int | None]]:
        session, down = us(self.session), us(self.down)
        scale = session / gamma(1 + 1 / self.shape)
        if random.random() * (session + down) < session:
            start, length = 0.0, _residual(scale, self.shape, random)
        else:
            start = random.expovariate(1 / down)
            length = random.weibullvariate(scale, self.shape)
        while start < duration_us:
            first, end = int(start), max(int(start) + 1, int(start + length))
            yield first, end if end < duration_us else None
            start = end + 1 + random.expovariate(1 / down)
            length = random.weibullvariate(scale, self.shape)


def _residual(scale: float, shape: float, random: Random) -> float:
    """The rest of a Weibull session after a random time in it.

    Its distribution is (1/μ) ∫₀ˣ exp(−(u/λ)ᵏ) du = P(1/k, (x/λ)ᵏ), the regularised incomplete
    gamma function: so (x/λ)ᵏ is a gamma variate of shape 1/k.
    """
    return scale * float(random.gammavariate(1 / shape, 1.0) ** (1 / shape))


@dataclass(frozen=True)
class ScriptedChurn:
    """Scripted events at given intervals; peers that join later are down until then."""

    events: Annotated[str, Meta(description=f"{GRAMMAR} or a .toml file of them.")]
    example: ClassVar[str] = "script:join 50 over 20 intervals; kill 30 % at interval 40"

    def __post_init__(self) -> None:
        self._events()

    def _events(self) -> list[CrowdEvent]:
        return read_events(self.events)

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """Each event affects random peers; the other peers are up for the whole run.

        Raises: UseError if an event is after the run or affects more peers than there are.
        """
        events = self._events()
        for event in events:
            if event.at >= setting.intervals or event.at + event.over > setting.intervals:
                most = amount(setting.intervals, "interval")
                raise UseError(f"churn '{event.text}': the run has only {most}")
        people = crowd(events, setting.peers, random)
        return _by_start(_sessions_of(events, setting, people.up, people))


def _sessions_of(
    events: list[CrowdEvent], setting: Setting, up: Iterable[int], people: Crowd
) -> Iterator[Session]:
    since, ended = dict.fromkeys(up, 0), dict[int, int]()
    for time_us, peer, action in changes(events, people, setting.peers, setting.interval_us):
        if action in ("join", "return"):
            # A peer that leaves and returns at the same time was down in between.
            since[peer] = time_us + (ended.get(peer) == time_us)
        elif (start := since.pop(peer)) < time_us:
            ended[peer] = time_us
            yield Session(peer, start, time_us, action == "kill")
    yield from (Session(peer, start, None, False) for peer, start in since.items())


def _by_start(sessions: Iterable[Session]) -> list[Session]:
    return sorted(sessions, key=lambda session: (session.start_us, session.peer))


CHURNS: Mapping[str, type[Churn]] = {
    "none": NoChurn,
    "trace": TraceChurn,
    "exponential": ExponentialChurn,
    "weibull": WeibullChurn,
    "script": ScriptedChurn,
}
