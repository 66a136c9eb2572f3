"""A hierarchy of topics: who chooses a topic wants the publications on all topics below it, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.simulators.engine.parameters import Positive, PositiveReal, Topics
from vizpub.simulators.world.subscriptions import Subscriptions, ZipfWorkload, refuse_too_many

_MOST_LEVELS = 100


class TreeSubscriptions(Subscriptions):
    """Subscriptions to topics of a hierarchy, and to what is below them."""

    def __init__(
        self,
        peers: int,
        names: Sequence[str],
        supertopics: Mapping[int, int],
        pairs: Iterable[tuple[int, int]],
    ) -> None:
        """From the pairs (peer, topic) that peers chose. `supertopics` has the topic above each
        but the roots.
        """
        super().__init__(peers, len(names), names=names)
        self.supertopics = supertopics
        self.choices = Subscriptions(peers, len(names))
        self._subtopics: dict[int, list[int]] = defaultdict(list)
        for topic, above in supertopics.items():
            self._subtopics[above].append(topic)
        for peer, topic in pairs:
            self.add(peer, topic)

    def add(self, peer: int, topic: int) -> list[int]:
        """Choose a topic; return what the peer did not want before, supertopics first."""
        self.choices.add(peer, topic)
        return [one for one in self._below(topic) if Subscriptions.add(self, peer, one)]

    def remove(self, peer: int, topic: int) -> list[int]:
        """End a choice, if it exists; return what the peer wants no more, subtopics first."""
        if not self.choices.remove(peer, topic):
            return []
        kept = {one for other in self.choices.of(peer) for one in self._below(other)}
        ended = [one for one in reversed(self._below(topic)) if one not in kept]
        return [one for one in ended if Subscriptions.remove(self, peer, one)]

    def _below(self, topic: int) -> list[int]:
        """The topic and all below it, supertopics first."""
        topics = [topic]
        for one in topics:  # which grows
            topics += self._subtopics.get(one, ())
        return topics


@dataclass(frozen=True)
class HierarchyWorkload:
    """Topics form a tree: who chooses a topic wants all topics below it, too."""

    topics: Topics = 40
    arity: Annotated[
        Positive,
        Meta(description="Subtopics of a topic: t is below (t - 1) // arity, 0 is the root."),
    ] = 3
    subscriptions_: Annotated[
        Positive, Meta(description="Number of topics that each peer chooses.")
    ] = 3
    exponent: Annotated[PositiveReal, Meta(description="How uneven popularity is, as in zipf.")] = (
        0.5
    )
    popular: Annotated[
        Literal["anywhere", "root", "leaves"],
        Meta(description="Where the topics are that most peers choose."),
    ] = "anywhere"
    example: ClassVar[str] = "hierarchy:topics=40,arity=3,subscriptions=3"

    def __post_init__(self) -> None:
        refuse_too_many("hierarchy", self.subscriptions_, self.topics)
        topic, levels = self.topics - 1, 1
        while topic:
            topic, levels = (topic - 1) // self.arity, levels + 1
            if levels > _MOST_LEVELS:
                raise UseError(
                    f"workload 'hierarchy': more than {_MOST_LEVELS} levels; "
                    "give fewer topics or a larger arity"
                )

    def subscriptions(self, peers: int, random: Random) -> TreeSubscriptions:
        """Each peer draws distinct topics by their weights, one after the other; one may be below
        another. The r-th most popular topic is any one, the r-th from the root or from the end.
        """
        ranked = list(range(self.topics))
        if self.popular == "anywhere":
            random.shuffle(ranked)
        elif self.popular == "leaves":
            ranked.reverse()
        law = ZipfWorkload(self.topics, self.subscriptions_, self.exponent)
        drawn = law.subscriptions(peers, random)
        pairs = ((peer, ranked[rank]) for peer in range(peers) for rank in drawn.of(peer))
        supertopics = {topic: (topic - 1) // self.arity for topic in range(1, self.topics)}
        return TreeSubscriptions(peers, self._names(), supertopics, pairs)

    def _names(self) -> list[str]:
        """The path from the root to each topic: 0/1/4."""
        names = ["0"]
        for topic in range(1, self.topics):
            names.append(f"{names[(topic - 1) // self.arity]}/{topic}")
        return names
