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
from urllib.parse import SplitResult, urlsplit

NO_URL = "is not the URL of a run"
NOT_PRINTABLE = "is not printable ASCII"
IS_NO_COLLECTOR = "is no collector"

NO_COLLECTOR = "no collector answers"

MOST_ANSWER = 2**20
"""Bytes of an answer that are read."""

_REPORTS = re.compile(r"(/v1/runs/[^/]+)/reports$")
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
        run_at(self.url)
        bearer(self.token)

    @property
    def path(self) -> str:
        """Of the run."""
        return run_at(self.url).path

    @property
    def headers(self) -> dict[str, str]:
        """Of every request."""
        return bearer(self.token)

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
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or error
            raise OSError(f"{NO_COLLECTOR} at {self.url}: {why}") from error
        if answer.status not in (200, 201):
            raise OSError(f"the collector at {self.url} answers {answer.status}: {reason(text)}")
        with suppress(ValueError):
            if isinstance(found := json.loads(text), dict):
                return found
        raise OSError(f"what answers at {self.url} {IS_NO_COLLECTOR}")


def run_at(url: str) -> SplitResult:
    """The URL of a run in its parts; the address for its reports, which a collector shows, names
    it, too. Raises: ValueError.
    """
    if not is_address(url):
        raise ValueError(f"{url} {NO_URL}, as http://127.0.0.1:8600/v1/runs/lab")
    parts = urlsplit(url)
    return parts._replace(path=_REPORTS.sub(r"\1", parts.path.rstrip("/")))


def is_address(url: str) -> bool:
    """Whether somebody can be asked at this URL."""
    with suppress(ValueError):  # such as of a port that is no number
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        is_plain = parts.path.isascii() and parts.path.isprintable() and " " not in parts.path
        is_short = parts.username is None and not (parts.query or parts.fragment)
        is_http = parts.scheme in ("http", "https") and parts.port != 0
        return bool(host) and is_http and is_plain and is_short
    return False


def bearer(token: str | None) -> dict[str, str]:
    """The header with a token, as it stands in a file. Raises: ValueError."""
    token = (token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"the token has a character that {NOT_PRINTABLE}")
    return {"authorization": f"Bearer {token}"} if token else {}


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
