"""Peers that are asked for their reports: `GET URL/report?since=CURSOR` of each, every interval.

Each target has its own time within the interval, so that a thousand are not asked at once, and an
answer must come within the interval. What a target answered and where to go on is one write to the
log, so nothing is missing or asked for twice after a kill. While the collector takes nothing,
nobody is asked: targets hold what they have.

With its reports a target is given what its peers are asked to do, until it has answered.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from starlette.exceptions import HTTPException

from vizpub.collector.http import descriptors
from vizpub.collector.http.bodies import lines_of
from vizpub.collector.http.interface import Web
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed
from vizpub.machine.files import text_of
from vizpub.machine.private import open_secret
from vizpub.model.errors import InputError, UseError, cause_of
from vizpub.reports.endpoint import bearer, is_address
from vizpub.reports.pulled import COMMANDS, CURSOR, MORE, REPORT

NO_REPORTER = "is not the URL of a reporter"

_SHARE = 0.8
"""Of the interval, in which a target must have answered."""
_HEAD = 1 << 16
"""Bytes of an answer's head."""
_CURSOR = 256
"""Characters of a cursor."""
_ANSWERS = 1 << 20
"""Bytes of a target's answers to commands."""
_REASON = 1000
"""Characters of a reason why a command is not obeyed."""
_FILES = 1 << 16
"""Connections that this process may have, where the system lets it."""


class _Failed(Exception):
    """Why a target gave nothing."""


class _Answered(msgspec.Struct, forbid_unknown_fields=True):
    id: int
    obeyed: bool
    reason: str | None = None


class _Answers(msgspec.Struct, forbid_unknown_fields=True):
    answers: list[_Answered]


@dataclass
class Target:
    """A reporter that is asked, and how it answered."""

    url: str
    token: str | None = None
    up: bool | None = None
    """Whether it answered last; null = it was not asked yet."""
    seconds: float | None = None
    """That the last answer took, or the last failure."""
    error: str | None = None
    reports: int = 0
    refused: int = 0
    refusal: str | None = None
    """The last reason."""
    deaf: str | None = None
    """Why it took no commands last; null = it took them, or there were none."""

    @property
    def phase(self) -> float:
        """Its own time within the interval, from 0 to 1."""
        return zlib.crc32(self.url.encode()) / 2**32

    def told(self) -> dict[str, Any]:
        """For readers."""
        shown = ("url", "up", "seconds", "error", "reports", "refused", "refusal", "deaf")
        return {name: getattr(self, name) for name in shown}


@dataclass(frozen=True)
class Sources:
    """Where the targets are named: URLs, or files of them, a line each."""

    given: tuple[str, ...]

    def targets(self) -> dict[str, Target]:
        """All that are named now. Raises: UseError."""
        found: dict[str, Target] = {}
        for name in self.given:
            for target in [_target(name)] if "://" in name else _of_file(Path(name)):
                found[target.url] = target
        return found


def _of_file(path: Path) -> Iterable[Target]:
    """Lines of `URL` or `URL TOKEN`; `#` begins a comment. Raises: UseError."""
    try:
        text = text_of(path)
        found = [line.split() for line in text.splitlines()]
        if any(len(words) > 1 and not words[0].startswith("#") for words in found):
            open_secret(path).close()  # tokens are for their owner
    except (OSError, ValueError) as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    for number, words in enumerate(found, 1):
        if words and not words[0].startswith("#"):
            if len(words) > 2:
                raise UseError(f"{path}, line {number}: give a URL, and its token if it has one")
            yield _target(*words)


def _target(url: str, token: str | None = None) -> Target:
    """Raises: UseError."""
    if is_address(url):
        return Target(url.rstrip("/"), token)
    raise UseError(f"{url} {NO_REPORTER}, as http://127.0.0.1:8700")


_FAILURES = (
    *(_Failed, LogFailed, OSError, asyncio.IncompleteReadError),
    *(ValueError, RecursionError),  # of a length or a name that is none; of brackets in brackets
)
"""A target must not end by what it answers."""


