"""Access to a collector's HTTP interface for its reporters. Standard library only."""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

NO_URL = "is not the URL of a run"
NOT_PRINTABLE = "is not printable ASCII"
IS_NO_COLLECTOR = "is not a vizpub collector"

NO_COLLECTOR = "no collector answers"

MOST_ANSWER = 2**20
"""Bytes of an answer that are read."""
_HEAD = 2**18
"""Bytes of its head and whatever else is not content."""

_SHOWN = 500
"""Characters of an answer's error to show."""

_REPORTS = re.compile(r"(/v1/runs/[^/]+)/reports$")
_HOST = re.compile(r"(?:\[(?P<v6>[^]]+)\]|(?P<name>[^]\[:@/]+))(?::\d+)?")


@dataclass(frozen=True)
class Endpoint:
    """The URL of a run, with the token, the TLS context and the limits of its requests."""

    url: str
    token: str | None = field(repr=False)
    context: ssl.SSLContext | None
    timeout_s: float
    """For a whole answer."""
    most: int = MOST_ANSWER
    """Bytes of an answer."""

    def __post_init__(self) -> None:
        """Raises: ValueError."""
        run_at(self.url)
        bearer(self.token)

    @property
    def path(self) -> str:
        """The path of the run."""
        return run_at(self.url).path

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return bearer(self.token)

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection, which opens when it is used. Its answers are `BoundedAnswer`."""
        url, timeout_s = urlsplit(self.url), self.timeout_s
        connection = (
            http.client.HTTPSConnection(url.netloc, timeout=timeout_s, context=self.context)
            if url.scheme == "https"
            else http.client.HTTPConnection(url.netloc, timeout=timeout_s)
        )
        bounded = partial(BoundedAnswer, timeout_s=timeout_s, most=self.most + _HEAD)
        connection.response_class = bounded  # type: ignore[assignment]
        return connection

    def ask(self, below: str = "", content: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to GET, or to POST with a content, of a path below the run's.

        Raises: NoCollector, Refusal.
        """
        with self.answer(below, content) as answer:
            text = answer.read(self.most)
        with suppress(ValueError, RecursionError):
            if isinstance(value := json.loads(text), dict):
                return value
        raise self.no_collector()

    def no_collector(self) -> NoCollector:
        """Return the error to raise if another program answers."""
        return NoCollector(f"{self.url} {IS_NO_COLLECTOR}")

    @contextmanager
    def answer(
        self,
        below: str = "",
        content: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[BoundedAnswer]:
        """Yield the answer that `ask` reads, to be read inside the block. Raises: as `ask`."""
        sent, body = {**(headers or {}), "connection": "close", **self.headers}, None
        if content is not None:
            body, sent["content-type"] = json.dumps(content), "application/json"
        with closing(self.connect()) as connection:
            try:
                connection.request("GET" if body is None else "POST", self.path + below, body, sent)
                answer = connection.getresponse()
                assert isinstance(answer, BoundedAnswer)
                with answer:
                    if answer.status not in (200, 201):
                        text = reason(answer.read(self.most))
                        raise Refusal(
                            f"the collector at {self.url} answers {answer.status}: {text}"
                        )
                    yield answer
            except Refusal:
                raise
            except (OSError, http.client.HTTPException) as error:
                why = getattr(error, "strerror", None) or error
                raise NoCollector(f"{NO_COLLECTOR} at {self.url}: {why}") from error


class NoCollector(OSError):
    """No collector answers."""


class Refusal(OSError):
    """The collector answers with an error."""


class BoundedAnswer(http.client.HTTPResponse):
    """An answer whose size, with its head, and time are bounded. Beyond a bound, reading it raises
    OSError.
    """

    def __init__(
        self, sock: socket.socket, *args: Any, timeout_s: float, most: int, **more: Any
    ) -> None:
        super().__init__(sock, *args, **more)
        self._raw = _Bounded(sock, timeout_s, most)
        self.fp.close()
        self.fp = io.BufferedReader(self._raw)

    def renew(self) -> None:
        """Allow the whole time and size again, for what comes from now on."""
        self._raw.renew()


class _Bounded(io.RawIOBase):
    """The bytes from a socket, bounded in number and time."""

    def __init__(self, sock: socket.socket, timeout_s: float, most: int) -> None:
        self._socket, self._timeout_s, self._most = sock, timeout_s, most
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open for us
        self.renew()

    def renew(self) -> None:
        self._end, self._left = time.monotonic() + self._timeout_s, self._most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read into a buffer, as a raw stream does. Raises: OSError."""
        remaining_s = self._end - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError(f"no whole answer within {self._timeout_s:g} s")
        self._socket.settimeout(remaining_s)
        try:
            count = self._raw.readinto(buffer)
        except TimeoutError:
            raise TimeoutError(f"no whole answer within {self._timeout_s:g} s") from None
        finally:
            self._socket.settimeout(self._timeout_s)  # for the next request
        self._left -= count or 0
        if self._left < 0:
            raise OSError(f"its answer has more than {self._most:,} bytes")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def run_at(url: str) -> SplitResult:
    """Split the URL of a run; the address for its reports, which a collector shows, is accepted,
    too. Raises: ValueError.
    """
    if not is_address(url):
        raise ValueError(f"{url} {NO_URL}, as http://127.0.0.1:8600/v1/runs/lab")
    parts = urlsplit(url)
    return parts._replace(path=_REPORTS.sub(r"\1", parts.path.rstrip("/")))


def is_address(url: str) -> bool:
    """Return True if a URL can be requested."""
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
    """Return the header for a token, of which spaces around it are no part. Raises: ValueError."""
    token = (token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"the token has a character that {NOT_PRINTABLE}")
    return {"authorization": f"Bearer {token}"} if token else {}


def reason(text: bytes) -> str:
    """Return the error in an answer."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(text)["error"])[:_SHOWN]
    return text[:200].decode("utf-8", "replace")


def is_loopback(host: str) -> bool:
    """Return True if a name or an address is of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_this_machine(host: str) -> bool:
    """Return True if a Host header names this machine. A server without tokens refuses all others:
    a web page in a browser here may send requests under its own name that leads here.
    """
    match = _HOST.fullmatch(host.lower())
    return match is not None and is_loopback(match["v6"] or match["name"])
