"""The page's HTTP interface: files of the page, and answers about runs.

It only reads, unless it may give commands to the peers of a run that is collected.

Without a token it serves this machine only, by its name. With one, a browser shows it once, in the
address, and has it in a cookie from then on.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from threading import Semaphore
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vizpub.explorer import answers, facts
from vizpub.explorer.answers import Answer
from vizpub.explorer.history import History, OverlayPart
from vizpub.explorer.messages import MessageFilter, MessageOrder
from vizpub.explorer.server import live
from vizpub.explorer.server.opened import OpenRuns, Window
from vizpub.explorer.tables import RowFilter, write_csv
from vizpub.model.errors import RunChanged, ServiceError, UnknownName, UseError, VizpubError
from vizpub.reports.endpoint import names_this_machine
from vizpub.runstore.stores.place import name_of

PAGE = Path(__file__).parents[1] / "page"
COOKIE = "vizpub_token"
_MOST_OF_A_COMMAND = 1_000
_AT_ONCE = Semaphore(os.cpu_count() or 1)
"""Answers that are computed at once: more are no faster, and each needs memory for its tables."""
POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
"""Of every answer."""
Endpoint = Callable[[Request], Response]
Reader = Callable[[Request], Any]
"""Reads what a question takes from a request. Raises: UseError."""


def app(workspace: Path, token: str | None = None, *, commands: bool = False) -> ASGIApp:
    """The application; null token = whoever reaches the port may read. With `commands`, whoever has
    the token may tell peers to leave and join.
    """
    runs = OpenRuns(workspace)

    async def list_runs(_: Request) -> Response:
        listed = await run_in_threadpool(facts.list_runs, workspace)
        return JSONResponse({"workspace": name_of(workspace), "runs": listed})

    def send_state(request: Request) -> Response:
        """Send the state of the run now."""
        run = runs.stored(request.path_params["run"])
        return JSONResponse(live.describe_state(run) | {"commands": commands})

    async def tell_peer(request: Request) -> Response:
        """Tell a peer to leave or to join."""
        command, run = await _json_object(request), request.path_params["run"]
        peer, action = command.get("peer"), command.get("action")
        if type(peer) is not int or type(action) is not str:
            raise UseError("give the number of a peer, and an action")
        return JSONResponse(await run_in_threadpool(live.tell_peer, workspace, run, peer, action))

    def send_command(request: Request) -> Response:
        """Send the outcome of a command."""
        number = _parse_whole(request.path_params["number"], "number")
        return JSONResponse(live.find_command(workspace, request.path_params["run"], number))

    def history_of(request: Request) -> History:
        parameters = request.query_params
        return runs.history(request.path_params["run"], parameters.get("of"), _window(parameters))

    def send_csv(request: Request) -> Response:
        """All rows of a table, as a file."""
        run, name = history_of(request).run, _text("table")(request)
        lines = write_csv(run, name, _row_filter(request), _row_order(request))
        # The head comes now, so that what is refused is an error, not the end of a file.
        content = chain([next(lines)], lines)
        file = quote(f"{run.facts.name}-{name.replace('/', '-')}.csv")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}"}
        return StreamingResponse(content, media_type="text/csv; charset=utf-8", headers=headers)

    inner = Starlette(
        routes=[
            Route("/api/runs", list_runs),
            *(
                Route(f"/api/runs/{{run}}{path}", _answering(runs, *question))
                for path, question in QUESTIONS.items()
            ),
            Route("/api/runs/{run}/rows.csv", send_csv),
            Route("/api/runs/{run}/state", send_state),
            Route("/api/runs/{run}/commands", tell_peer, methods=["POST"]),
            Route("/api/runs/{run}/commands/{number}", send_command),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ],
        exception_handlers={VizpubError: _answer_error, HTTPException: _answer_http_error},
    )
    return _Guard(inner, token, commands=commands)


def _answering(runs: OpenRuns, question: Callable[..., Answer], *readers: Reader) -> Endpoint:
    # Not async: Starlette calls it in a thread, and answers others meanwhile.
    def answer(request: Request) -> Response:
        run, parameters = request.path_params["run"], request.query_params
        window = _window(parameters)
        history = runs.history(run, parameters.get("of"), window)
        asked = [read(request) for read in readers]
        if "since" in parameters and question in GROWING:
            asked.append(runs.older(run, parameters["since"], window))
        with _AT_ONCE:
            media_type, content = question(history, *asked)
        return Response(content, media_type=media_type)

    return answer


async def _json_object(request: Request) -> dict[str, Any]:
    """The body of a command. Raises: UseError."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_OF_A_COMMAND:
            raise UseError(f"a command has at most {_MOST_OF_A_COMMAND} bytes")
    try:
        command = json.loads(body)
    except ValueError as error:
        raise UseError("a command is JSON") from error
    if not isinstance(command, dict):
        raise UseError("a command is a JSON object")
    return command


def _text(name: str) -> Reader:
    """A reader of a parameter of the address, which must be there."""

    def read(request: Request) -> str:
        value: str | None = request.query_params.get(name)
        if value is None:
            raise UseError(f"give {name}")
        return value

    return read


def _names(request: Request) -> list[str]:
    """The columns of a question, in order."""
    return request.query_params.getlist("name")


