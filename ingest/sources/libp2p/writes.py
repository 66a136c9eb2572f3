"""How long a peer's writes to its streams take, as gauges."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WriteTimes:
    """The RPCs of an interval whose write has ended."""

    writes: int = 0
    sum_ns: int = 0
    longest_ns: int = 0

    def add(self, write_ns: int) -> None:
        """Count a write."""
        self.writes += 1
        self.sum_ns += write_ns
        self.longest_ns = max(self.longest_ns, write_ns)

    def take(self) -> dict[str, float]:
        """Return the gauges of the interval, none without a write, and begin the next one."""
        gauges = {
            "rpc_writes": float(self.writes),
            "rpc_write_us": self.sum_ns / 1000,
            "rpc_write_us_max": self.longest_ns / 1000,
        }
        has_writes = self.writes > 0
        self.writes = self.sum_ns = self.longest_ns = 0
        return gauges if has_writes else {}
