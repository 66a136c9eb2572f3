"""A collector's HTTP interface as its reporters use it. Standard library only."""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

MOST_ANSWER = 2**20
"""Bytes of an answer that are read."""

_HOST = re.compile(r"(?:\[(?P<v6>[^]]+)\]|(?P<name>[^]\[:@/]+))(?::\d+)?")


@dataclass(frozen=True)
class Endpoint:
    """The URL of a run, and how to reach it."""

    url: str
    token: str | None = field(repr=False)
    context: ssl.SSLContext | None
    timeout_s: float

    def __post_init__(self) -> None:
        """Raises: ValueError."""
        url = urlsplit(self.url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(
                f"{self.url} is not the URL of a run, as http://127.0.0.1:8600/v1/runs/lab"
            )

    @property
    def path(self) -> str:
        """Of the run."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        """Of every request."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is made when it is used."""
        url = urlsplit(self.url)
        if url.scheme == "https":
            return http.client.HTTPSConnection(
                url.netloc, timeout=self.timeout_s, context=self.context
            )
        return http.client.HTTPConnection(url.netloc, timeout=self.timeout_s)

    def ask(self, below: str = "", told: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to GET, or to POST where something is told, of a path below the run's.

        Raises: OSError where there is none, or a refusal.
        """
        headers, body = dict(self.headers), None
        if told is not None:
            body, headers["content-type"] = json.dumps(told), "application/json"
        try:
            with closing(self.connect()) as connection:
                method = "GET" if body is None else "POST"
                connection.request(method, self.path + below, body, headers)
                answer = connection.getresponse()
                text = answer.read(MOST_ANSWER)
            if answer.status not in (200, 201):
                raise OSError(f"the collector answers {answer.status}: {reason(text)}")
            found = json.loads(text)
            if not isinstance(found, dict):
                raise ValueError("its answer is no object")
            return found
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise OSError(f"no collector answers at {self.url}: {why}") from error


def reason(text: bytes) -> str:
    """What an answer says of an error."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text)["error"])
    return text[:200].decode("utf-8", "replace")


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_this_machine(host: str) -> bool:
    """Whether a Host header does. Who asks for no token answers no other: a web page, shown by a
    browser here, may ask under a name of its own that leads here.
    """
    found = _HOST.fullmatch(host.lower())
    return found is not None and is_loopback(found["v6"] or found["name"])
