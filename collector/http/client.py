"""What a command asks a collector that runs: its progress, what happens, and to tell a peer."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from vizpub.collector.http.tokens import ADMIN
from vizpub.collector.place import Place
from vizpub.machine.private import read_private
from vizpub.model.errors import ServiceError, UseError, cause_of
from vizpub.reports.endpoint import (
    IS_NO_COLLECTOR,
    NO_URL,
    BoundedAnswer,
    Endpoint,
    NoCollector,
    Refusal,
    is_address,
)
from vizpub.runstore.collection import RETIRED

GONE = "is gone"
PAUSED = "has paused"
ENDED = "has ended"


TOKEN = "VIZPUB_TOKEN"
"""The variable with the token for a collector elsewhere."""
_TIMEOUT_S = 30.0
"""For a whole answer, and for a line of events, of which there are some every few seconds."""
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
"""Before a collector that went away is asked again."""
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_MOST = 2**23
"""Bytes of an answer, or of an event: a row, or how far the run is."""


class _Progress(msgspec.Struct):
    header: dict[str, Any]
    progress: dict[str, Any]


class _Command(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    peer: str
    action: str
    state: Literal["queued", "obeyed", "refused", "expired"]
    reason: str | None = None


class _Interval(msgspec.Struct):
    interval: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


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
            Endpoint(self.url, self.token, None, _TIMEOUT_S)
        except ValueError as error:
            raise UseError(str(error)) from None

    @property
    def context(self) -> ssl.SSLContext | None:
        """What trusts the certificate; null = what this machine trusts. Raises: UseError."""
        return _trusting(Path(self.certificate)) if self.certificate else None

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.token, self.context, _TIMEOUT_S, _MOST)

    def get(self) -> dict[str, Any]:
        """`header` and `progress`. Raises: ServiceError, UseError."""
        return self._ask(_Progress)

    def tell(self, peer: str, action: str, seconds: float) -> dict[str, Any]:
        """Give a peer a command: `id`, `peer`, `action`, `state` and `reason`.

        Raises: ServiceError, UseError.
        """
        asked = {"peer": peer, "action": action, "seconds": seconds}
        return self._ask(_Command, "/commands", asked)

    def command(self, number: int) -> dict[str, Any]:
        """What became of a command. Raises: ServiceError, UseError."""
        return self._ask(_Command, f"/commands/{number}")

    def _ask(
        self, shape: type, below: str = "", told: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """An answer of that shape."""
        with _as_errors_of_ours():
            found = self._endpoint.ask(below, told)
        try:
            msgspec.convert(found, shape)
        except ValueError as error:
            raise _no_collector(self) from error
        return found

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Events, `interval` or `status`, until the run has ended. Raises: ServiceError where the
        collector goes away before; UseError.
        """
        told = {} if after is None else {"last-event-id": str(after)}
        with _as_errors_of_ours(), self._endpoint.answer("/events", headers=told) as answer:
            kind = state = ""
            while line := _line(self, answer):
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind in ("interval", "status"):
                    found = _event(self, kind, value)
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
        if place.has_ended:
            raise UseError(f"run '{place.run}' {ENDED} (see: vizpub metrics {place.run})")
        if place.is_retired:
            raise UseError(f"the collection of run '{place.run}' {RETIRED} (see: vizpub runs list)")
        raise UseError(
            f"no collector of run '{place.run}' is running; start one: vizpub collect {place.run}"
        )
    if listener.tokens and token is None:
        try:
            token = read_private(place.tokens / kind)
        except FileNotFoundError as error:
            raise UseError(f"{error.filename} {GONE}: give the token in {TOKEN}") from None
    return Collector(listener.url, token, listener.certificate)


def _no_collector(to: Collector) -> ServiceError:
    return ServiceError(f"{to.url} {IS_NO_COLLECTOR}")


@contextmanager
def _as_errors_of_ours() -> Iterator[None]:
    """Raises: ServiceError where no collector answers; UseError where one refuses."""
    try:
        yield
    except Refusal as error:
        raise UseError(str(error)) from error
    except NoCollector as error:
        raise ServiceError(str(error)) from error


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


def _line(to: Collector, answer: BoundedAnswer) -> str:
    """The next line; empty at the end, and for what a kill left of a line. Raises: ServiceError."""
    answer.renew()
    try:
        line = answer.readline().decode()
    except TimeoutError:
        silent = f"the collector at {to.url} has sent no complete line for {_TIMEOUT_S:g} s"
        raise ServiceError(silent) from None
    except (OSError, http.client.HTTPException) as error:
        raise ServiceError(f"the collector at {to.url} {GONE}: {cause_of(error)}") from error
    except UnicodeDecodeError as error:
        raise _no_collector(to) from error
    return line if line.endswith("\n") else ""


def _event(to: Collector, kind: str, text: str) -> dict[str, Any]:
    """What an event tells. Raises: ServiceError where it is none of a collector."""
    try:
        found = json.loads(text)
        if kind == "interval":
            msgspec.convert(found, _Interval)
    except (ValueError, RecursionError) as error:
        raise _no_collector(to) from error
    if not isinstance(found, dict):
        raise _no_collector(to)
    return found
