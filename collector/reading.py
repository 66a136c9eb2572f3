"""What a command asks a collector that runs: its progress, what happens, and to tell a peer."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from collector.place import Place
from collector.tokens import ADMIN
from ingest.reports.endpoint import (
    IS_NO_COLLECTOR,
    MOST_ANSWER,
    NO_COLLECTOR,
    NO_URL,
    bearer,
    is_address,
    reason,
    run_at,
)
from model.errors import ServiceError, UseError, cause_of
from model.private import read_private

GONE = "is gone"
PAUSED = "has paused"


TOKEN = "VIZPUB_TOKEN"
"""The variable with the token for a collector elsewhere."""
_TIMEOUT_S = 30.0
"""That a collector may be silent. It tells readers of events something every few seconds."""
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
"""Before a collector that went away is asked again."""
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
Event = tuple[str, dict[str, Any]]
"""A kind, and what is told."""


@dataclass(frozen=True)
class Collector:
    """A collector by the URL of its run."""

    url: str
    token: str | None = None
    certificate: str | None = None
    """A file whose first certificate is trusted, whoever signed it and whatever host it names."""

    def __post_init__(self) -> None:
        """Raises: UseError."""
        try:
            run_at(self.url)
            bearer(self.token)
        except ValueError as error:
            raise UseError(str(error)) from None

    @property
    def context(self) -> ssl.SSLContext | None:
        """What trusts the certificate; null = what this machine trusts. Raises: UseError."""
        return _trusting(Path(self.certificate)) if self.certificate else None

    def get(self) -> dict[str, Any]:
        """`header` and `progress`. Raises: ServiceError, UseError."""
        found = _object(self, "")
        if not found.keys() >= {"header", "progress"}:
            raise _no_collector(self)
        return found

    def tell(self, peer: str, action: str, seconds: float) -> dict[str, Any]:
        """Give a peer a command, which has `id` and `state`. Raises: ServiceError, UseError."""
        asked = {"peer": peer, "action": action, "seconds": seconds}
        return _object(self, "/commands", asked)

    def command(self, number: int) -> dict[str, Any]:
        """What became of a command. Raises: ServiceError, UseError."""
        return _object(self, f"/commands/{number}")

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Events, `interval` or `status`, until the run has ended. Raises: ServiceError where the
        collector goes away before; UseError.
        """
        told = {} if after is None else {"last-event-id": str(after)}
        with _answer(self, "/events", told) as answer:
            kind = state = ""
            while line := _line(self, answer):
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    found = json.loads(value)
                    state = found.get("state", state)
                    yield kind, found
        if state != "ended":
            what = PAUSED if state == "pausing" else GONE
            raise ServiceError(f"the collector at {self.url} {what}")


def followed(find: Callable[[], Collector], ended: Callable[[], bool]) -> Iterator[Event]:
    """The events of a collector until the run has ended, which `ended` knows where none runs. One
    that goes away is asked again, later each time, and goes on after the last interval; each time,
    an event `gone` has `why` and `wait_s`. Raises: ServiceError, UseError where none answers at
    first.
    """
    after, wait_s = None, 0.0
    while True:
        try:
            for kind, told in find().events(after):
                wait_s = _FIRST_WAIT_S
                after = told["interval"] if kind == "interval" else after
                yield kind, told
            return
        except (ServiceError, UseError) as error:
            if not wait_s:
                raise
            if ended():
                return
            yield "gone", {"why": str(error), "wait_s": wait_s}
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, _MOST_WAIT_S)


def check_url(url: str) -> str:
    """The URL of a run, as it is. Raises: UseError."""
    if not is_address(url) or "/runs/" not in urlsplit(url).path:
        raise UseError(
            f"'{url}' {NO_URL}; give it as `vizpub collect` shows it, for example "
            "http://127.0.0.1:8600/v1/runs/lab"
        )
    return url


def collector_of(place: Place, url: str | None = None, kind: str = ADMIN) -> Collector:
    """The collector of a workspace's run, with the token of that kind, or the one at a URL.

    Raises: UseError where none runs, or others could have said where.
    """
    token = os.environ.get(TOKEN)
    if url:
        check_url(url)
        return Collector(url.rstrip("/"), token)
    listener = place.listener()
    if listener is None or not listener.listens():
        raise UseError(
            f"no collector of run '{place.run}' is running; start one: vizpub collect {place.run}"
        )
    if listener.tokens and token is None:
        try:
            token = read_private(place.tokens / kind)
        except FileNotFoundError as error:
            raise UseError(f"{error.filename} {GONE}: give the token in {TOKEN}") from None
    return Collector(listener.url, token, listener.certificate)


def _object(to: Collector, path: str, asked: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to GET, or to POST where something is asked for."""
    with _answer(to, path, {}, asked) as answer:
        try:
            found = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_collector(to) from error
    if not isinstance(found, dict):
        raise _no_collector(to)
    return found


def _no_collector(to: Collector) -> ServiceError:
    return ServiceError(f"what answers at {to.url} {IS_NO_COLLECTOR}")


@contextmanager
def _answer(
    to: Collector, path: str, headers: dict[str, str], asked: dict[str, Any] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """Raises: ServiceError where nobody answers; UseError where the answer is a refusal."""
    url = run_at(to.url)
    told = {**headers, "connection": "close", **bearer(to.token)}
    body = None
    if asked is not None:
        body, told["content-type"] = json.dumps(asked), "application/json"
    with closing(_connection(url, to.context)) as connection:
        try:
            connection.request("GET" if body is None else "POST", url.path + path, body, told)
            answer = connection.getresponse()
            wrong = "" if answer.status in (200, 201) else reason(answer.read(MOST_ANSWER))
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(f"{NO_COLLECTOR} at {to.url}: {cause_of(error)}") from error
        if answer.status not in (200, 201):
            raise UseError(f"the collector at {to.url} answers {answer.status}: {wrong}")
        with answer:
            yield answer


def _connection(url: SplitResult, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if url.scheme == "https":
        return http.client.HTTPSConnection(url.netloc, timeout=_TIMEOUT_S, context=context)
    return http.client.HTTPConnection(url.netloc, timeout=_TIMEOUT_S)


def _trusting(certificate: Path) -> ssl.SSLContext:
    """The collector of a workspace shows the certificate of this file, or one that it signed. It is
    asked at the address at which it listens, such as 0.0.0.0, which no certificate names.
    """
    try:
        if not (found := _CERTIFICATE.search(certificate.read_text("ascii"))):
            raise ValueError("it has no BEGIN CERTIFICATE")
        context = ssl.create_default_context(cadata=found[0])
    except (OSError, ValueError) as error:
        raise UseError(
            f"the certificate {certificate} cannot be read: {cause_of(error)}"
        ) from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _line(to: Collector, answer: http.client.HTTPResponse) -> str:
    """The next line; empty at the end, and for what a kill left of a line. Raises: ServiceError."""
    try:
        line = answer.readline()
    except TimeoutError:
        silent = f"the collector at {to.url} has said nothing for {_TIMEOUT_S:g} s"
        raise ServiceError(silent) from None
    except (OSError, http.client.HTTPException) as error:
        raise ServiceError(f"the collector at {to.url} {GONE}: {cause_of(error)}") from error
    return line.decode("utf-8") if line.endswith(b"\n") else ""
