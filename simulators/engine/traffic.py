"""Counters of sent and received messages of each peer."""

from __future__ import annotations

from ingest.reports.files import Counters


class Traffic:
    """Messages and bytes in each direction, by peer."""

    __slots__ = ("bytes_received", "bytes_sent", "messages_received", "messages_sent")

    def __init__(self, peers: int) -> None:
        self.messages_sent = [0] * peers
        self.bytes_sent = [0] * peers
        self.messages_received = [0] * peers
        self.bytes_received = [0] * peers

    def take(self, peer: int) -> Counters:
        """The counts of a peer since the last call."""
        counted = Counters(
            self.messages_sent[peer],
            self.bytes_sent[peer],
            self.messages_received[peer],
            self.bytes_received[peer],
        )
        self.messages_sent[peer] = self.bytes_sent[peer] = 0
        self.messages_received[peer] = self.bytes_received[peer] = 0
        return counted
