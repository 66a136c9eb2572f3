"""What is admitted: lines of the report contract become records of the log.

The intake knows the header of the run, judges every line, and decides when intervals close
(`vizpub.collector.closing`); all of this is in the log, so it goes on after a kill. It knows
nothing of HTTP: every end (`vizpub.collector.http.interface`, `vizpub.collector.inputs` …) gives it
lines."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vizpub.collector.acceptance import Taken
from vizpub.collector.clock import Clock
from vizpub.collector.closing import Closing, Rules
from vizpub.collector.commands import Command, Commands
from vizpub.collector.ending import Ending
from vizpub.collector.header import merged
from vizpub.collector.inputs.kafka_message import Message, interval_of
from vizpub.collector.last_lines import Marks
from vizpub.collector.log import log
from vizpub.collector.log.log import Log
from vizpub.collector.making.batch import batches_in
from vizpub.collector.place import Place
from vizpub.model.errors import InputError
from vizpub.reports.compressed import LongLine
from vizpub.reports.files import parse
from vizpub.reports.records import RunHeader

_TURN = 256
"""Lines after which others get their turn."""
_WAIT_S = 0.01
_NAMED = 16
"""Peers with late or refused reports that the progress names."""


@dataclass(frozen=True)
class Limits:
    """What the intake takes at most."""

    peers: int = 100_000
    name: int = 2**10
    """Bytes of a peer's name: all of them are in every state."""
    log: int = 2**30
    """Bytes of the log that no run holds yet: beyond, reporters are asked to wait."""
    disk: int | None = None
    """Bytes of the log and of all batches; null = no limit."""
    reserve: int = 256 * 2**20
    """Bytes that stay free on the disk, so that intervals can still be closed when it is full."""


@dataclass(frozen=True)
class _Admitted:
    peer: str
    interval: int
    left: bool


