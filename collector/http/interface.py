"""The collector's HTTP interface (docs/collecting.md).

Without tokens it serves this machine only. A web page cannot post to it: the page's requests have a
foreign Host, and its forms cannot send the content type.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from vizpub.collector.acceptance import Acceptance
from vizpub.collector.commands import PeerCommand
from vizpub.collector.http.bodies import BodyLimits, is_packed, lines_in, read_body
from vizpub.collector.http.budget import ByteBudget, NoRoom
from vizpub.collector.http.prometheus import page
from vizpub.collector.http.tokens import ADMIN, READ, REPORT, Tokens
from vizpub.collector.inputs.kafka_topic import TopicFailed
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed
from vizpub.collector.progress import CollectionProgress
from vizpub.model.errors import InputError
from vizpub.reports.endpoint import names_this_machine

NDJSON = "application/x-ndjson"
_AGAIN_S = 5
"""The time that reporters are asked to wait."""
_MOST_LAG_S = 120.0
"""With a greater lag, the collector is not ready."""
_MOST_SENT, _MOST_WORK = 64 * 2**20, 64 * 2**20
"""Bytes of all requests at once."""
_SMALL = BodyLimits(sent=1 << 16, content=1 << 16)
"""Limits of a request without reports."""


class _CommandRequest(msgspec.Struct, forbid_unknown_fields=True):
    peer: str
    action: str
    seconds: float = 60.0


class _CommandAnswer(msgspec.Struct, forbid_unknown_fields=True):
    obeyed: bool
    reason: str | None = None


_Body = TypeVar("_Body", _CommandRequest, _CommandAnswer)
_REQUEST = msgspec.json.Decoder(_CommandRequest)
_ANSWER = msgspec.json.Decoder(_CommandAnswer)


@dataclass
class HttpInterface:
    """The application of one run."""

    intake: Intake
    progress: CollectionProgress
    tokens: Tokens | None = None
    """Null: everyone who reaches the port may do anything."""
    bodies: BodyLimits = field(default_factory=BodyLimits)
    fields: tuple[str, ...] = ()
    """The fields that peers are asked to report; empty = all that they know."""
    commands: bool = False
    """True if peers may be asked to leave or join."""
    targets: Callable[[], list[dict[str, Any]]] = list
    """Returns the targets that are asked for reports, with their last answers."""
    post: Callable[[Sequence[bytes]], Awaitable[Acceptance]] | None = None
    """Passes lines through a topic to this intake and those of other collectors; null = the lines
    go to this intake only."""
    obstacle: Callable[[], str | None] = lambda: None
    """Returns the reason why lines cannot be passed through the topic now, or null."""
    sent: ByteBudget = field(default_factory=lambda: ByteBudget(_MOST_SENT))
    """Bodies that are being processed, as they were sent."""
    work: ByteBudget = field(default_factory=lambda: ByteBudget(_MOST_WORK))
    """The content of bodies that are being judged and written."""

    def app(self) -> Starlette:
        """Return the application with its routes."""
        routes = [
            Route("/v1/runs/{run}/reports", self._post_reports, methods=["POST"]),
            Route("/v1/runs/{run}", self._get_run),
            Route("/v1/runs/{run}/events", self._get_events),
            Route("/v1/runs/{run}/commands", self._get_commands),
            Route("/v1/runs/{run}/commands", self._post_command, methods=["POST"]),
            Route("/v1/runs/{run}/commands/{number}", self._get_command),
            Route("/v1/runs/{run}/commands/{number}", self._post_answer, methods=["POST"]),
            Route("/v1/runs/{run}/targets", self._get_targets),
            Route("/v1/runs/{run}/topic", self._get_topic),
            Route("/metrics", self._get_metrics),
            Route("/healthz", self._get_health),
            Route("/readyz", self._get_readiness),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _refusal_response})

    def _check(self, request: Request, *kinds: str) -> None:
        """Check the caller's token and the run. Raises: HTTPException."""
        if self.tokens is None:
            if not names_this_machine(request.headers.get("host", "")):
                raise HTTPException(400, "without tokens, only this machine is served, by its name")
        elif not self.tokens.allows(_token(request), *kinds):
            raise HTTPException(
                401, f"give the token {' or '.join((*kinds, ADMIN))}: docs/collecting.md"
            )
        run = request.path_params.get("run", self.intake.place.run)
        if run != self.intake.place.run:
            raise HTTPException(404, f"no run '{run}' is collected here")

    async def _post_reports(self, request: Request) -> Response:
        self._check(request, REPORT)
        may_end = self.tokens is None or self.tokens.allows(_token(request))
        self.progress.posts += 1
        if _content_type(request) != NDJSON:
            raise HTTPException(415, f"reports are sent as {NDJSON}, a record on each line")
        if (busy := self._busy()) is not None:
            raise busy
        if why := self.obstacle():
            raise _later(503, f"{why}: send it again")
        with self.sent.growing() as sent:
            try:
                body = await read_body(request, self.bodies, sent.add)
            except NoRoom:
                raise _later(503, "the collector is busy: send it again") from None
            # The size of its content is unknown until it is decompressed.
            most = self.bodies.content if is_packed(body) else len(body)
            async with self.work.of(most) as part:
                lines = await lines_in(body, self.bodies)
                part.shrink(sum(map(len, lines)))
                try:
                    if self.post:
                        acceptance = await self.post(lines)
                    else:
                        acceptance = await self.intake.take(lines, may_end=may_end)
                except LogFailed as error:
                    raise _log_failed(error) from None
                except TopicFailed as error:
                    raise _later(503, f"{error}: send all of it again") from None
        return JSONResponse(acceptance.to_json(), 202)

    def has_room(self) -> bool:
        """Return True if reports are accepted now."""
        return self._busy() is None

    def _busy(self) -> HTTPException | None:
        """Return the reason why no reports are accepted now, or null."""
        intake = self.intake
        if self.progress.draining:
            return _later(503, "the collector is pausing: send it again")
        if self.progress.damaged:
            return _later(503, "the collector's log is damaged: repair it, then send it again")
        if intake.place.free() < intake.limits.reserve:
            return _later(503, "the collector's disk is full: send it again")
        if intake.limits.disk is not None and self.progress.disk >= intake.limits.disk:
            return _later(503, "the collection has reached --max-disk: raise it, and send it again")
        if self.progress.backlog >= intake.limits.log:
            return _later(429, "the run is behind its log: send it again")
        return None

    async def _get_targets(self, request: Request) -> Response:
        self._check(request, READ)
        return JSONResponse({"targets": self.targets()})

    async def _get_topic(self, request: Request) -> Response:
        self._check(request, READ)
        if not (topic := self.progress.topic()):
            raise HTTPException(404, "this collector reads no topic: see --kafka")
        return JSONResponse(topic)

    async def _get_run(self, request: Request) -> Response:
        self._check(request, REPORT, READ)
        header = {**self.intake.header.to_json(), "now_us": self.intake.clock.now_us}
        if self.fields:
            header["fields"] = list(self.fields)
        content = {"header": header, "progress": self.progress.summary(), "commands": self.commands}
        return JSONResponse(content)

    async def _get_events(self, request: Request) -> Response:
        self._check(request, READ)
        last = _number(request.headers.get("last-event-id", ""))

        async def event_lines() -> AsyncIterator[str]:
            """Yield rows as server-sent events; the id of a row is its interval."""
            async for row in self.progress.events(last):
                kind = row.pop("event")
                number = f"id: {row['interval']}\n" if kind == "interval" else ""
                yield f"event: {kind}\n{number}data: {json.dumps(row, default=str)}\n\n"

        headers = {"cache-control": "no-store"}
        return StreamingResponse(event_lines(), headers=headers, media_type="text/event-stream")

    async def _get_commands(self, request: Request) -> Response:
        self._check_commands(request, REPORT)
        now = time.time()
        commands = [one.summary(now) for one in self.intake.commands.open(now)]
        return JSONResponse({"commands": commands})

    async def _get_command(self, request: Request) -> Response:
        self._check_commands(request, READ)
        try:
            command = self.intake.commands.get(_command_in(request))
        except InputError as error:
            raise HTTPException(404, str(error)) from None
        return JSONResponse(command.summary(time.time()))

    async def _post_command(self, request: Request) -> Response:
        self._check_commands(request)
        command = await self._read_command(request, _REQUEST)
        queued = self.intake.queue_command(command.peer, command.action, command.seconds)
        return JSONResponse((await _await_written(queued)).summary(time.time()), 201)

    async def _post_answer(self, request: Request) -> Response:
        self._check_commands(request, REPORT)
        answer = await self._read_command(request, _ANSWER)
        noted = self.intake.note_answer(
            _command_in(request), obeyed=answer.obeyed, reason=answer.reason
        )
        return JSONResponse((await _await_written(noted)).summary(time.time()))

    def _check_commands(self, request: Request, *kinds: str) -> None:
        self._check(request, *kinds)
        if not self.commands:
            raise HTTPException(403, "this collector gives no commands: see --allow-commands")

    async def _read_command(self, request: Request, decoder: msgspec.json.Decoder[_Body]) -> _Body:
        """Read a small JSON object. Raises: HTTPException."""
        if _content_type(request) != "application/json":
            raise HTTPException(415, "commands are sent as application/json")
        lines = await lines_in(await read_body(request, _SMALL), _SMALL)
        try:
            return decoder.decode(b"\n".join(lines))
        except ValueError as error:  # it is no JSON, no UTF-8, or has another shape
            raise HTTPException(400, str(error)) from None

    async def _get_metrics(self, request: Request) -> Response:
        self._check(request, READ)
        text = page(self.intake, self.progress, self.targets())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def _get_health(self, _: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def _get_readiness(self, _: Request) -> Response:
        free, obstacle = self.intake.place.free(), self.obstacle()
        wrong = [
            (self.progress.draining, "it is pausing"),
            (free < self.intake.limits.reserve, "the disk is full"),
            (self.intake.log.failing, f"the log cannot be written: {self.intake.log.failing}"),
            (not self.progress.has_spark, "Spark does not answer"),
            (self.progress.lag > _MOST_LAG_S, "the run is behind"),
            (obstacle, obstacle),
        ]
        why = [str(text) for is_so, text in wrong if is_so]
        return PlainTextResponse("; ".join(why) or "ready", 503 if why else 200)


def _number(text: str) -> int | None:
    """Return the number in a header or a path; null if it is not a number of at most 19 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _command_in(request: Request) -> int:
    """Return the number of a command in a path. Raises: HTTPException."""
    if (number := _number(request.path_params["number"])) is None:
        raise HTTPException(404, "no such command is known")
    return number


def _token(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _await_written(command: Awaitable[PeerCommand]) -> PeerCommand:
    """Wait until a command is written. Raises: HTTPException if it is refused, or cannot be."""
    try:
        return await command
    except InputError as error:
        raise HTTPException(400, str(error)) from None
    except LogFailed as error:
        raise _log_failed(error) from None


def _log_failed(error: LogFailed) -> HTTPException:
    return _later(503, f"the log cannot be written ({error}): send all of it again")


def _later(code: int, why: str) -> HTTPException:
    return HTTPException(code, why, {"retry-after": str(_AGAIN_S)})


async def _refusal_response(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers: dict[str, str] = dict(error.headers or {})
    if error.status_code in (400, 408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    return JSONResponse({"error": error.detail}, error.status_code, headers)