@dataclass
class Pull:
    """Asks the targets, until the run has ended."""

    sources: Sources
    intake: Intake
    say: Callable[[str], None]
    web: Web
    """Says whether reports are taken now, and tells of the targets."""
    targets: dict[str, Target] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _of: dict[str, str] = field(default_factory=dict)
    """The target that reported a peer last."""

    def __post_init__(self) -> None:
        self._tls = ssl.create_default_context()
        self._began = time.monotonic()
        self._trouble: str | None = None
        self.web.targets = self.told

    @property
    def _period_s(self) -> float:
        return (self.intake.header.interval_us or 1) / 1_000_000

    def told(self) -> list[dict[str, Any]]:
        """Each target, and whether it answered."""
        return [target.told() for target in self.targets.values()]

    async def follow(self) -> None:
        """Ask again and again; files with targets are read again, too."""
        descriptors.allow(
            _FILES
        )  # a target that hangs keeps its connection for most of an interval
        try:
            while not self.intake.ended:
                self._look()
                await asyncio.sleep(min(self._period_s, 5.0))
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.Event().wait()

    def _look(self) -> None:
        """Begin and end with targets as they are named."""
        try:
            named, trouble = self.sources.targets(), None
        except UseError as error:
            named, trouble = self.targets, str(error)
        if trouble and trouble != self._trouble:
            self.say(f"the targets remain unchanged: {trouble}")
        self._trouble = trouble
        for url in [url for url in self.targets if url not in named]:
            del self.targets[url]
            self._tasks.pop(url).cancel()
        for url, target in named.items():
            known = self.targets.setdefault(url, target)
            known.token = target.token
            if url not in self._tasks:
                self._tasks[url] = asyncio.create_task(self._ask_again(known))

    async def _ask_again(self, target: Target) -> None:
        """Once in each interval, at the target's own time in it."""
        period_s = self._period_s
        while True:
            turns = (time.monotonic() - self._began) / period_s
            await asyncio.sleep(((target.phase - turns) % 1.0 or 1.0) * period_s)
            if self.web.has_room():
                await self._ask(target, _SHARE * period_s)
                if self.web.commands and target.up:
                    await self._command(target, _SHARE * period_s - (target.seconds or 0))

    async def _ask(self, target: Target, seconds: float) -> None:
        began, error = time.monotonic(), None
        try:
            async with asyncio.timeout(seconds):
                while await self._part(target):
                    pass
        except TimeoutError:
            error = f"no whole answer within {seconds:g} s"
        except _FAILURES as failed:
            error = str(failed) or type(failed).__name__
        if error and target.error is None:
            self.say(f"{target.url} gives no reports: {error}")
        target.up, target.error = error is None, error
        target.seconds = round(time.monotonic() - began, 4)

    async def _part(self, target: Target) -> bool:
        """Take the next part. Returns whether there is more already."""
        since = str(self.intake.read.get(target.url, ""))
        asked = f"{REPORT}?since={quote(since, safe='')}"
        body, headers = await self._exchange(target, asked, None, self.web.bodies.sent)
        try:
            found = await asyncio.to_thread(lines_of, body, self.web.bodies)
        except HTTPException as error:
            raise _Failed(error.detail) from None
        cursor = headers.get(CURSOR, "")
        if not cursor.isascii() or not cursor.isprintable() or len(cursor) > _CURSOR:
            raise _Failed("its cursor is too long, or no text")
        if not found and cursor == since:
            return False
        # The log is written as a whole, so it must not be left in the middle.
        done = await asyncio.shield(self.intake.take(found, {target.url: cursor}))
        self._of.update(dict.fromkeys(done.peers, target.url))
        target.reports += done.taken
        target.refused += done.refused
        if done.why:
            target.refusal = str(done.why[0]["reason"])
        return headers.get(MORE) == "1" and cursor != since

    async def _command(self, target: Target, seconds: float) -> None:
        """Give a target the commands to its peers, and note what was answered to them."""
        error, now = None, time.time()
        # The answer to what has just expired comes only with this question.
        waiting = {
            one.id: one.told(now)
            for one in self.intake.commands.open(now - 2 * self._period_s)
            if self._speaks(target, one.peer)
        }
        if not waiting:
            return
        told = json.dumps({"commands": list(waiting.values())}).encode()
        try:
            async with asyncio.timeout(seconds):
                body, _ = await self._exchange(target, COMMANDS, told, _ANSWERS)
                told_back = msgspec.json.decode(body, type=_Answers).answers
                answers = {one.id: one for one in told_back if one.id in waiting}
                # Together they wait for one sync.
                await asyncio.gather(*map(self._answered, answers.values()))
        except TimeoutError:
            error = f"no whole answer within {seconds:.3g} s"
        except (*_FAILURES, InputError) as failed:  # or it is no JSON, or no UTF-8
            error = str(failed) or type(failed).__name__
        if error and target.deaf is None:
            self.say(f"{target.url} takes no commands: {error}")
        target.deaf = error

    def _speaks(self, target: Target, peer: str) -> bool:
        """Whether a target may be the one of this peer: it has reported it, or no target has since
        this collector began. Targets leave out what is for others.
        """
        known = self._of.get(peer)
        return known == target.url or known not in self.targets

    async def _answered(self, told: _Answered) -> None:
        reason = told.reason[:_REASON] if told.reason is not None else None
        # The log is written as a whole, so it must not be left in the middle.
        await asyncio.shield(self.intake.answer(told.id, obeyed=told.obeyed, reason=reason))

    async def _exchange(
        self, target: Target, path: str, told: bytes | None, most: int
    ) -> tuple[bytes, http.client.HTTPMessage]:
        """The body, which has at most so many bytes, and the headers of the answer to GET, or to
        POST where something is told. Raises: _Failed, OSError, IncompleteReadError.
        """
        url = urlsplit(target.url)
        is_tls = url.scheme == "https"
        reader, writer = await asyncio.open_connection(
            url.hostname,
            url.port or (443 if is_tls else 80),
            ssl=self._tls if is_tls else None,
            limit=_HEAD,
        )
        try:
            writer.write(_request(target, path, told))
            status, headers = await _head(reader)
            if status != 200:
                raise _Failed(f"it answers {status}")
            return await _body(reader, headers, most), headers
        finally:
            writer.transport.abort()


