"""Scripted events for many peers: 'kill 30 % at interval 400'."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from random import Random
from typing import Literal, NamedTuple

from vizpub.machine.files import toml_of
from vizpub.model.errors import InputError, UseError
from vizpub.model.wording import amount
from vizpub.simulators.engine.files import find_file

NO_EVENT = "is not an event"
MORE_THAN_ALL = "is more than all"

_Action = Literal["join", "leave", "kill", "return"]
_EVENT = re.compile(
    r"(?P<action>join|leave|kill|return) +(?P<many>all|[0-9]+(\.[0-9]+)? *%|[0-9]+)"
    r"( +at +interval +(?P<at>[0-9]+)(?!.* at )"
    r"| +over +(?P<over>[0-9]+) +intervals?(?!.* over )){0,2}"
)
GRAMMAR = "join|leave|kill|return N|P %|all [at interval I] [over K intervals]; …"


@dataclass(frozen=True)
class CrowdEvent:
    """An event of many peers, at once or evenly spread over some intervals."""

    text: str
    action: _Action
    share: float
    """Share of the candidates; 0 if a number is given."""
    number: int
    at: int
    over: int

    def count(self, of: int) -> int:
        """Number of affected peers. Raises: UseError if there are too few."""
        count = int(self.share * of + 0.5) or self.number
        if count > of:
            raise UseError(f"churn '{self.text}': only {amount(of, 'peer')} left to {self.action}")
        return count


class PresenceChange(NamedTuple):
    """A peer comes up (join, return) or goes down (leave, kill)."""

    time_us: int
    peer: int
    action: _Action


def read_events(text: str) -> list[CrowdEvent]:
    """Events separated by semicolons, or those of a TOML file: `events = ["kill 30 %", …]`.

    Raises: InputError if the file cannot be read, UseError for an invalid event.
    """
    texts = _of_file(text) if text.endswith(".toml") else text.split(";")
    return [_event(one.strip()) for one in texts if one.strip()]


def _of_file(name: str) -> list[str]:
    try:
        events = toml_of(find_file(name)).get("events")
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: is not TOML: {error}") from error
    if not isinstance(events, list) or not all(isinstance(one, str) for one in events):
        raise InputError(f'{name}: has no events = ["kill 30 % at interval 400", …]')
    return events


def _event(text: str) -> CrowdEvent:
    match = _EVENT.fullmatch(text)
    if match is None:
        raise UseError(f"churn '{text}' {NO_EVENT} such as 'kill 30 % at interval 400'")
    many = match["many"]
    share = 1.0 if many == "all" else float(many[:-1]) / 100 if many.endswith("%") else 0.0
    number = int(many) if many.isdecimal() else 0
    at, over = int(match["at"] or 0), int(match["over"] or 0)
    if share > 1:
        raise UseError(f"churn '{text}': {many} {MORE_THAN_ALL}")
    return CrowdEvent(text, match["action"], share, number, at, over)  # type: ignore[arg-type]


@dataclass
class Crowd:
    """Peers that have not joined yet, that are up, and that have left."""

    random: Random
    absent: list[int]
    up: list[int]
    gone: list[int] = field(default_factory=list)

    def candidates(self, action: _Action) -> list[int]:
        """The peers to which the action applies."""
        return {"join": self.absent, "return": self.gone}.get(action, self.up)

    def move(self, action: _Action) -> int:
        """Apply the action to a random candidate; returns it."""
        candidates = self.candidates(action)
        place = self.random.randrange(len(candidates))
        candidates[place], candidates[-1] = candidates[-1], candidates[place]
        peer = candidates.pop()
        (self.up if action in ("join", "return") else self.gone).append(peer)
        return peer


def crowd(events: Sequence[CrowdEvent], peers: int, random: Random) -> Crowd:
    """The state of all peers at the start: peers that join later are down.

    Raises: UseError if more peers join than there are.
    """
    joining = [event.count(peers) for event in events if event.action == "join"]
    if sum(joining) > peers:
        raise UseError(f"churn: {sum(joining)} peers join, but there are only {peers}")
    shuffled = random.sample(range(peers), peers)
    return Crowd(random, shuffled[: sum(joining)], sorted(shuffled[sum(joining) :]))


def changes(
    events: Sequence[CrowdEvent], people: Crowd, peers: int, interval_us: int
) -> Iterator[PresenceChange]:
    """The changes of peers in order of time. A share is of the candidates when the event begins;
    for `join` it is of all peers.

    Raises: UseError if there are too few candidates.
    """
    queue = [(event.at * interval_us, order, event, -1) for order, event in enumerate(events)]
    heapify(queue)
    while queue:
        time_us, order, event, count = heappop(queue)
        if count < 0:
            of = peers if event.action == "join" else len(people.candidates(event.action))
            count = event.count(of)
            if event.over:
                for step in range(count):
                    later = time_us + step * event.over * interval_us // count
                    heappush(queue, (later, order, event, 1))
                continue
        for _ in range(count):
            if not people.candidates(event.action):
                raise UseError(f"churn '{event.text}': no peer is left to {event.action}")
            yield PresenceChange(time_us, people.move(event.action), event.action)
