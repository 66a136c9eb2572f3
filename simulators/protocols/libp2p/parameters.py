"""Parameters of floodsub and gossipsub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.simulators.engine.parameters import MOST, Count, Duration, Positive, Share
from vizpub.simulators.engine.specs import parse

_Weight = Annotated[float, Meta(ge=0, le=MOST)]
_Penalty = Annotated[float, Meta(le=0)]


@dataclass(frozen=True)
class FloodsubParameters:
    """Parameters of the connections, whatever the router."""

    dials: Annotated[Count, Meta(description="Connections to anyone that a peer opens.")] = 6
    topic_peers: Annotated[
        Count,
        Meta(description="Subscribers of each of its topics that a peer looks for; 0: none."),
    ] = 12
    discovery_period: Annotated[
        Duration, Meta(description="How often a peer looks for peers that it lacks.")
    ] = "1s"
    seen_ttl: Annotated[Duration, Meta(description="How long a message is remembered.")] = "2m"


@dataclass(frozen=True)
class NoScores:
    """All peers are equal, as in go-libp2p-pubsub unless the application sets scores up."""

    example: ClassVar[str] = "none"


@dataclass(frozen=True)
class TopicScores:
    """P1 to P4 of the specification. It has no defaults; these are those of Filecoin's blocks."""

    topic_weight: Annotated[_Weight, Meta(description="Weight of each topic.")] = 0.1
    time_weight: Annotated[_Weight, Meta(description="P1, per time in the mesh.")] = 0.00027
    time_quantum: Annotated[Duration, Meta(description="P1: time that counts 1.")] = "1s"
    time_cap: Annotated[_Weight, Meta(description="P1: most that it counts.")] = 1.0
    first_weight: Annotated[_Weight, Meta(description="P2, per first copy.")] = 5.0
    first_memory: Annotated[Duration, Meta(description="P2: time to decay to 1 %.")] = "1h"
    first_cap: Annotated[_Weight, Meta(description="P2: most that it counts.")] = 100.0
    mesh_weight: Annotated[
        _Penalty, Meta(description="P3, per square of lacking copies; Filecoin: 0, or -576.")
    ] = 0.0
    mesh_threshold: Annotated[_Weight, Meta(description="P3: copies that are not lacking.")] = (
        0.41666
    )
    mesh_memory: Annotated[Duration, Meta(description="P3: time to decay to 1 %.")] = "1m"
    mesh_cap: Annotated[_Weight, Meta(description="P3: most copies that count.")] = 10.0
    mesh_window: Annotated[
        Duration, Meta(description="P3: time after the first copy in which others count too.")
    ] = "10ms"
    mesh_activation: Annotated[
        Duration, Meta(description="P3: time in the mesh from which on copies may lack.")
    ] = "1m"
    failure_weight: Annotated[
        _Penalty, Meta(description="P3b, per square of what lacked at a prune.")
    ] = -10.0
    failure_memory: Annotated[Duration, Meta(description="P3b: time to decay to 1 %.")] = "15m"
    invalid_weight: Annotated[
        _Penalty, Meta(description="P4, per square of invalid messages.")
    ] = -1000.0
    invalid_memory: Annotated[Duration, Meta(description="P4: time to decay to 1 %.")] = "1h"
    gossip_threshold: Annotated[_Penalty, Meta(description="No gossip below it.")] = -500.0
    publish_threshold: Annotated[
        _Penalty, Meta(description="No own messages to peers below it.")
    ] = -1000.0
    graylist_threshold: Annotated[
        _Penalty, Meta(description="Nothing of peers below it is read.")
    ] = -2500.0
    graft_threshold: Annotated[
        _Weight, Meta(description="Median of a mesh below which better peers are grafted.")
    ] = 3.5
    example: ClassVar[str] = "topics:mesh_weight=-576"


ScoreModel = NoScores | TopicScores
SCORES: Mapping[str, type[ScoreModel]] = {"none": NoScores, "topics": TopicScores}


@dataclass(frozen=True)
class GossipsubParameters(FloodsubParameters):
    """Parameters of gossipsub v1.1, with the defaults of its specification."""

    d: Annotated[Positive, Meta(description="D: wanted neighbours in a mesh.")] = 6
    d_low: Annotated[Count, Meta(description="D_low: a smaller mesh gets more.")] = 4
    d_high: Annotated[Positive, Meta(description="D_high: a larger mesh is cut to D.")] = 12
    d_score: Annotated[
        Count, Meta(description="D_score: neighbours of best score that a cut keeps.")
    ] = 4
    d_out: Annotated[
        Count, Meta(description="D_out: neighbours in a mesh that the peer itself dialled.")
    ] = 2
    d_lazy: Annotated[Count, Meta(description="D_lazy: fewest peers that get gossip.")] = 6
    gossip_factor: Annotated[
        Share, Meta(description="Share of the peers outside of the mesh that gets gossip.")
    ] = 0.25
    heartbeat: Annotated[Duration, Meta(description="Period of the upkeep of meshes.")] = "1s"
    fanout_ttl: Annotated[
        Duration, Meta(description="How long a publisher that does not subscribe keeps its peers.")
    ] = "1m"
    history: Annotated[
        Positive, Meta(description="mcache_len: heartbeats for which messages can be asked for.")
    ] = 5
    history_gossip: Annotated[
        Positive, Meta(description="mcache_gossip: heartbeats of messages that gossip names.")
    ] = 3
    flood_publish: Annotated[
        bool, Meta(description="Send own messages to all connected subscribers.")
    ] = True
    prune_backoff: Annotated[
        Duration, Meta(description="Time until a pruned peer may be grafted again.")
    ] = "1m"
    unsubscribe_backoff: Annotated[
        Duration, Meta(description="The same after the end of a subscription.")
    ] = "10s"
    opportunistic_period: Annotated[
        Duration, Meta(description="How often meshes of low scores get better peers.")
    ] = "1m"
    opportunistic_peers: Annotated[Count, Meta(description="How many they get.")] = 2
    scores: Annotated[
        str,
        Meta(description="What peers think of others: none, or topics:NAME=VALUE,… (P1 to P4)."),
    ] = "topics"

    def __post_init__(self) -> None:
        """Check the bounds and the model of scores in advance. Raises: UseError."""
        self.get_scores()
        if not self.d_low <= self.d <= self.d_high:
            raise UseError(
                f"d_low={self.d_low}, d={self.d}, d_high={self.d_high}: none may be less than the "
                "one before"
            )
        if self.d_out > min(max(self.d_low - 1, 0), self.d // 2):
            raise UseError(f"d_out={self.d_out} is not below d_low and at most half of d")
        if self.history_gossip > self.history:
            raise UseError(f"history_gossip={self.history_gossip} is above history={self.history}")

    def get_scores(self) -> ScoreModel:
        """The model of scores."""
        return parse(self.scores, SCORES, "scores")
