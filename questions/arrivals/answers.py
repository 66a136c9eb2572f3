"""A run that answers questions about the arrivals of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizpub.questions.arrivals.amplification import sum_bytes
from vizpub.questions.arrivals.clocks import bound_offsets
from vizpub.questions.arrivals.duplicates import count_duplicates
from vizpub.questions.arrivals.reachability import count_reachable
from vizpub.questions.deliveries import coverage_times
from vizpub.questions.frames import Frame
from vizpub.questions.names import NamedRun, Where

if TYPE_CHECKING:
    from vizpub.questions.run import Run


@dataclass(frozen=True, repr=False)
class RunOfArrivals(NamedRun):
    """A stored run whose messages arrive, some of them several times."""

    def coverage(self, where: Where | None = None, within_us: int | None = None) -> Frame:
        """The times until shares of the eligible peers had messages, and the share that had them
        `within_us`; see vizpub.questions.deliveries.coverage_times.
        """
        rows = coverage_times(self, where or Where(), within_us)
        return Frame(f"{self.facts.name}, coverage", rows)

    def duplicates(self, by: str | None = None, where: Where | None = None) -> Frame:
        """The number of duplicates, and how soon after a peer's first copy they come: one row or,
        `by` 'message', 'peer', 'topic', 'interval', 'size' or an attribute of peers, a row for
        each; see vizpub.questions.arrivals.duplicates.

        Raises: UnknownName, UseError for a run without duplicates, or without attributes.
        """
        rows = count_duplicates(self, by, where or Where())
        return Frame(f"{self.facts.name}, duplicates", rows)

    def reachability(
        self,
        where: Where | None = None,
        within_us: int | None = None,
        layers: Sequence[str] | None = None,
        by: str = "message",
    ) -> Frame:
        """The eligible peers to which links led from each message's publication on, beside those
        that had it; or `by` 'peer', the messages that could have reached it, beside those that did;
        see vizpub.questions.arrivals.reachability.

        Raises: UnknownName, UseError for a run without links or eligible peers.
        """
        rows = count_reachable(self, where or Where(), within_us, layers, by)
        return Frame(f"{self.facts.name}, reachability", rows)

    def amplification(self, by: str | None = None, where: Where | None = None) -> Frame:
        """The bytes of all copies, beside those that the receivers needed: one row or, `by`
        'message', 'topic', 'interval', 'size' or an attribute of publishers, a row for each; see
        vizpub.questions.arrivals.amplification.

        Raises: UnknownName, UseError for a run without duplicates, or without attributes.
        """
        rows = sum_bytes(self, by, where or Where())
        return Frame(f"{self.facts.name}, amplification", rows)

    def correct_clocks(self, where: Where | None = None, reference: str | None = None) -> Run:
        """The same run, with delays by one clock as far as messages, of the run or of a window,
        bound the offsets of clocks; see vizpub.questions.corrected.

        Raises: as `clocks`.
        """
        from vizpub.questions.corrected import CorrectedRun
        from vizpub.questions.run import Run

        return CorrectedRun.of(Run(self.stored), where or Where(), reference)

    def clocks(self, where: Where | None = None, reference: str | None = None) -> Frame:
        """Bounds of the offsets of the peers' clocks from that of a reference; see
        vizpub.questions.arrivals.clocks.

        Raises: UnknownName, UseError for a run without times or previous hops.
        """
        rows = bound_offsets(self, where or Where(), reference)
        return Frame(f"{self.facts.name}, clocks", rows)
