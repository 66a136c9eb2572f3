"""The client of commands for a running collector: its progress, its events, commands to peers."""

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
from vizpub.collector.place import CollectionPlace
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
"""For a whole answer, and for a line of events, of which some come every few seconds."""
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
"""The waits before the next requests to a collector that does not answer."""
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_MOST = 2**23
"""Bytes of an answer, or of an event: a row, or the progress."""


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


msgspec.json.Decoder(tuple[_Progress, _Command, _Interval])  # as in vizpub.runstore.manifest

Event = tuple[str, dict[str, Any]]
"""A kind and its content."""


@dataclass(frozen=True)
class CollectorClient:
    """A collector by the URL of its run."""

    url: str
    token: str | None = None
    certificate: str | None = None
    """A file whose first certificate is trusted, whoever signed it and whatever host it names."""

    def __post_init__(self) -> None:
        """Check URL and token. Raises: UseError."""
        try:
            Endpoint(self.url, self.token, None, _TIMEOUT_S)
        except ValueError as error:
            raise UseError(str(error)) from None

    @property
    def context(self) -> ssl.SSLContext | None:
        """A TLS context that trusts the certificate, or one that it signed; null = the usual one.

        Raises: UseError.
        """
        if not self.certificate:
            return None
        try:
            if not (match := _CERTIFICATE.search(Path(self.certificate).read_text("ascii"))):
                raise ValueError("it has no BEGIN CERTIFICATE")
            context = ssl.create_default_context(cadata=match[0])
        except (OSError, ValueError) as error:
            raise UseError(
                f"the certificate {self.certificate} cannot be read: {cause_of(error)}"
            ) from error
        # The URL has the address at which it listens, such as 0.0.0.0, which no certificate names.
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.token, self.context, _TIMEOUT_S, _MOST)

    def get(self) -> dict[str, Any]:
        """Return `header` and `progress`. Raises: ServiceError, UseError."""
        return self._ask(_Progress)

    def tell(self, peer: str, action: str, seconds: float) -> dict[str, Any]:
        """Give a peer a command. Returns its `id`, `peer`, `action`, `state` and `reason`.

        Raises: ServiceError, UseError.
        """
        command = {"peer": peer, "action": action, "seconds": seconds}
        return self._ask(_Command, "/commands", command)

    def find_command(self, number: int) -> dict[str, Any]:
        """Return the current state of a command. Raises: ServiceError, UseError."""
        return self._ask(_Command, f"/commands/{number}")

    def _ask(
        self, shape: type, below: str = "", content: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request, and return its answer, which has this shape."""
        with _as_errors_of_ours():
            answer = self._endpoint.ask(below, content)
        try:
            msgspec.convert(answer, shape)
        except ValueError as error:
            raise self._no_collector() from error
        return answer

    def events(self, last: int | None = None) -> Iterator[Event]:
        """Yield events, `interval` (after the last one) or `status`, until the run has ended.

        Raises: ServiceError if the collector goes away before; UseError.
        """
        headers = {} if last is None else {"last-event-id": str(last)}
        with _as_errors_of_ours(), self._endpoint.answer("/events", headers=headers) as answer:
            kind = state = ""
            while line := self._read_line(answer):
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind in ("interval", "status"):
                    try:
                        content = json.loads(value)
                        msgspec.convert(content, _Interval if kind == "interval" else dict)
                    except (ValueError, RecursionError) as error:
                        raise self._no_collector() from error
                    state = content.get("state", state)
                    yield kind, content
        if state != "ended":
            reason = PAUSED if state == "pausing" else GONE
            raise ServiceError(f"the collector at {self.url} {reason}")

    def _read_line(self, answer: BoundedAnswer) -> str:
        """Read the next line; empty at the end, or if a kill cut the line. Raises: ServiceError."""
        answer.renew()
        try:
            line = answer.readline().decode()
        except TimeoutError:
            silent = f"the collector at {self.url} has sent no complete line for {_TIMEOUT_S:g} s"
            raise ServiceError(silent) from None
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(f"the collector at {self.url} {GONE}: {cause_of(error)}") from error
        except UnicodeDecodeError as error:
            raise self._no_collector() from error
        return line if line.endswith("\n") else ""

    def _no_collector(self) -> ServiceError:
        return ServiceError(f"{self.url} {IS_NO_COLLECTOR}")


def follow_events(
    find: Callable[[], CollectorClient], ended: Callable[[], bool]
) -> Iterator[Event]:
    """Yield the events of a collector until the run has ended, which `ended` returns if none runs.

    If the collector goes away, it is asked again after increasing times, and continues after the
    last interval; each time, an event `gone` has `why` and `wait_s`. Raises: ServiceError, UseError
    if none answers at first.
    """
    last, wait_s = None, 0.0
    while True:
        try:
            for kind, content in find().events(last):
                wait_s = _FIRST_WAIT_S
                last = content["interval"] if kind == "interval" else last
                yield kind, content
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
    """Return the URL of a run unchanged. Raises: UseError if it is none."""
    if not is_address(url) or "/runs/" not in urlsplit(url).path:
        raise UseError(
            f"'{url}' {NO_URL}; give it as `vizpub live collect` shows it, for example "
            "http://127.0.0.1:8600/v1/runs/lab"
        )
    return url


def collector_of(
    place: CollectionPlace, url: str | None = None, kind: str = ADMIN
) -> CollectorClient:
    """Return the collector of a workspace's run, with the token of that kind, or the one at a URL.

    Raises: UseError if none runs, or others could have written its address.
    """
    token = os.environ.get(TOKEN)
    if url:
        check_url(url)
        return CollectorClient(url.rstrip("/"), token)
    listener = place.listener()
    if listener is None or not listener.listens():
        if place.has_ended:
            raise UseError(f"run '{place.run}' {ENDED} (see: vizpub metrics {place.run})")
        if place.is_retired:
            raise UseError(f"the collection of run '{place.run}' {RETIRED} (see: vizpub runs list)")
        raise UseError(
            f"no collector of run '{place.run}' is running; "
            f"start one: vizpub live collect {place.run}"
        )
    if listener.tokens and token is None:
        try:
            token = read_private(place.tokens / kind)
        except FileNotFoundError as error:
            raise UseError(f"{error.filename} {GONE}: give the token in {TOKEN}") from None
    return CollectorClient(listener.url, token, listener.certificate)


@contextmanager
def _as_errors_of_ours() -> Iterator[None]:
    """Raise ServiceError if no collector answers, UseError if it refuses."""
    try:
        yield
    except Refusal as error:
        raise UseError(str(error)) from error
    except NoCollector as error:
        raise ServiceError(str(error)) from error
