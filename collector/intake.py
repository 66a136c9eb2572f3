"""The intake: judges lines of the report contract, and writes them to the log.

It also knows the header of the run, and decides when intervals close (`vizpub.collector.closing`).
All of this is in the log, so it continues after a kill. Lines come from
`vizpub.collector.http.interface` and `vizpub.collector.inputs`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vizpub.collector.acceptance import Acceptance
from vizpub.collector.clock import CollectorClock
from vizpub.collector.closing import Closing, ClosingRules
from vizpub.collector.commands import PeerCommand, PeerCommands
from vizpub.collector.ending import Ending
from vizpub.collector.header import merge_header
from vizpub.collector.inputs.kafka_message import KafkaMessage, interval_of
from vizpub.collector.last_lines import LastLines
from vizpub.collector.log import records as log
from vizpub.collector.log.log import ReportLog
from vizpub.collector.making.batch import batches_in
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import InputError
from vizpub.model.wording import shorten
from vizpub.reports.compressed import LongLine
from vizpub.reports.files import parse
from vizpub.reports.records import RunHeader

_TURN = 256
"""Lines after which other tasks get their turn."""
_WAIT_S = 0.01
_NAMED, _LONGEST_NAME = 16, 200
"""The most peers with late or refused reports that the progress names, and characters of a name."""


@dataclass(frozen=True)
class IntakeLimits:
    """Upper bounds of the intake."""

    peers: int = 100_000
    name: int = 2**10
    """Bytes of a peer's name: every state has all names."""
    log: int = 2**30
    """Bytes of the log that the run does not have yet: beyond, reporters are asked to wait."""
    disk: int | None = None
    """Bytes of the log and of all batches; null = no limit."""
    reserve: int = 256 * 2**20
    """Bytes of the disk to leave free, so that intervals can still be closed when it is full."""


@dataclass(frozen=True)
class _AdmittedReport:
    peer: str
    interval: int
    leaves: bool


