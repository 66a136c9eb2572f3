"""Sizes of the inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """An overlay's history and its messages."""

    name: str
    peers: int
    intervals: int
    links: int
    """Links of each peer, in every interval."""
    topics: int
    churn: float = 0.05
    """Share of the links that are replaced from one interval to the next."""
    subscriptions: int = 10
    """Topics of each peer."""
    seed: int = 1

    @property
    def messages(self) -> int:
        """Messages published over the run."""
        return self.intervals * 8 // 5

    @property
    def receivers(self) -> int:
        """Peers that each message reaches."""
        return self.peers // 2

    @property
    def key(self) -> str:
        """The name of everything that is made for this size."""
        return (
            f"{self.peers}x{self.intervals}x{self.links}-{self.topics}t{self.subscriptions}"
            f"-c{self.churn:g}-s{self.seed}"
        )


SIZES = {
    "S": Size("S", peers=200, intervals=50, links=10, topics=20),
    "M": Size("M", peers=2_000, intervals=100, links=20, topics=100),
    "L": Size("L", peers=2_000, intervals=1_000, links=20, topics=100),
    "XL": Size("XL", peers=100_000, intervals=100, links=20, topics=100),
}
