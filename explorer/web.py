"""The page's HTTP interface: files of the page, and answers about runs. It only reads.

Without a token it serves this machine only, by its name. With one, a browser shows it once, in the
address, and has it in a cookie from then on.
"""

from __future__ import annotations

import hmac
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

from vizpub.explorer import answers, facts
from vizpub.explorer.answers import Answer, whole
from vizpub.explorer.history import Chosen, History
from vizpub.explorer.messages import Order, Wanted
from vizpub.explorer.opened import OpenRuns
from vizpub.explorer.tables import RowFilter, write_csv
from vizpub.model.errors import RunChanged, UnknownName, UseError, VizpubError
from vizpub.reports.endpoint import names_this_machine

PAGE = Path(__file__).parent / "page"
COOKIE = "vizpub_token"
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


def app(workspace: Path, token: str | None = None) -> ASGIApp:
    """The application; null token = whoever reaches the port may read."""
    return _Guard(_Web(OpenRuns(workspace)).app(), token)


class _Web:
    def __init__(self, runs: OpenRuns) -> None:
        self._runs = runs

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

    def __init__(self, inner: ASGIApp, token: str | None) -> None:
        self._inner, self._token = inner, token

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
        if request.method not in ("GET", "HEAD"):
            return JSONResponse({"error": "this server only reads"}, 405)
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


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