class Intake:
    """Judges lines and logs them, closes intervals, and counts. Lives in one event loop."""

    def __init__(
        self, place: CollectionPlace, header: RunHeader, rules: ClosingRules, limits: IntakeLimits
    ) -> None:
        rules = replace(rules, interval_s=(header.interval_us or 0) / 1_000_000)
        self._rules, self.limits, self.place = rules, limits, place
        self.header = header
        self.closing = Closing(rules)
        self.counts: Counter[str] = Counter()
        self.of_peers: dict[str, Counter[str]] = {"late": Counter(), "refused": Counter()}
        self.positions: dict[str, Any] = {}
        """The positions up to which inputs are read: bytes of the content of files, cursors of
        targets, and the next offsets of partitions."""
        self.commands = PeerCommands()
        self.ended = False
        """True once the run has ended, by its peers' mark or on request."""
        self.ending = Ending()
        self._last_lines = LastLines()
        self.closed_at = 0
        """The position behind the record that closed the last interval, or ended the run."""
        self._is_closing = self._is_ending = False
        self._takes = 0
        """The number of requests whose lines are being judged or written."""
        self.catch_up: Callable[[], Awaitable[bool]] | None = None
        """Takes what must be in the run before it ends; false if that is not possible now."""
        self.log = ReportLog(place.log, self._state, beside=self._header_record)
        self._replay()
        assert self.header.epoch is not None
        self.clock = CollectorClock(self.header.epoch)

    def _replay(self) -> None:
        """Continue where the log ends, from its last state."""
        directory, now = self.place.log, time.monotonic()
        records: list[log.Record] = []
        for start, _ in reversed(log.segments(directory)):
            records = list(log.read_records(directory, start))
            if records and records[0].kind == log.STATE:
                break
        else:  # the log is empty, or the rest of it begins behind passed damage
            if batches := batches_in(self.place.batches):
                self._note_closed(batches[-1].closed, batches[-1].position)
        for record in records:
            self._replay_record(record, now)

    def _replay_record(self, record: log.Record, now: float) -> None:
        if record.kind == log.STATE:
            state = json.loads(record.content)
            self.closing = Closing.from_state(self._rules, state, now)
            self._last_lines = LastLines(self.closing.newest)
            self.header = RunHeader.from_json(state["header"])
            self.counts, self.closed_at = Counter(state["counts"]), state["closed_at"]
            self.ending, self.ended = Ending.from_json(state), state["ended"]
            self.positions, self.commands = dict(state["read"]), PeerCommands(state["commands"])
        elif record.kind == log.HEADER:
            self.header = RunHeader.from_json(json.loads(record.content))
        elif record.kind == log.CLOSE:
            self._note_closed(record.interval, record.end)
        elif record.kind == log.READ:
            self.positions.update(json.loads(record.content))
        elif record.kind == log.MESSAGE:
            head = json.loads(record.content)
            self.counts["refused"] += head.pop("refused", 0)
            message = KafkaMessage(**head)
            self.positions[message.source] = message.offset + 1
        elif record.kind == log.COMMAND:
            self.commands.record(PeerCommand(**json.loads(record.content)))
        elif record.kind == log.END:
            self._note_end(json.loads(record.content), record.end)
        elif record.kind == log.REPORT:
            value = json.loads(record.line)
            with suppress(InputError):  # two peers have one name, on both sides of a restart
                self._last_lines.add(value, record.line, self.closing.closed)
            report = _AdmittedReport(value["peer"], record.interval, bool(value.get("left")))
            self._note_report(report, now)

    def _state(self) -> bytes:
        state = {
            **self.closing.state(),
            "header": self.header.to_json(),
            "counts": self.counts,
            "closed_at": self.closed_at,
            "ended": self.ended,
            **self.ending.to_json(),
            "read": self.positions,
            "commands": self.commands.to_json(),
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def _header_record(self) -> bytes:
        """Return the record of the run's header. States contain it, too, but may be damaged."""
        return log.encode_record(log.HEADER, json.dumps(self.header.to_json()).encode())

    @property
    def now(self) -> int:
        """The interval of the collector's own clock."""
        return self.clock.now_us // (self.header.interval_us or 1)

    async def take(
        self,
        lines: Iterable[bytes],
        positions: Mapping[str, Any] | None = None,
        *,
        may_end: bool = False,
    ) -> Acceptance:
        """Judge lines, log the admitted ones, and wait for the sync. The positions in files and
        targets behind them are logged together with them. `may_end`: a mark of the end counts at
        once; otherwise it counts when all members are silent. Raises: LogFailed.
        """
        with self._count_take():
            acceptance, admitted, records = await self._judge(lines, may_end=may_end)
            self.counts["refused"] += acceptance.refused
            if positions:
                records += log.encode_record(log.READ, json.dumps(positions).encode())
            if records:
                await self.log.put(bytes(records), lambda _: self._note_all(admitted, positions))
        return acceptance

    @contextmanager
    def _count_take(self) -> Iterator[None]:
        self._takes += 1
        try:
            yield
        finally:
            self._takes -= 1

    async def take_messages(self, messages: Sequence[KafkaMessage]) -> list[Acceptance]:
        """Judge and log messages like `take`, each with its offset as one record of the log.
        Returns the outcome of each. Raises: LogFailed; then no message is taken.
        """
        acceptances, records = list[Acceptance](), bytearray()
        admitted: list[_AdmittedReport] = []
        positions = {message.source: message.offset + 1 for message in messages}

        def note(_: int) -> None:
            self.counts["refused"] += sum(one.refused for one in acceptances)
            self._note_all(admitted, positions)

        with self._count_take():
            for number, message in enumerate(messages):
                if number % _TURN == 0:
                    await asyncio.sleep(0)
                acceptance, reports, inner = await self._judge(message.lines)
                acceptances.append(acceptance)
                admitted += reports
                records += log.message(message.head(acceptance.refused), bytes(inner))
            if records:
                await self.log.put(bytes(records), note)
        return acceptances

    async def _judge(
        self, lines: Iterable[bytes], *, may_end: bool = False
    ) -> tuple[Acceptance, list[_AdmittedReport], bytearray]:
        """Judge lines. Returns the outcome, the admitted reports, and the records to log."""
        acceptance, admitted, records = Acceptance(), [], bytearray()
        for number, line in enumerate(lines, 1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            if isinstance(line, LongLine):
                acceptance.refuse(number, line.problem)
                continue
            if not (text := line.strip()):
                continue
            value, wrong = parse(text)
            if wrong:
                acceptance.refuse(number, "; ".join(wrong))
                continue
            try:
                report, record = self._admit(value, text, may_end=may_end)
            except InputError as error:
                acceptance.refuse(number, str(error))
                self._count_peer("refused", value.get("peer"))
                continue
            records += record
            acceptance.accepted += 1
            if report:
                acceptance.late += self.closing.is_late(report.interval)
                acceptance.peers.add(report.peer)
                admitted.append(report)
        return acceptance, admitted, records

    @property
    def horizon(self) -> int:
        """The greatest interval now for inputs that can wait."""
        # Unlike `is_ahead`, it ignores the clock, so that whole histories are read side by side.
        median = self.closing.median()
        return (self.now if median is None else median) + self._rules.ahead

    def check_horizon(self, line: bytes) -> int | None:
        """Return the interval of a report, or null for another line.

        Raises: InputError if it is beyond the horizon: a file can wait, and need not be refused.
        """
        interval = interval_of(line)
        if interval is not None and interval > (horizon := self.horizon):
            raise InputError(f"its next interval is {interval}, more than the allowed {horizon}")
        return interval

    def _admit(
        self, value: dict[str, Any], line: bytes, *, may_end: bool
    ) -> tuple[_AdmittedReport | None, bytes]:
        """Return the report of a line (or null), and its record. Raises: InputError."""
        if (run := value.get("run")) not in (None, self.place.run):
            raise InputError(f"it is of run '{run}', and this is '{self.place.run}'")
        if self.ended or self._is_ending:
            raise InputError("the run has ended")
        if value["format"] == RunHeader.format:
            header, is_closed = RunHeader.from_json(value), self.closing.closed is not None
            self.header = merge_header(header, self.header, self.place.run, is_closed=is_closed)
            return None, self._header_record()
        if value["format"] == "vizpub.end/1":
            last, reached = value["last_interval"], self._last_lines.greatest_interval
            self.ending.mark(last, self.closing, (reached, self.now), may_end=may_end)
            return None, log.encode_record(log.END, json.dumps(self.ending.to_json()).encode())
        peer, interval = value["peer"], value["interval"]
        self._check_peer(peer, interval)
        self._last_lines.add(value, line, self.closing.closed)
        return _AdmittedReport(peer, interval, bool(value.get("left"))), log.report(interval, line)

    def _check_peer(self, peer: str, interval: int) -> None:
        if (size := len(peer.encode())) > self.limits.name:
            raise InputError(
                f"the peer's name has {size:,} bytes, more than the {self.limits.name:,} allowed: "
                "see --max-name"
            )
        if self._rules.peers is not None and peer not in self._rules.peers:
            raise InputError(f"peer '{peer}' is not in the list of peers")
        if peer not in self._last_lines and len(self._last_lines) >= self.limits.peers:
            raise InputError(f"peer '{peer}' is one more than the {self.limits.peers:,} allowed")
        if self.closing.is_ahead(interval, self.now):
            median = self.closing.median()
            others = f"the collector's is {self.now}" if median is None else f"most are at {median}"
            raise InputError(
                f"peer '{peer}' is too far ahead: its interval is {interval}, and {others}; "
                "set its clock, or count intervals from the run's epoch"
            )

    def _note_all(
        self, admitted: Iterable[_AdmittedReport], positions: Mapping[str, Any] | None
    ) -> None:
        now = time.monotonic()
        self.positions.update(positions or {})
        for report in admitted:
            self._note_report(report, now)

    def _note_report(self, report: _AdmittedReport, now: float) -> None:
        self.counts["reports"] += 1
        if self.closing.is_late(report.interval):
            self.counts["late"] += 1
            self._count_peer("late", report.peer)
        self.ending.note_report(report.interval)
        self.closing.note_report(report.peer, report.interval, now, leaves=report.leaves)

    def _count_peer(self, outcome: str, peer: object) -> None:
        counts = self.of_peers[outcome]
        name = shorten(peer, _LONGEST_NAME) if isinstance(peer, str) else ""
        if name and (name in counts or len(counts) < _NAMED):
            counts[name] += 1

    async def queue_command(self, peer: str, action: str, seconds: float) -> PeerCommand:
        """Queue a command to a peer. Raises: InputError, LogFailed."""
        if peer not in self.closing.newest:
            raise InputError(f"no peer '{peer}' has reported")
        command = self.commands.new_command(peer, action, time.time(), seconds)
        return await self._log_command(command)

    async def note_answer(self, number: int, *, obeyed: bool, reason: str | None) -> PeerCommand:
        """Log an answer to a command; return the one that counts. Raises: InputError, LogFailed."""
        answered = self.commands.with_answer(number, obeyed=obeyed, reason=reason)
        return await self._log_command(answered)

    async def _log_command(self, command: PeerCommand) -> PeerCommand:
        content = log.encode_record(log.COMMAND, json.dumps(command.to_json()).encode())
        kept: list[PeerCommand] = []
        await self.log.put(content, lambda _: kept.append(self.commands.record(command)))
        return kept[0]

    async def probe(self) -> None:
        """Write an empty record, to see if the log can be written. Raises: LogFailed."""
        await self.log.put(log.encode_record(log.READ, b"{}"), lambda _: None)

    async def close_due(self) -> bool:
        """Close due intervals. Returns True if there were some. Raises: LogFailed."""
        if self._is_end_reached():
            return await self.end(self._is_end_reached)
        due = self.closing.due(time.monotonic())
        return due is not None and await self._close(due)

    def _is_end_reached(self) -> bool:
        if self.ending.last is None:
            return False
        now = time.monotonic()
        return self.ending.is_reached(self.closing, self.closing.due(now), now)

    async def end(self, still: Callable[[], bool] = lambda: True) -> bool:
        """Close all reported intervals, and end the run. `still`: false if what was taken before
        has shown that it does not end. Raises: LogFailed.
        """
        if self.ended or (self.catch_up and not await self.catch_up()) or not still():
            return False
        self._is_ending = True
        while self._takes:  # reports that were admitted before must be logged and noted first
            await asyncio.sleep(_WAIT_S)
        await self.probe()
        ends = [
            one for one in (self.ending.last, self.closing.greatest_interval) if one is not None
        ]
        if (last := max(ends, default=None)) is not None and not self.closing.is_late(last):
            await self._close(last)
        done = {"last_interval": last, "ended": True}
        content = log.encode_record(log.END, json.dumps(done).encode())
        await self.log.put(content, lambda end: self._note_end(done, end))
        return True

    async def _close(self, interval: int) -> bool:
        if self._is_closing:
            return False
        self._is_closing = True
        try:
            record = log.closing(interval, self.closing.first)
            await self.log.put(record, partial(self._note_closed, interval))
        finally:
            self._is_closing = False
        return True

    def _note_closed(self, interval: int, end: int) -> None:
        self.closing.close(interval)
        self.closed_at = end

    def _note_end(self, mark: dict[str, Any], end: int) -> None:
        self.ending = Ending.from_json(mark)
        if mark.get("ended"):
            self.ended, self.closed_at = True, end
