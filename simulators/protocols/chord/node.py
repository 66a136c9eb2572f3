"""The state of one Chord peer, and the next hop for a key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.routing import NOBODY


class NextHop(NamedTuple):
    """Where a message for a key goes next."""

    to: int
    is_owner: bool
    """Whether that peer is the key's owner, as far as this one knows."""


class _Routes(NamedTuple):
    """The peers that are not doubted by their distance from this peer's id, nearest first."""

    near: Sequence[int]
    heirs: Sequence[int]
    """The successor list, and its distances in `near`."""
    far: Sequence[int]
    peers: Sequence[int]
    """Successors and fingers, and their distances in `far`."""
    others: int
    """Up to that distance no key can be this peer's, or the predecessor's."""


class ChordNode:
    """The state of a peer (Stoica et al. 2003, section IV): predecessor, successor list, fingers,
    and suspected peers.

    Finger i = 0 … bits − 1 is the first peer from own + 2^i on. `fingers` has those whose start is
    behind the successor; the others are the successor.
    """

    __slots__ = (
        *("bound", "claimant", "doubted", "failed", "fingers", "is_placed", "is_ready", "next"),
        *("peer", "predecessor", "ring", "room", "second", "successors", "version", "waiting"),
        *("_followed", "_ids", "_mask", "_own", "_routes"),
    )

    def __init__(self, ring: ChordRing, peer: int, room: int) -> None:
        self.ring, self.peer, self.room = ring, peer, room
        self._ids, self._own, self._mask = ring.ids, ring.ids[peer], ring.size - 1
        self.predecessor = NOBODY
        self.bound: int | None = None
        """The id after which the peer's keys begin: that of its last predecessor. It stays when
        the predecessor is lost, until there is another one.
        """
        self.second = NOBODY
        """The predecessor's predecessor, which takes its place when it is lost."""
        self.claimant = NOBODY
        """Who last said to be the predecessor, though the known one is nearer."""
        self.successors: list[int] = []
        """Nearest first; none in a ring of one."""
        self.fingers: dict[int, int] = {}
        self.next = 0
        """The finger that was looked up last."""
        self.doubted: set[int] = set()
        """Peers that did not acknowledge a message; not used for routes until they answer."""
        self.failed: dict[int, int] = {}
        """Peers that did not answer, and the time until which nobody's word makes up for it."""
        self.is_placed = False
        """Whether it knows its successor."""
        self.is_ready = False
        """Whether its first fingers are there, so that it routes well."""
        self.waiting: list[Callable[[], None]] = []
        """Questions of others that arrived before it was placed."""
        self.version = object()
        self._routes: _Routes | None = None
        self._followed: tuple[int, Sequence[int]] | None = None
        """The successor and its list that this peer's list was made from."""

    @property
    def successor(self) -> int:
        """The next peer on the ring; the peer itself in a ring of one."""
        return self.successors[0] if self.successors else self.peer

    @property
    def is_alone(self) -> bool:
        """True in a ring of one."""
        return not self.successors

    def offset(self, peer: int) -> int:
        """Distance of another peer, clockwise from this one."""
        return (self._ids[peer] - self._own) & self._mask

    def start(self, finger: int) -> int:
        """The id from which on that finger is the first peer."""
        return (self._own + (1 << finger)) & self._mask

    def needed_fingers(self) -> range:
        """The fingers whose start is not in (own, successor]."""
        if not self.successors:
            return range(0)
        return range(self.offset(self.successors[0]).bit_length(), self.ring.bits)

    # Routing.

    def owns(self, key: int) -> bool:
        """Return True if the key is in (predecessor, own]; in a ring of one, every key. While the
        predecessor is doubted, its keys are this peer's.
        """
        if not self.successors:
            return True
        bound = self.bound
        if self.predecessor in self.doubted and self.second != NOBODY:
            bound = self._ids[self.second]
        if bound is None:
            return key == self._own
        return (self._own - key) & self._mask < (self._own - bound) & self._mask

    def next_hop(self, key: int, avoid: Sequence[int] = ()) -> NextHop:
        """The next hop for a key: its owner, if it is this peer or in the successor list, otherwise
        the closest peer that precedes it.
        """
        routes = self._routes_without(avoid)
        offset = (key - self._own) & self._mask
        if not 0 < offset <= routes.others:
            if self.owns(key):
                return NextHop(self.peer, True)
            if self._is_of_predecessor(key) and self.predecessor not in avoid:
                return NextHop(self.predecessor, True)
        place = bisect_left(routes.near, offset)
        if place < len(routes.heirs):
            return NextHop(routes.heirs[place], True)
        place = bisect_left(routes.far, offset)
        if place:
            return NextHop(routes.peers[place - 1], False)
        return self._last_resort()

    def _is_of_predecessor(self, key: int) -> bool:
        """Return True if the key is in (second, predecessor]. Its sender may think that the
        predecessor is down, which the next message to it shows.
        """
        if NOBODY in (self.second, self.predecessor):
            return False
        owner = self._ids[self.predecessor]
        return (owner - key) & self._mask < (owner - self._ids[self.second]) & self._mask

    def _last_resort(self) -> NextHop:
        """All others are doubted: a message waits at the successor until that is known as dead."""
        return NextHop(self.successor, True)

    def nearer_predecessor(self, key: int, avoid: Sequence[int]) -> int:
        """The predecessor, if it is nearer to the key than this peer and so its owner; otherwise
        NOBODY.
        """
        other = self.predecessor
        if other == NOBODY or other in self.doubted or other in avoid:
            return NOBODY
        to_it = (self._ids[other] - key) & self._mask
        return other if to_it < (self._own - key) & self._mask else NOBODY

    def _routes_without(self, avoid: Sequence[int]) -> _Routes:
        if avoid:
            return self._make_routes({*avoid, *self.doubted})
        if self._routes is None:
            self._routes = self._make_routes(self.doubted)
        return self._routes

    def _make_routes(self, avoided: set[int]) -> _Routes:
        heirs = [peer for peer in self.successors if peer not in avoided]
        offsets = {peer: self.offset(peer) for peer in self.known_peers() if peer not in avoided}
        peers = sorted(offsets, key=offsets.__getitem__)
        near, far = [offsets[peer] for peer in heirs], [offsets[peer] for peer in peers]
        return _Routes(near, heirs, far, peers, self._others())

    def _others(self) -> int:
        """See _Routes.others: where the keys of the predecessor begin, if both are known."""
        if NOBODY in (self.second, self.predecessor) or not self.successors:
            return 0
        begin = self.offset(self.second)
        return begin if begin < self.offset(self.predecessor) else 0

    # What it knows.

    def known_peers(self) -> list[int]:
        """The distinct successors and fingers."""
        peers = dict.fromkeys([*self.successors, *self.fingers.values()])
        peers.pop(self.peer, None)
        return list(peers)

    def knows(self, peer: int) -> bool:
        """Return True if the peer is in the state."""
        return peer == self.predecessor or peer in self.successors or peer in self.fingers.values()

    def distinct_fingers(self) -> list[int]:
        """The distinct peers that are fingers, nearest first."""
        peers = dict.fromkeys([self.successor, *(p for _, p in sorted(self.fingers.items()))])
        peers.pop(self.peer, None)
        return list(peers)

    def reset_routes(self) -> None:
        """Compute the routes again when they are next used, and tell users of `version`."""
        self.version = object()
        self._routes = None

    def doubt(self, peer: int) -> None:
        """Do not use the peer for routes."""
        self.doubted.add(peer)
        self._routes = None

    def trust(self, peer: int) -> None:
        """Use the peer for routes again, as it has answered."""
        self.failed.pop(peer, None)
        if peer in self.doubted:
            self.doubted.discard(peer)
            self._routes = None

    def adopt_successors(self, peers: Iterable[int], now_us: int) -> bool:
        """Add to the successor list those of the peers that did not fail recently, and keep the
        nearest; returns whether the successor changed.
        """
        old_successor = self.successor
        able = {
            peer
            for peer in (*self.successors, *peers)
            if peer != self.peer and self.failed.get(peer, 0) <= now_us
        }
        nearest = sorted(able, key=self.offset)[: self.room]
        return self._replace_successors(nearest) and self.successor != old_successor

    def follow(self, successor: int, theirs: Sequence[int], now_us: int) -> None:
        """Replace the list by the successor and its list, unless they are as last time."""
        if self._followed == (successor, theirs) and not self.failed:
            return
        able = [p for p in theirs if p != self.peer and self.failed.get(p, 0) <= now_us]
        nearest = sorted({successor, *able}, key=self.offset)
        self._replace_successors(nearest[: self.room])
        self._followed = None if self.failed else (successor, theirs)

    def _replace_successors(self, successors: list[int]) -> bool:
        if successors == self.successors:
            return False
        self.successors, self._followed = successors, None
        needed = self.needed_fingers()
        for finger in [finger for finger in self.fingers if finger not in needed]:
            del self.fingers[finger]
        self.reset_routes()
        return True

    def set_predecessor(self, peer: int, second: int = NOBODY) -> None:
        """Set the predecessor, and its own one; the peer is responsible for the keys after it."""
        self.predecessor, self.bound, self.claimant = peer, self._ids[peer], NOBODY
        self.set_second(second)
        self.reset_routes()

    def set_second(self, peer: int) -> None:
        """Set the predecessor's predecessor, unless that is this peer, in a ring of two."""
        second = peer if peer not in (self.peer, self.predecessor, *self.failed) else NOBODY
        if second != self.second:
            self.second, self._routes = second, None

    def set_finger(self, finger: int, peer: int) -> int:
        """Set a finger, and those after it that begin before the peer; returns the last one."""
        reach = self.offset(peer) or self.ring.size - 1
        last = max(finger, reach.bit_length() - 1)
        needed = self.needed_fingers()
        for one in range(finger, last + 1):
            if self.fingers.get(one) != peer and one in needed:
                self.fingers[one] = peer
                self.reset_routes()
        return last

    def remove(self, peer: int) -> None:
        """Forget a peer. Without any successor the nearest known peer becomes the successor."""
        self.doubted.discard(peer)
        if self.second == peer:
            self.second = NOBODY
        if self.predecessor == peer:
            self.predecessor = NOBODY
            if self.second != NOBODY:
                self.set_predecessor(self.second)
        if self.claimant == peer:
            self.claimant = NOBODY
        lost_fingers = [finger for finger, other in self.fingers.items() if other == peer]
        for finger in lost_fingers:
            del self.fingers[finger]
        remaining = [other for other in self.successors if other != peer]
        if not remaining:
            others = [*self.known_peers(), self.predecessor]
            able = [other for other in others if other not in (peer, NOBODY)]
            remaining = sorted(able, key=self.offset)[:1]
        if not remaining:
            self.bound = None
        self._replace_successors(remaining)
        self.reset_routes()
