"""The state of a peer in Scribe's trees: its place in each, its parents and its children."""

from __future__ import annotations

from vizpub.simulators.protocols.routing import NOBODY, Sizes

_Path = tuple[int, ...]
"""Peers of a tree from the root down."""
UNSURE: _Path = (NOBODY,)
"""The path of a peer that looks for a parent; the paths of its subtree begin with it too."""
Beat = tuple[tuple[int, _Path], ...]
"""A heartbeat: (topic, path down to the sender) of each tree in which the receiver is its child."""

REMEMBERED = 512


class TreePlace:
    """The place of a peer in a topic's tree."""

    __slots__ = ("children", "former", "is_subscribed", "parent", "path")

    def __init__(self) -> None:
        self.is_subscribed = False
        """Whether the peer subscribes; otherwise it is a relay for others."""
        self.parent = NOBODY
        """The peer itself if it is the root; `NOBODY` while it looks for a parent."""
        self.former = NOBODY
        """The former parent, which serves the peer until the new one does."""
        self.children: dict[int, None] = {}
        self.path: _Path = UNSURE
        """The path from the root to the parent, as the parent last reported it."""

    @property
    def is_attached(self) -> bool:
        """True if publications reach the peer, as far as it knows."""
        return self.path[:1] != UNSURE


class TreeParent:
    """A peer that is the parent in one or more trees."""

    __slots__ = ("beat", "heard_us")

    def __init__(self, now_us: int) -> None:
        self.heard_us = now_us
        self.beat: Beat | None = None
        """Its last heartbeat, if it agreed with the child's state."""


class _Child:
    """A peer that is a child in one or more trees."""

    __slots__ = ("beat", "size", "topics")

    def __init__(self) -> None:
        self.topics: dict[int, None] = {}
        self.beat: Beat | None = None
        """The heartbeat to send; null if it has changed. The same object is sent until then."""
        self.size = 0
        """Bytes of the heartbeat."""


class RecentMessages:
    """The last publications that a peer saw: between `REMEMBERED` and twice as many."""

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: set[int] = set()
        self._old: set[int] = set()

    def is_new(self, message: int) -> bool:
        """Mark a message as seen; returns whether it is new."""
        if message in self._new or message in self._old:
            return False
        if len(self._new) == REMEMBERED:
            self._old, self._new = self._new, set()
        self._new.add(message)
        return True


class TreeMember:
    """The state of a peer in all trees."""

    __slots__ = ("children", "groups", "orphans", "parents", "peer", "routes", "seen")

    def __init__(self, peer: int) -> None:
        self.peer = peer
        self.groups: dict[int, TreePlace] = {}
        """Place in each tree, by topic."""
        self.parents: dict[int, TreeParent] = {}
        self.children: dict[int, _Child] = {}
        self.orphans: dict[int, None] = {}
        """Topics for which to look for a parent at the next heartbeat."""
        self.seen = RecentMessages()
        self.routes: object = None
        """The version of the routes by which the parents were chosen."""

    def group(self, topic: int) -> TreePlace:
        """The peer's place in the topic's tree; a new one if it is not in it."""
        return self.groups.setdefault(topic, TreePlace())

    def add_child(self, topic: int, child: int) -> None:
        """Add a child in the topic's tree."""
        self.groups[topic].children[child] = None
        entry = self.children.setdefault(child, _Child())
        entry.topics[topic] = None
        entry.beat = None

    def drop_child(self, topic: int, child: int) -> None:
        """Remove a child from the topic's tree."""
        self.groups[topic].children.pop(child, None)
        if (entry := self.children.get(child)) and topic in entry.topics:
            del entry.topics[topic]
            entry.beat = None
            if not entry.topics:
                del self.children[child]

    def set_path(self, topic: int, path: _Path) -> bool:
        """Set the path from the root to the peer's parent, and update the children's heartbeats;
        returns whether it changed.
        """
        group = self.groups[topic]
        if group.path == path:
            return False
        group.path = path
        for child in group.children:
            self.children[child].beat = None
        return True

    def beat_for(self, child: _Child, sizes: Sizes) -> Beat:
        """The heartbeat for that child."""
        if child.beat is None:
            groups, own_path = self.groups, (self.peer,)
            child.beat = tuple((topic, groups[topic].path + own_path) for topic in child.topics)
            child.size = sizes.of(ids=sum(1 + len(path) for _, path in child.beat))
        return child.beat

    def topics_under(self, parent: int) -> list[int]:
        """The trees in which that peer is the parent."""
        return [topic for topic, group in self.groups.items() if group.parent == parent]
