"""The collector's HTTP interface (docs/collecting.md).

Without tokens it serves this machine only, and a web page cannot post: its requests would have a
foreign Host, or a content type that a form cannot send.
"""

from __future__ import annotations

import ipaddress
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from collector.bodies import BodyLimits, read_lines
from collector.intake import Intake
from collector.log import LogFailed
from collector.progress import Progress
from collector.prometheus import page
from collector.tokens import READ, REPORT, Tokens

NDJSON = "application/x-ndjson"
_AGAIN_S = 5
"""What a reporter is asked to wait."""
_MOST_LAG_S = 120.0
"""Above it, the collector is not ready."""


@dataclass
class Web:
    """The application of one run."""

    intake: Intake
    progress: Progress
    tokens: Tokens | None = None
    """Null: whoever reaches the port may do anything."""
    bodies: BodyLimits = field(default_factory=BodyLimits)
    fields: tuple[str, ...] = ()
    """What peers are asked to report; none = all they know."""

    def app(self) -> Starlette:
        """The routes."""
        routes = [
            Route("/v1/runs/{run}/reports", self._reports, methods=["POST"]),
            Route("/v1/runs/{run}", self._run),
            Route("/v1/runs/{run}/events", self._events),
            Route("/metrics", self._metrics),
            Route("/healthz", self._healthy),
            Route("/readyz", self._ready),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _refused})

    def _check(self, request: Request, *kinds: str) -> None:
        """Raises: HTTPException where the caller may not do this, or the run is another one."""
        if self.tokens is None:
            if not _is_here(request.headers.get("host", "")):
                raise HTTPException(400, "without tokens, only this machine is served by its name")
        else:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self.tokens.allows(token.strip(), *kinds):
                raise HTTPException(
                    401, f"give the token to {' or '.join(kinds)}: docs/collecting.md"
                )
        run = request.path_params.get("run", self.intake.place.run)
        if run != self.intake.place.run:
            raise HTTPException(404, f"no run '{run}' is collected here")

    async def _reports(self, request: Request) -> Response:
        self._check(request, REPORT)
        self.progress.posts += 1
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != NDJSON:
            raise HTTPException(415, f"reports are sent as {NDJSON}, a record on each line")
        self._check_room()
        lines = await read_lines(request, self.bodies)
        try:
            taken = await self.intake.take(lines)
        except LogFailed as error:
            raise _later(
                503, f"the log cannot be written ({error}): send all of it again"
            ) from None
        return JSONResponse(taken.to_json(), 202)

    def _check_room(self) -> None:
        intake = self.intake
        if self.progress.draining:
            raise _later(503, "the collector is pausing: send it again")
        if shutil.disk_usage(intake.place.folder).free < intake.limits.reserve:
            raise _later(503, "the collector's disk is full: send it again")
        if self.progress.backlog >= intake.limits.log:
            raise _later(429, "the run is behind its log: send it again")

    async def _run(self, request: Request) -> Response:
        self._check(request, REPORT, READ)
        header = {**self.intake.header.to_json(), "now_us": self.intake.now_us}
        if self.fields:
            header["fields"] = list(self.fields)
        return JSONResponse({"header": header, "progress": self.progress.told()})

    async def _events(self, request: Request) -> Response:
        self._check(request, READ)
        after = request.headers.get("last-event-id", "")
        events = self.progress.events(int(after) if after.isdecimal() else None)
        return StreamingResponse(
            _as_events(events),
            headers={"cache-control": "no-store"},
            media_type="text/event-stream",
        )

    async def _metrics(self, request: Request) -> Response:
        self._check(request, READ)
        text = page(self.intake, self.progress)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def _healthy(self, _: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def _ready(self, _: Request) -> Response:
        free = shutil.disk_usage(self.intake.place.folder).free
        wrong = [
            (self.progress.draining, "it is pausing"),
            (free < self.intake.limits.reserve, "the disk is full"),
            (not self.progress.alive, "Spark does not run"),
            (self.progress.lag > _MOST_LAG_S, "the run is behind"),
        ]
        why = [text for is_so, text in wrong if is_so]
        return PlainTextResponse("; ".join(why) or "ready", 503 if why else 200)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_here(host: str) -> bool:
    """Whether a Host header names this machine."""
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host
    return is_loopback(name if host.startswith("[") else name.partition(":")[0])


def _later(code: int, why: str) -> HTTPException:
    return HTTPException(code, why, {"retry-after": str(_AGAIN_S)})


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers: dict[str, str] = dict(error.headers or {})
    if error.status_code in (400, 408, 413):
        headers["connection"] = "close"  # what is left of the body is not read
    return JSONResponse({"error": error.detail}, error.status_code, headers)


async def _as_events(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """As server-sent events; the id of a row is its interval."""
    async for row in events:
        kind = row.pop("event")
        number = f"id: {row['interval']}\n" if kind == "interval" else ""
        yield f"event: {kind}\n{number}data: {json.dumps(row, default=str)}\n\n"
