"""Asks peers for their reports: `GET URL/report?since=CURSOR` of each target in every interval.

Each target has its own time within the interval, so that a thousand are not asked at once, and must
answer within the interval. An answer and the next cursor are one write to the log, so after a kill
nothing is missing or asked for twice. While the collector accepts nothing, it asks nobody: targets
keep their reports.

After its reports a target gets the commands to its peers, until it has answered them.
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

from vizpub.collector.http.bodies import lines_of
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.http.listener import allow_descriptors
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed
from vizpub.machine.files import text_of
from vizpub.machine.private import open_secret
from vizpub.model.errors import InputError, UseError, cause_of
from vizpub.reports.endpoint import bearer, is_address
from vizpub.reports.pulled import COMMANDS_PATH, CURSOR, MORE, REPORT_PATH

NO_REPORTER = "is not the URL of a reporter"

_SHARE = 0.8
"""The share of the interval in which a target must answer."""
_HEAD = 1 << 16
"""Bytes of an answer's head."""
_CURSOR = 256
"""Characters of a cursor."""
_ANSWERS = 1 << 20
"""Bytes of a target's answers to commands."""
_FILES = 1 << 16
"""Connections of this process, if the system allows as many."""


class _TargetFailed(Exception):
    """The reason why a target gave nothing."""


class _CommandAnswer(msgspec.Struct, forbid_unknown_fields=True):
    id: int
    obeyed: bool
    reason: str | None = None


class _CommandAnswers(msgspec.Struct, forbid_unknown_fields=True):
    answers: list[_CommandAnswer]


_DECODER = msgspec.json.Decoder(_CommandAnswers)


@dataclass
class PullTarget:
    """A reporter to ask, with its last answers."""

    url: str
    token: str | None = None
    up: bool | None = None
    """True if it answered the last time; null = it was not asked yet."""
    seconds: float | None = None
    """The duration of the last answer, or of the last failure."""
    error: str | None = None
    reports: int = 0
    refused: int = 0
    refusal: str | None = None
    """The last reason of a refused line."""
    deaf: str | None = None
    """The reason why it accepted no commands the last time; null = it did, or there were none."""

    @property
    def phase(self) -> float:
        """Its own time in the interval, from 0 to 1."""
        return zlib.crc32(self.url.encode()) / 2**32

    def summary(self) -> dict[str, Any]:
        """Return its state for readers."""
        shown = ("url", "up", "seconds", "error", "reports", "refused", "refusal", "deaf")
        return {name: getattr(self, name) for name in shown}


@dataclass(frozen=True)
class TargetList:
    """The names of the targets: URLs, or files with a URL on each line."""

    names: tuple[str, ...]

    def targets(self) -> dict[str, PullTarget]:
        """Read the current targets, by URL. Raises: UseError."""
        targets_by_url: dict[str, PullTarget] = {}
        for name in self.names:
            for target in [_target(name)] if "://" in name else _targets_in(Path(name)):
                targets_by_url[target.url] = target
        return targets_by_url


def _targets_in(path: Path) -> Iterable[PullTarget]:
    """Yield the targets of a file, in lines of `URL` or `URL TOKEN`; `#` begins a comment.

    Raises: UseError.
    """
    try:
        text = text_of(path)
        words_by_line = [line.split() for line in text.splitlines()]
        if any(len(words) > 1 and not words[0].startswith("#") for words in words_by_line):
            open_secret(path).close()  # tokens are for their owner
    except (OSError, ValueError) as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    for number, words in enumerate(words_by_line, 1):
        if words and not words[0].startswith("#"):
            if len(words) > 2:
                raise UseError(f"{path}, line {number}: give a URL, and its token if it has one")
            yield _target(*words)


def _target(url: str, token: str | None = None) -> PullTarget:
    """Return a target. Raises: UseError if the URL cannot be requested."""
    if is_address(url):
        return PullTarget(url.rstrip("/"), token)
    raise UseError(f"{url} {NO_REPORTER}, as http://127.0.0.1:8700")