def _request(target: Target, path: str, told: bytes | None) -> bytes:
    """HTTP/1.0: the answer ends with the connection, and comes in one piece."""
    url = urlsplit(target.url)
    headers: dict[str, object] = {"host": url.netloc, **bearer(target.token)}
    if told is None:
        headers |= {"accept": "application/x-ndjson", "accept-encoding": "gzip"}
    else:
        headers |= {"content-type": "application/json", "content-length": len(told)}
    head = [f"{'GET' if told is None else 'POST'} {url.path}{path} HTTP/1.0"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + (told or b"")


async def _head(reader: asyncio.StreamReader) -> tuple[int, http.client.HTTPMessage]:
    """Status and headers. Raises: _Failed, IncompleteReadError."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = text.partition(b"\r\n")
        version, status, *_ = first.split(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError
        return int(status), http.client.parse_headers(BytesIO(rest))
    except (ValueError, asyncio.LimitOverrunError, http.client.HTTPException):
        raise _Failed("its answer is not HTTP") from None


async def _body(reader: asyncio.StreamReader, headers: http.client.HTTPMessage, most: int) -> bytes:
    """Raises: _Failed where it is too large or not whole."""
    if headers.get("transfer-encoding"):
        raise _Failed("its answer comes in chunks, and HTTP/1.0 has none")
    found = bytearray()
    while chunk := await reader.read(_HEAD):
        found += chunk
        if len(found) > most:
            raise _Failed(f"its answer has more than {most:,} bytes")
    told = headers.get("content-length", "")
    if told.isdecimal() and int(told) != len(found):
        raise _Failed("its answer ends too early")
    return bytes(found)