def _number(name: str) -> Reader:
    """A reader of a parameter that is a whole number; it raises UseError for another."""
    read_text = _text(name)
    return lambda request: _parse_whole(read_text(request), name)


def _parse_whole(text: str, name: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise UseError(f"{name} '{text[:40]}' is no whole number")
    return int(text)


def _window(parameters: QueryParams) -> Window:
    """The intervals of a question, such as 10-20. Raises: UseError."""
    if "intervals" not in parameters:
        return None
    first, _, last = parameters["intervals"].partition("-")
    return _parse_whole(first, "interval"), _parse_whole(last, "interval")


def _overlay_part(request: Request) -> OverlayPart:
    parameters = request.query_params
    return OverlayPart(
        tuple(parameters.getlist("layer")) or None,
        tuple(_parse_whole(text, "topic") for text in parameters.getlist("topic")),
        parameters.get("how") == "all",
        parameters.get("relays") == "1",
    )


def _message_filter(request: Request) -> MessageFilter:
    parameters = request.query_params
    topic, publisher = (
        _number(name)(request) if name in parameters else None for name in ("topic", "publisher")
    )
    return MessageFilter(topic, publisher, parameters.get("text", ""))


def _message_order(request: Request, by: str = "message") -> MessageOrder:
    parameters = request.query_params
    first = _number("first")(request) if "first" in parameters else 0
    return MessageOrder(parameters.get("by", by), parameters.get("down") == "true", first)


def _row_order(request: Request) -> MessageOrder:
    return _message_order(request, by="")


def _row_filter(request: Request) -> RowFilter:
    parameters = request.query_params
    names = ("peer", "other_end", "topic", "message", "interval")
    numbers = {name: _number(name)(request) for name in names if name in parameters}
    return RowFilter(**numbers, text=parameters.get("text", ""))


QUESTIONS: dict[str, tuple[Callable[..., Answer], *tuple[Reader, ...]]] = {
    "": (answers.describe_run,),
    "/overlay": (answers.overlay, _overlay_part),
    "/places/{layout}": (answers.positions, lambda request: request.path_params["layout"]),
    "/column": (answers.block, _text("name"), _number("block")),
    "/extent": (answers.extent, _text("name")),
    "/curve": (answers.curve, _text("name")),
    "/peer": (answers.peer, _number("peer"), _number("tick")),
    "/peer/curves": (answers.peer_curves, _number("peer"), _names),
    "/topic/curves": (answers.topic_curves, _number("topic"), _names),
    "/link/curves": (answers.link_curves, _number("src"), _number("dst"), _names),
    "/path": (answers.path, _number("from"), _number("to"), _number("tick"), _overlay_part),
    "/messages": (answers.messages_of, _message_filter, _message_order),
    "/coverage": (answers.coverage, _message_filter, _text("along")),
    "/message": (answers.message_spread, _number("message")),
    "/missed": (answers.missed_peers, _number("message")),
    "/tables": (answers.table_list,),
    "/rows": (answers.table_rows, _text("table"), _row_filter, _row_order),
}
"""The questions about a run by their paths, each with the readers of what it takes."""

GROWING = (answers.describe_run, answers.overlay)
"""Those whose answers may be what has changed since a page asked last."""

_CODES: tuple[tuple[type[VizpubError], int], ...] = (
    (RunChanged, 409),
    (UnknownName, 404),
    (UseError, 400),
    (ServiceError, 502),
    (VizpubError, 500),
)


def _answer_error(_: Request, error: Exception) -> Response:
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return JSONResponse({"error": str(error), "kind": type(error).__name__}, code)


def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


class _Guard:
    """Answers nobody but those who may ask, and adds the headers of safety."""

    def __init__(self, inner: ASGIApp, token: str | None, *, commands: bool) -> None:
        self._inner, self._token, self._commands = inner, token, commands

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = self._refusal(Request(scope)) or self._inner

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        await answer(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD") and (refused := self._refusal_to_write(request)):
            return refused
        if self._token is None:
            if names_this_machine(request.headers.get("host", "")):
                return None
            why = "without a token, only this machine is served, by its name"
            return JSONResponse({"error": why}, 400)
        # Browsers give a host's cookies to the servers at all of its ports.
        cookie = f"{COOKIE}_{request.url.port or 80}"
        shown = request.query_params.get("token")
        if shown is not None and _equal(shown, self._token):
            answer = RedirectResponse(request.url.path, 303)
            answer.set_cookie(cookie, self._token, httponly=True, samesite="strict")
            return answer
        if _equal(request.cookies.get(cookie, ""), self._token):
            return None
        return JSONResponse({"error": "open the address that vizpub explore printed"}, 401)

    def _refusal_to_write(self, request: Request) -> Response | None:
        """A command comes from this very page, and is no form of another one's."""
        if not self._commands or self._token is None or request.method != "POST":
            return JSONResponse({"error": "this server only reads"}, 405)
        origin, host = request.headers.get("origin"), request.headers.get("host")
        if host is None or origin not in (f"http://{host}", f"https://{host}"):
            return JSONResponse({"error": "commands come from this page alone"}, 403)
        if request.headers.get("content-type") != "application/json":
            return JSONResponse({"error": "a command is application/json"}, 415)
        return None


def _equal(one: str, another: str) -> bool:
    return hmac.compare_digest(one.encode(), another.encode())
