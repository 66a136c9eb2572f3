"""Follows each message of a run by its reports alone, copy by copy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report

Held = tuple[str | None, str, int]
"""(message, peer, hops): a copy that a peer holds; its publisher holds one of 0 hops."""


class Ways:
    """What peers reported of messages, and of their links."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.reports = [
            line.record
            for path in sorted(files)
            for line in ReportReader(path)
            if isinstance(line.record, Report)
        ]
        self.links: dict[int, set[frozenset[str]]] = defaultdict(set)
        """Of each interval: the pairs of which one has a link to the other at its end."""
        self.had: dict[Held, int] = {}
        """When a peer came to hold a copy."""
        self.sent: dict[tuple[Held, str], list[tuple[int, int]]] = defaultdict(list)
        """Interval and time of each copy, by the one that its sender held, and to whom."""
        self.answers: set[tuple[Held, str]] = set()
        """Those of them that were sent again to who asked for them."""
        self.copies = 0
        for report in self.reports:
            self._read(report)

    def _read(self, report: Report) -> None:
        at, peer = report.interval, report.peer
        self.links[at] |= {frozenset((peer, held.peer)) for held in report.neighbors or ()}
        for copy in report.sent or ():
            held = copy.message, peer, copy.hops or 0
            if not copy.hops:
                assert copy.publisher == peer
                self._hold(held, copy.time_us)
            for to in copy.to or ():
                self.sent[held, to].append((at, copy.time_us or 0))
                self.copies += 1
                if copy.resent:
                    self.answers.add((held, to))
        for arrived in report.received or ():
            self._hold((arrived.message, peer, arrived.hops or 0), arrived.time_us)

    def _hold(self, held: Held, time_us: int | None) -> None:
        self.had[held] = min(time_us or 0, self.had.get(held, time_us or 0))

    def uncounted(self) -> Iterator[str]:
        """Reports that list other copies than they count."""
        for report in self.reports:
            sent = [(copy.bytes, len(copy.to or ())) for copy in report.sent or ()]
            listed = (
                sum(copies for _, copies in sent),
                sum((size or 0) * copies for size, copies in sent),
                len(report.received or ()),
                sum(copy.bytes or 0 for copy in report.received or ()),
            )
            of = report.publication
            counted = of and (
                *(of.messages_sent, of.bytes_sent, of.messages_received, of.bytes_received),
            )
            if listed != counted:
                yield f"{report.peer} in {report.interval}: lists {listed}, counts {counted}"

    def unsent(self) -> Iterator[str]:
        """Copies that nobody sent one hop earlier: receptions without their sender's copy, or one
        that its sender did not hold by then.
        """
        arrived: Counter[tuple[Held, str]] = Counter()
        for report in self.reports:
            for copy in report.received or ():
                held = copy.message, str(copy.from_peer), (copy.hops or 0) - 1
                arrived[held, report.peer] += 1
                if arrived[held, report.peer] > len(self.sent[held, report.peer]):
                    yield f"{copy.message}: {report.peer} from {copy.from_peer}, not sent"
        for (held, to), copies in self.sent.items():
            if copies and self.had.get(held, copies[0][1] + 1) > min(time for _, time in copies):
                yield f"{held[0]}: {held[1]} to {to}, not held with {held[2]} hops"

    def unlinked(self) -> Iterator[str]:
        """Copies between two peers that had no link, at both ends of the interval. Not those that
        did not arrive, as a child in a tree that is down reports no link; nor answers, as who asks
        had a link when it asked.
        """
        for (held, to), copies in self.sent.items():
            message, peer, hops = held
            if (message, to, hops + 1) not in self.had or (held, to) in self.answers:
                continue
            for at, _ in copies:
                if frozenset((peer, to)) not in self.links[at - 1] | self.links[at]:
                    yield f"{message} in {at}: {peer} to {to}, hop {hops + 1}"