class Intake:
    """The log, the closing, and what was counted. Lives in one event loop."""

    def __init__(self, place: Place, header: RunHeader, rules: Rules, limits: Limits) -> None:
        rules = replace(rules, interval_s=(header.interval_us or 0) / 1_000_000)
        self._rules, self.limits, self.place = rules, limits, place
        self.header = header
        self.closing = Closing(rules)
        self.counts: Counter[str] = Counter()
        self.of_peers: dict[str, Counter[str]] = {"late": Counter(), "refused": Counter()}
        self.read: dict[str, Any] = {}
        """How far files are read, in bytes of their content, where to ask targets to go on, and the
        offsets of partitions that come next."""
        self.commands = Commands()
        self.ended = False
        """The peers marked the end of the run, or somebody asked for it."""
        self.ending = Ending()
        self._marks = Marks()
        self.closed_at = 0
        """The position behind the record that closed the last interval, or ended the run."""
        self._is_closing = self._is_ending = False
        self._takes = 0
        """Lines that are being judged or written, as requests."""
        self.log = Log(place.log, self._state, beside=self._told_header)
        self._replay()
        assert self.header.epoch is not None
        self.clock = Clock(self.header.epoch)

    def _replay(self) -> None:
        """Go on where the log ends: from the last state in it."""
        directory, now = self.place.log, time.monotonic()
        records: list[log.Record] = []
        for start, _ in reversed(log.segments(directory)):
            records = list(log.read(directory, start))
            if records and records[0].kind == log.STATE:
                break
        else:  # the log is empty, or what is left of it begins behind damage that was passed
            if made := batches_in(self.place.batches):
                self._closed(made[-1].closed, made[-1].position)
        for record in records:
            self._redo(record, now)

    def _redo(self, record: log.Record, now: float) -> None:
        if record.kind == log.STATE:
            state = json.loads(record.content)
            self.closing = Closing.restored(self._rules, state, now)
            self._marks = Marks(self.closing.newest)
            self.header = RunHeader.from_json(state["header"])
            self.counts, self.closed_at = Counter(state["counts"]), state["closed_at"]
            self.ending, self.ended = Ending.from_json(state), state["ended"]
            self.read, self.commands = dict(state["read"]), Commands(state["commands"])
        elif record.kind == log.HEADER:
            self.header = RunHeader.from_json(json.loads(record.content))
        elif record.kind == log.CLOSE:
            self._closed(record.interval, record.end)
        elif record.kind == log.READ:
            self.read.update(json.loads(record.content))
        elif record.kind == log.MESSAGE:
            told = json.loads(record.content)
            self.counts["refused"] += told.pop("refused", 0)
            found_in = Message(**told)
            self.read[found_in.source] = found_in.offset + 1
        elif record.kind == log.COMMAND:
            self.commands.note(Command(**json.loads(record.content)))
        elif record.kind == log.END:
            self._ended_at(json.loads(record.content), record.end)
        elif record.kind == log.REPORT:
            told = json.loads(record.line)
            with suppress(InputError):  # two with one name, on both sides of a restart
                self._marks.add(told, record.line, self.closing.closed)
            self._note(_Admitted(told["peer"], record.interval, bool(told.get("left"))), now)

    def _state(self) -> bytes:
        state = {
            **self.closing.state(),
            "header": self.header.to_json(),
            "counts": self.counts,
            "closed_at": self.closed_at,
            "ended": self.ended,
            **self.ending.to_json(),
            "read": self.read,
            "commands": self.commands.to_json(),
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def _told_header(self) -> bytes:
        """Without it no interval has its time: it is there twice."""
        return log.packed(log.HEADER, json.dumps(self.header.to_json()).encode())

    @property
    def last_interval(self) -> int | None:
        """Of a marked end."""
        return self.ending.last

    @property
    def now_us(self) -> int:
        """The collector's own time since the run's epoch, in µs."""
        return self.clock.now_us

    @property
    def now(self) -> int:
        """The interval of the collector's own clock."""
        return self.now_us // (self.header.interval_us or 1)

    async def take(
        self,
        lines: Iterable[bytes],
        read: Mapping[str, Any] | None = None,
        *,
        may_end: bool = False,
    ) -> Taken:
        """Judge lines, log those that are admitted, and wait for the sync. `read` says how far
        files and targets are read with them, and is logged together with them. A mark of the end by
        who may not end the run counts once all members have fallen silent. Raises: LogFailed.
        """
        with self._taking():
            done, admitted, records = await self._judge(lines, may_end=may_end)
            self.counts["refused"] += done.refused
            if read:
                records += log.packed(log.READ, json.dumps(read).encode())
            if records:
                await self.log.put(bytes(records), lambda _: self._note_all(admitted, read))
        return done

    @contextmanager
    def _taking(self) -> Iterator[None]:
        self._takes += 1
        try:
            yield
        finally:
            self._takes -= 1

    async def take_messages(self, messages: Sequence[Message]) -> list[Taken]:
        """As `take`, of messages: each is one record of the log, with its offset. Returns what
        became of each. Raises: LogFailed; then none is taken.
        """
        found, records = list[Taken](), bytearray()
        admitted: list[_Admitted] = []
        read = {message.source: message.offset + 1 for message in messages}

        def note(_: int) -> None:
            self.counts["refused"] += sum(done.refused for done in found)
            self._note_all(admitted, read)

        with self._taking():
            for number, message in enumerate(messages):
                if number % _TURN == 0:
                    await asyncio.sleep(0)
                done, of_lines, inner = await self._judge(message.lines)
                found.append(done)
                admitted += of_lines
                records += log.message(message.head(done.refused), bytes(inner))
            if records:
                await self.log.put(bytes(records), note)
        return found

    async def _judge(
        self, lines: Iterable[bytes], *, may_end: bool = False
    ) -> tuple[Taken, list[_Admitted], bytearray]:
        """What becomes of lines, the reports among them, and the records of what is taken."""
        done, admitted, records = Taken(), [], bytearray()
        for number, line in enumerate(lines, 1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            if isinstance(line, LongLine):
                done.refuse(number, f"a line of {line.size:,} bytes is too long")
                continue
            if not (text := line.strip()):
                continue
            value, wrong = parse(text)
            if wrong:
                done.refuse(number, "; ".join(wrong))
                continue
            try:
                found, packed = self._admit(value, text, may_end=may_end)
            except InputError as error:
                done.refuse(number, str(error))
                self._blame("refused", value.get("peer"))
                continue
            records += packed
            done.taken += 1
            if found:
                done.late += self.closing.is_late(found.interval)
                done.peers.add(found.peer)
                admitted.append(found)
        return done, admitted, records

    @property
    def horizon(self) -> int:
        """The greatest interval that is not too far ahead for what can wait."""
        # Whole histories go side by side, whatever the clock says.
        median = self.closing.median()
        return (self.now if median is None else median) + self._rules.ahead

    def waits(self, line: bytes) -> int | None:
        """The interval of a report; null for another line. Raises: InputError where it is too far
        ahead now: a file can wait, and need not be refused.
        """
        interval = interval_of(line)
        if interval is not None and interval > (horizon := self.horizon):
            raise InputError(
                f"its next interval is {interval}, and {horizon} is as far as any may be"
            )
        return interval

    def _admit(
        self, value: dict[str, Any], line: bytes, *, may_end: bool
    ) -> tuple[_Admitted | None, bytes]:
        """The record of a line. Raises: InputError with the reason why it is refused."""
        if (run := value.get("run")) not in (None, self.place.run):
            raise InputError(f"it is of run '{run}', and this is '{self.place.run}'")
        if self.ended or self._is_ending:
            raise InputError("the run has ended")
        if value["format"] == RunHeader.format:
            told, is_closed = RunHeader.from_json(value), self.closing.closed is not None
            self.header = merged(told, self.header, self.place.run, is_closed=is_closed)
            return None, self._told_header()
        if value["format"] == "vizpub.end/1":
            last, reached = value["last_interval"], self._marks.reached
            self.ending.mark(last, self.closing, (reached, self.now), may_end=may_end)
            return None, log.packed(log.END, json.dumps(self.ending.to_json()).encode())
        peer, interval = value["peer"], value["interval"]
        self._check_peer(peer, interval)
        self._marks.add(value, line, self.closing.closed)
        return _Admitted(peer, interval, bool(value.get("left"))), log.report(interval, line)

    def _check_peer(self, peer: str, interval: int) -> None:
        if (size := len(peer.encode())) > self.limits.name:
            raise InputError(
                f"the peer's name has {size:,} bytes, and {self.limits.name:,} is as many as any "
                "may have: see --max-name"
            )
        if self._rules.peers is not None and peer not in self._rules.peers:
            raise InputError(f"peer '{peer}' is not in the list of peers")
        if peer not in self._marks and len(self._marks) >= self.limits.peers:
            raise InputError(f"peer '{peer}' is one more than the {self.limits.peers:,} allowed")
        if self.closing.is_ahead(interval, self.now):
            median = self.closing.median()
            others = f"the collector's is {self.now}" if median is None else f"most are at {median}"
            raise InputError(
                f"peer '{peer}' is too far ahead: its interval is {interval}, and {others}; "
                "set its clock, or count intervals from the run's epoch"
            )

    def _note_all(self, admitted: Iterable[_Admitted], read: Mapping[str, Any] | None) -> None:
        now = time.monotonic()
        self.read.update(read or {})
        for found in admitted:
            self._note(found, now)

    def _note(self, found: _Admitted, now: float) -> None:
        self.counts["reports"] += 1
        if self.closing.is_late(found.interval):
            self.counts["late"] += 1
            self._blame("late", found.peer)
        self.ending.note(found.interval)
        self.closing.note(found.peer, found.interval, now, left=found.left)

    def _blame(self, what: str, peer: object) -> None:
        named = self.of_peers[what]
        if isinstance(peer, str) and (peer in named or len(named) < _NAMED):
            named[peer] += 1

    async def tell(self, peer: str, action: str, seconds: float) -> Command:
        """Queue a command to a peer. Raises: InputError, LogFailed."""
        if peer not in self.closing.newest:
            raise InputError(f"no peer '{peer}' has reported")
        return await self._put(self.commands.next(peer, action, time.time(), seconds))

    async def answer(self, number: int, *, obeyed: bool, reason: str | None) -> Command:
        """What a reporter says of a command. Raises: InputError, LogFailed."""
        return await self._put(self.commands.answered(number, obeyed=obeyed, reason=reason))

    async def _put(self, command: Command) -> Command:
        content = log.packed(log.COMMAND, json.dumps(command.to_json()).encode())
        await self.log.put(content, lambda _: self.commands.note(command))
        return command

    async def probe(self) -> None:
        """Write a record that says nothing. Raises: LogFailed."""
        await self.log.put(log.packed(log.READ, b"{}"), lambda _: None)

    async def close_due(self) -> bool:
        """Close what is due. Returns whether something was closed. Raises: LogFailed."""
        now = time.monotonic()
        due = self.closing.due(now)
        if self.ending.is_reached(self.closing, due, now):
            return await self.end()
        return due is not None and await self._close(due)

    async def end(self) -> bool:
        """Close all that was reported; the run ends. Raises: LogFailed."""
        if self.ended:
            return False
        self._is_ending = True
        while self._takes:  # what was admitted before is in the log first, and noted
            await asyncio.sleep(_WAIT_S)
        await self.probe()
        ends = [one for one in (self.ending.last, self.closing.reached) if one is not None]
        if (last := max(ends, default=None)) is not None and not self.closing.is_late(last):
            await self._close(last)
        done = {"last_interval": last, "ended": True}
        content = log.packed(log.END, json.dumps(done).encode())
        await self.log.put(content, lambda end: self._ended_at(done, end))
        return True

    async def _close(self, interval: int) -> bool:
        if self._is_closing:
            return False
        self._is_closing = True
        try:
            record = log.close(interval, self.closing.first)
            await self.log.put(record, partial(self._closed, interval))
        finally:
            self._is_closing = False
        return True

    def _closed(self, interval: int, end: int) -> None:
        self.closing.close(interval)
        self.closed_at = end

    def _ended_at(self, told: dict[str, Any], end: int) -> None:
        self.ending = Ending.from_json(told)
        if told.get("ended"):
            self.ended, self.closed_at = True, end