_FAILURES = (
    *(_TargetFailed, LogFailed, OSError, asyncio.IncompleteReadError),
    *(ValueError, RecursionError),  # of an invalid length or name; of brackets in brackets
)
"""Errors by the answer of a target, which must not end the task that asks it."""


@dataclass
class PullInput:
    """Asks the targets until the run has ended."""

    sources: TargetList
    intake: Intake
    say: Callable[[str], None]
    web: HttpInterface
    """Says whether reports are taken now, and tells of the targets."""
    targets: dict[str, PullTarget] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _target_of: dict[str, str] = field(default_factory=dict)
    """The target that reported a peer last."""

    def __post_init__(self) -> None:
        self._tls = ssl.create_default_context()
        self._began = time.monotonic()
        self._trouble: str | None = None
        self.web.targets = self.summary

    @property
    def _period_s(self) -> float:
        return (self.intake.header.interval_us or 1) / 1_000_000

    def summary(self) -> list[dict[str, Any]]:
        """Return the state of each target, for readers."""
        return [target.summary() for target in self.targets.values()]

    async def follow(self) -> None:
        """Ask all targets in each interval, and read files with targets again."""
        allow_descriptors(_FILES)  # one that hangs keeps its connection for most of an interval
        try:
            while not self.intake.ended:
                self._update_targets()
                await asyncio.sleep(min(self._period_s, 5.0))
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.Event().wait()

    def _update_targets(self) -> None:
        """Begin with new targets, and end with those that are not listed any more."""
        try:
            listed, trouble = self.sources.targets(), None
        except UseError as error:
            listed, trouble = self.targets, str(error)
        if trouble and trouble != self._trouble:
            self.say(f"the targets remain unchanged: {trouble}")
        self._trouble = trouble
        for url in [url for url in self.targets if url not in listed]:
            del self.targets[url]
            self._tasks.pop(url).cancel()
        for url, target in listed.items():
            current = self.targets.setdefault(url, target)
            current.token = target.token
            if url not in self._tasks:
                self._tasks[url] = asyncio.create_task(self._ask_every_interval(current))

    async def _ask_every_interval(self, target: PullTarget) -> None:
        """Ask a target in each interval, at its own time."""
        period_s = self._period_s
        while True:
            turns = (time.monotonic() - self._began) / period_s
            await asyncio.sleep(((target.phase - turns) % 1.0 or 1.0) * period_s)
            if self.web.has_room():
                await self._take_all(target, _SHARE * period_s)
                if self.web.commands and target.up:
                    await self._command(target, _SHARE * period_s - (target.seconds or 0))

    async def _take_all(self, target: PullTarget, seconds: float) -> None:
        began, error = time.monotonic(), None
        try:
            async with asyncio.timeout(seconds):
                while await self._take_part(target):
                    pass
        except TimeoutError:
            error = f"no whole answer within {seconds:g} s"
        except _FAILURES as failed:
            error = str(failed) or type(failed).__name__
        if error and target.error is None:
            self.say(f"{target.url} gives no reports: {error}")
        target.up, target.error = error is None, error
        target.seconds = round(time.monotonic() - began, 4)

    async def _take_part(self, target: PullTarget) -> bool:
        """Take the next part. Returns True if there is more already."""
        since = str(self.intake.positions.get(target.url, ""))
        path = f"{REPORT_PATH}?since={quote(since, safe='')}"
        body, headers = await self._exchange(target, path, None, self.web.bodies.sent)
        try:
            report_lines = await asyncio.to_thread(lines_of, body, self.web.bodies)
        except HTTPException as error:
            raise _TargetFailed(error.detail) from None
        cursor = headers.get(CURSOR, "")
        if not cursor.isascii() or not cursor.isprintable() or len(cursor) > _CURSOR:
            raise _TargetFailed("its cursor is too long, or no text")
        if not report_lines and cursor == since:
            return False
        # What the log writes as a whole must not be interrupted.
        acceptance = await asyncio.shield(self.intake.take(report_lines, {target.url: cursor}))
        self._target_of.update(dict.fromkeys(acceptance.peers, target.url))
        target.reports += acceptance.accepted
        target.refused += acceptance.refused
        if acceptance.refusals:
            target.refusal = str(acceptance.refusals[0]["reason"])
        return headers.get(MORE) == "1" and cursor != since

    async def _command(self, target: PullTarget, seconds: float) -> None:
        """Send a target the commands to its peers, and note its answers.

        Its peers are those that it has reported, or that no target has since this collector began.
        Targets leave out commands to other peers.
        """
        error, now = None, time.time()
        # The answers to commands that have just expired come only with this request.
        waiting = {
            one.id: one.summary(now)
            for one in self.intake.commands.open(now - 2 * self._period_s)
            if (url := self._target_of.get(one.peer)) == target.url or url not in self.targets
        }
        if not waiting:
            return
        content = json.dumps({"commands": list(waiting.values())}).encode()
        try:
            async with asyncio.timeout(seconds):
                body, _ = await self._exchange(target, COMMANDS_PATH, content, _ANSWERS)
                answered = _DECODER.decode(body).answers
                answers = {one.id: one for one in answered if one.id in waiting}
                notes = (
                    self.intake.note_answer(one.id, obeyed=one.obeyed, reason=one.reason)
                    for one in answers.values()
                )
                # What the log writes as a whole must not be interrupted.
                await asyncio.gather(*map(asyncio.shield, notes))
        except TimeoutError:
            error = f"no whole answer within {seconds:.3g} s"
        except (*_FAILURES, InputError) as failed:  # or it is no JSON, or no UTF-8
            error = str(failed) or type(failed).__name__
        if error and target.deaf is None:
            self.say(f"{target.url} takes no commands: {error}")
        target.deaf = error

    async def _exchange(
        self, target: PullTarget, path: str, content: bytes | None, most: int
    ) -> tuple[bytes, http.client.HTTPMessage]:
        """Return the body, of at most so many bytes, and the headers of the answer to GET, or to
        POST with a content. It is HTTP/1.0: the answer ends with the connection, and has no chunks.

        Raises: _TargetFailed, OSError, IncompleteReadError.
        """
        url = urlsplit(target.url)
        request_headers = {"host": url.netloc, **bearer(target.token)}
        if content is None:
            request_headers |= {"accept": "application/x-ndjson", "accept-encoding": "gzip"}
        else:
            request_headers |= {"content-type": "application/json"}
            request_headers |= {"content-length": str(len(content))}
        head = [f"{'GET' if content is None else 'POST'} {url.path}{path} HTTP/1.0"]
        head += [f"{name}: {value}" for name, value in request_headers.items()]
        is_tls = url.scheme == "https"
        reader, writer = await asyncio.open_connection(
            url.hostname,
            url.port or (443 if is_tls else 80),
            ssl=self._tls if is_tls else None,
            limit=_HEAD,
        )
        try:
            writer.write("\r\n".join([*head, "", ""]).encode() + (content or b""))
            status, headers = await _read_head(reader)
            if status != 200:
                raise _TargetFailed(f"it answers {status}")
            return await _read_body(reader, headers, most), headers
        finally:
            writer.transport.abort()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, http.client.HTTPMessage]:
    """Return status and headers. Raises: _TargetFailed, IncompleteReadError."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = text.partition(b"\r\n")
        version, status, *_ = first.split(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError
        return int(status), http.client.parse_headers(BytesIO(rest))
    except (ValueError, asyncio.LimitOverrunError, http.client.HTTPException):
        raise _TargetFailed("its answer is not HTTP") from None


async def _read_body(
    reader: asyncio.StreamReader, headers: http.client.HTTPMessage, most: int
) -> bytes:
    """Return the body. Raises: _TargetFailed if it is too large or not whole."""
    if headers.get("transfer-encoding"):
        raise _TargetFailed("its answer comes in chunks, and HTTP/1.0 has none")
    body = bytearray()
    while chunk := await reader.read(_HEAD):
        body += chunk
        if len(body) > most:
            raise _TargetFailed(f"its answer has more than {most:,} bytes")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) != len(body):
        raise _TargetFailed("its answer ends too early")
    return bytes(body)
