"""What a command asks a collector that runs: its progress, and what happens."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from collector.place import Place
from collector.tokens import ADMIN
from model.errors import ServiceError, UseError
from model.private import read_private

TOKEN = "VIZPUB_TOKEN"
"""The variable with the token for a collector elsewhere."""
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Collector:
    """A collector by the URL of its run."""

    url: str
    token: str | None = None
    certificate: str | None = None
    """A file with the certificate to trust, where no authority signed it."""

    def get(self) -> dict[str, Any]:
        """`header` and `progress`. Raises: ServiceError, UseError."""
        with _answer(self, "") as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def events(self, after: int | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Events with their kinds, until the collector ends. Raises: ServiceError, UseError."""
        told = {} if after is None else {"last-event-id": str(after)}
        with _answer(self, "/events", told) as answer:
            kind = ""
            while line := _line(answer):
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)


def collector_of(place: Place, url: str | None = None) -> Collector:
    """The collector of a workspace's run, or the one at a URL. Raises: UseError where none runs."""
    token = os.environ.get(TOKEN)
    if url:
        return Collector(url.rstrip("/"), token)
    endpoint = place.endpoint()
    if not endpoint or not place.is_held():
        raise UseError(
            f"no collector of run '{place.run}' is running; start one: vizpub collect {place.run}"
        )
    if endpoint["tokens"] and token is None:
        token = read_private(place.tokens / ADMIN).strip()
    return Collector(endpoint["url"], token, endpoint.get("certificate"))


def _answer(to: Collector, path: str, headers: dict[str, str] | None = None) -> Any:
    url = urlsplit(to.url)
    told = {"authorization": f"Bearer {to.token}"} if to.token else {}
    try:
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=to.certificate)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.netloc, timeout=_TIMEOUT_S, context=context
            )
        else:
            connection = http.client.HTTPConnection(url.netloc, timeout=_TIMEOUT_S)
        connection.request("GET", url.path + path, headers={**told, **(headers or {})})
        answer = connection.getresponse()
        if answer.status == 200:
            return answer
        text = answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise ServiceError(f"no collector answers at {to.url}: {error}") from error
    with suppress(ValueError, KeyError):
        text = json.loads(text)["error"]
    raise UseError(f"the collector at {to.url} answers {answer.status}: {text}")


def _line(answer: http.client.HTTPResponse) -> str:
    """The next line; empty at the end."""
    try:
        return answer.readline().decode("utf-8")
    except (OSError, http.client.HTTPException):
        return ""
