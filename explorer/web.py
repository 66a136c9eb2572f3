"""The page's HTTP interface: files of the page, and answers about runs.

It only reads, unless it may give commands to the peers of a run that is collected.

Without a token it serves this machine only, by its name. With one, a browser shows it once, in the
address, and has it in a cookie from then on.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from http.cookies import SimpleCookie
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vizpub.explorer import answers, facts, live
from vizpub.explorer.answers import Answer, whole
from vizpub.explorer.history import Chosen, History
from vizpub.explorer.messages import Order, Wanted
from vizpub.explorer.opened import OpenRuns
from vizpub.explorer.tables import RowFilter, write_csv
from vizpub.model.errors import RunChanged, ServiceError, UnknownName, UseError, VizpubError
from vizpub.reports.endpoint import names_this_machine
from vizpub.runstore.store import open_run

PAGE = Path(__file__).parent / "page"
COOKIE = "vizpub_token"
_MOST_OF_A_COMMAND = 1_000
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


def app(workspace: Path, token: str | None = None, *, commands: bool = False) -> ASGIApp:
    """The application; null token = whoever reaches the port may read. With `commands`, whoever has
    the token may tell peers to leave and join.
    """
    return _Guard(_Web(OpenRuns(workspace), commands=commands).app(), token, commands=commands)


class _Web:
    def __init__(self, runs: OpenRuns, *, commands: bool) -> None:
        self._runs, self._commands = runs, commands

    def app(self) -> Starlette:
        of_run = "/api/runs/{run}"
        asked: dict[str, Callable[[History, Request], Answer]] = {
            f"{of_run}": lambda history, _: answers.described(history),
            f"{of_run}/overlay": lambda history, of: answers.overlay(history, _chosen(of)),
            f"{of_run}/places/{{layout}}": lambda history, of: answers.positions(
                history, of.path_params["layout"]
            ),
            f"{of_run}/column": lambda history, of: answers.block(
                history, _text(of, "name"), _whole(of, "block")
            ),
            f"{of_run}/extent": lambda history, of: answers.extent(history, _text(of, "name")),
            f"{of_run}/curve": lambda history, of: answers.curve(history, _text(of, "name")),
            f"{of_run}/peer": lambda history, of: answers.peer(
                history, _whole(of, "peer"), _whole(of, "tick"), _chosen(of)
            ),
            f"{of_run}/peer/curve": lambda history, of: answers.peer_curve(
                history, _whole(of, "peer"), _text(of, "name")
            ),
            f"{of_run}/path": lambda history, of: answers.path(
                history,
                (_whole(of, "from"), _whole(of, "to")),
                _whole(of, "tick"),
                _chosen(of),
            ),
            f"{of_run}/messages": lambda history, of: answers.messages_of(
                history, _wanted(of), _order(of)
            ),
            f"{of_run}/coverage": lambda history, of: answers.coverage(
                history, _wanted(of), _text(of, "along")
            ),
            f"{of_run}/message": lambda history, of: answers.message(
                history, _whole(of, "message")
            ),
            f"{of_run}/tables": lambda history, _: answers.table_list(history),
            f"{of_run}/rows": lambda history, of: answers.table_rows(
                history, _text(of, "table"), _row_filter(of), _order(of, "")
            ),
            f"{of_run}/missed": lambda history, of: answers.missed(history, _whole(of, "message")),
        }
        return Starlette(
            routes=[
                Route("/api/runs", self._list),
                *(Route(path, self._answering(question)) for path, question in asked.items()),
                Route(f"{of_run}/rows.csv", self._csv),
                Route(f"{of_run}/state", self._state),
                Route(f"{of_run}/commands", self._tell, methods=["POST"]),
                Route(f"{of_run}/commands/{{number}}", self._command),
                Mount("/", StaticFiles(directory=PAGE, html=True)),
            ],
            exception_handlers={VizpubError: _failed, HTTPException: _refused},
        )

    async def _list(self, _: Request) -> Response:
        return JSONResponse(
            {
                "workspace": str(self._runs.workspace),
                "runs": await run_in_threadpool(facts.listed, self._runs.workspace),
            }
        )

    def _state(self, request: Request) -> Response:
        """How far the run is now."""
        run = open_run(self._runs.workspace, request.path_params["run"])
        return JSONResponse(live.describe_state(run) | {"commands": self._commands})

    async def _tell(self, request: Request) -> Response:
        """Tell a peer to leave or to join."""
        told = await _json_object(request)
        peer, action = told.get("peer"), told.get("action")
        if type(peer) is not int or type(action) is not str:
            raise UseError("give the number of a peer, and an action")
        where = self._runs.workspace, request.path_params["run"]
        return JSONResponse(await run_in_threadpool(live.tell_peer, *where, peer, action))

    def _command(self, request: Request) -> Response:
        """What became of a command."""
        number = whole(request.path_params["number"], "number")
        run = request.path_params["run"]
        return JSONResponse(live.find_command(self._runs.workspace, run, number))

    def _csv(self, request: Request) -> Response:
        """All rows of a table, as a file."""
        history = self._history(request)
        name = _text(request, "table")
        lines = write_csv(history.run, name, _row_filter(request), _order(request, ""))
        # The head comes now, so that what is refused is an error, not the end of a file.
        content = chain([next(lines)], lines)
        file = quote(f"{history.run.facts.name}-{name.replace('/', '-')}.csv")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}"}
        return StreamingResponse(content, media_type="text/csv; charset=utf-8", headers=headers)

    def _history(self, request: Request) -> History:
        return self._runs.history(request.path_params["run"], request.query_params.get("of"))

    def _answering(self, question: Callable[[History, Request], Answer]) -> Callable[..., Any]:
        """In a thread: others are answered meanwhile."""

        def answer(request: Request) -> Response:
            media_type, content = question(self._history(request), request)
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
        told = json.loads(body)
    except ValueError as error:
        raise UseError("a command is JSON") from error
    if not isinstance(told, dict):
        raise UseError("a command is a JSON object")
    return told


def _chosen(request: Request) -> Chosen:
    given = request.query_params
    return Chosen(
        tuple(given.getlist("layer")) or None,
        tuple(whole(text, "topic") for text in given.getlist("topic")),
        given.get("how") == "all",
    )


def _wanted(request: Request) -> Wanted:
    given = request.query_params
    topic, publisher = (
        _whole(request, name) if name in given else None for name in ("topic", "publisher")
    )
    return Wanted(topic, publisher, given.get("text", ""))


def _order(request: Request, by: str = "message") -> Order:
    given = request.query_params
    first = _whole(request, "first") if "first" in given else 0
    return Order(given.get("by", by), given.get("down") == "true", first)


def _row_filter(request: Request) -> RowFilter:
    given = request.query_params
    names = ("peer", "topic", "message", "interval")
    numbers = {name: _whole(request, name) for name in names if name in given}
    return RowFilter(**numbers, text=given.get("text", ""))


def _text(request: Request, name: str) -> str:
    found = request.query_params.get(name)
    if found is None:
        raise UseError(f"give {name}")
    return found


def _whole(request: Request, name: str) -> int:
    return whole(_text(request, name), name)


_CODES: tuple[tuple[type[VizpubError], int], ...] = (
    (RunChanged, 409),
    (UnknownName, 404),
    (UseError, 400),
    (ServiceError, 502),
    (VizpubError, 500),
)


def _failed(_: Request, error: Exception) -> Response:
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return JSONResponse({"error": str(error), "kind": type(error).__name__}, code)


def _refused(_: Request, error: Exception) -> Response:
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
                given = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *given]
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
        given = request.query_params.get("token")
        if given is not None and _equal(given, self._token):
            answer = RedirectResponse(request.url.path, 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        kept = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
        if kept is not None and _equal(kept.value, self._token):
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


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
