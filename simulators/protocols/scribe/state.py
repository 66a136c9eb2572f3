"""What a peer keeps of Scribe's trees: its place in each, its parents and its children."""

from __future__ import annotations

from simulators.protocols.pastry.leaves import View
from simulators.protocols.pastry.node import NOBODY
from simulators.protocols.pastry.parameters import bytes_of

_Path = tuple[int, ...]
"""Peers of a tree from the root down."""
UNSURE: _Path = (NOBODY,)
"""The path to a peer that looks for a parent: what hangs below it begins with that, too."""
Beat = tuple[tuple[int, _Path], ...]
"""A heartbeat: (topic, path down to the sender) of each tree in which the receiver is its child."""

REMEMBERED = 512


class Group:
    """A topic's tree, as a peer in it sees it."""

    __slots__ = ("children", "former", "is_subscribed", "parent", "path")

    def __init__(self) -> None:
        self.is_subscribed = False
        """Else the peer is in the tree for others: a relay."""
        self.parent = NOBODY
        """The peer itself where it is the root; nobody while it looks for a parent."""
        self.former = NOBODY
        """The parent before, which still serves the peer until the new one does."""
        self.children: dict[int, None] = {}
        self.path: _Path = UNSURE
        """From the root down to the parent, as the parent said last."""

    @property
    def is_attached(self) -> bool:
        """Whether publications come down to the peer, as far as it knows."""
        return self.path[:1] != UNSURE


class Parent:
    """Somebody who is parent in one tree or more."""

    __slots__ = ("beat", "heard_us")

    def __init__(self, now_us: int) -> None:
        self.heard_us = now_us
        self.beat: Beat | None = None
        """Its last heartbeat, if it agreed with what the child thinks."""


class _Child:
    """Somebody who is child in one tree or more."""

    __slots__ = ("beat", "size", "topics")

    def __init__(self) -> None:
        self.topics: dict[int, None] = {}
        self.beat: Beat | None = None
        """What its heartbeats say; null if that has changed. The same object is sent until then."""
        self.size = 0
        """Bytes of it."""


class Recent:
    """The last publications that a peer saw: between `REMEMBERED` and twice as many."""

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: set[int] = set()
        self._old: set[int] = set()

    def is_new(self, message: int) -> bool:
        """Whether it was not seen before; from now on it was."""
        if message in self._new or message in self._old:
            return False
        if len(self._new) == REMEMBERED:
            self._old, self._new = self._new, set()
        self._new.add(message)
        return True


class Member:
    """All that a peer keeps."""

    __slots__ = ("children", "groups", "orphans", "parents", "peer", "ring_view", "seen")

    def __init__(self, peer: int) -> None:
        self.peer = peer
        self.groups: dict[int, Group] = {}
        """By topic."""
        self.parents: dict[int, Parent] = {}
        self.children: dict[int, _Child] = {}
        self.orphans: dict[int, None] = {}
        """Topics that wait for the next heartbeat to look for a parent again."""
        self.seen = Recent()
        self.ring_view: View | None = None
        """The leaf set by which the parents were chosen."""

    def group(self, topic: int) -> Group:
        """The peer's place in the topic's tree; a new one where it is not in it."""
        return self.groups.setdefault(topic, Group())

    def add_child(self, topic: int, child: int) -> None:
        """The child hangs on the peer in the topic's tree."""
        self.groups[topic].children[child] = None
        entry = self.children.setdefault(child, _Child())
        entry.topics[topic] = None
        entry.beat = None

    def drop_child(self, topic: int, child: int) -> None:
        """It does no more."""
        self.groups[topic].children.pop(child, None)
        if (entry := self.children.get(child)) and topic in entry.topics:
            del entry.topics[topic]
            entry.beat = None
            if not entry.topics:
                del self.children[child]

    def set_path(self, topic: int, path: _Path) -> bool:
        """The way down to the peer's parent is that one, which is news for the children;
        whether it was another before.
        """
        group = self.groups[topic]
        if group.path == path:
            return False
        group.path = path
        for child in group.children:
            self.children[child].beat = None
        return True

    def beat_for(self, child: _Child) -> Beat:
        """What a heartbeat says to that child."""
        if child.beat is None:
            groups, own = self.groups, (self.peer,)
            child.beat = tuple((topic, groups[topic].path + own) for topic in child.topics)
            child.size = bytes_of(ids=sum(1 + len(path) for _, path in child.beat))
        return child.beat

    def topics_under(self, parent: int) -> list[int]:
        """The trees in which that one is the parent."""
        return [topic for topic, group in self.groups.items() if group.parent == parent]
