"""A collector's HTTP interface as its reporters use it. Standard library only."""

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
"""Bytes of its head, and of what else is no content."""

_SHOWN = 500
"""Characters of an error that an answer says."""

_REPORTS = re.compile(r"(/v1/runs/[^/]+)/reports$")
_HOST = re.compile(r"(?:\[(?P<v6>[^]]+)\]|(?P<name>[^]\[:@/]+))(?::\d+)?")


@dataclass(frozen=True)
class Endpoint:
    """The URL of a run, and how to reach it."""

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
        """Of the run."""
        return run_at(self.url).path

    @property
    def headers(self) -> dict[str, str]:
        """Of every request."""
        return bearer(self.token)

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is made when it is used. Its answers are `BoundedAnswer`."""
        url, timeout_s = urlsplit(self.url), self.timeout_s
        connection = (
            http.client.HTTPSConnection(url.netloc, timeout=timeout_s, context=self.context)
            if url.scheme == "https"
            else http.client.HTTPConnection(url.netloc, timeout=timeout_s)
        )
        bounded = partial(BoundedAnswer, timeout_s=timeout_s, most=self.most + _HEAD)
        connection.response_class = bounded  # type: ignore[assignment]
        return connection

    def ask(self, below: str = "", told: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to GET, or to POST where something is told, of a path below the run's.

        Raises: OSError where there is none, or a refusal.
        """
        with self.answer(below, told) as answer:
            text = answer.read(self.most)
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(text), dict):
                return found
        raise self.no_collector()

    def no_collector(self) -> NoCollector:
        """Return the error to raise if something else answers."""
        return NoCollector(f"{self.url} {IS_NO_COLLECTOR}")

    @contextmanager
    def answer(
        self,
        below: str = "",
        told: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[BoundedAnswer]:
        """The answer that `ask` reads, to be read inside the block. Raises: as `ask`."""
        sent, body = {**(headers or {}), "connection": "close", **self.headers}, None
        if told is not None:
            body, sent["content-type"] = json.dumps(told), "application/json"
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
    """Nobody answers, or not as a collector does."""


class Refusal(OSError):
    """A collector answers with an error."""


class BoundedAnswer(http.client.HTTPResponse):
    """An answer of bounded size, head and all, that comes within a bounded time. Its readers get an
    OSError beyond that.
    """

    def __init__(
        self, sock: socket.socket, *args: Any, timeout_s: float, most: int, **more: Any
    ) -> None:
        super().__init__(sock, *args, **more)
        self._raw = _Bounded(sock, timeout_s, most)
        self.fp.close()
        self.fp = io.BufferedReader(self._raw)

    def renew(self) -> None:
        """Give what comes now the whole time and size again."""
        self._raw.renew()


class _Bounded(io.RawIOBase):
    """What comes from a socket."""

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
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no whole answer within {self._timeout_s:g} s")
        self._socket.settimeout(left_s)
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
    """The URL of a run in its parts; the address for its reports, which a collector shows, names
    it, too. Raises: ValueError.
    """
    if not is_address(url):
        raise ValueError(f"{url} {NO_URL}, as http://127.0.0.1:8600/v1/runs/lab")
    parts = urlsplit(url)
    return parts._replace(path=_REPORTS.sub(r"\1", parts.path.rstrip("/")))


def is_address(url: str) -> bool:
    """Return True if a URL can be asked."""
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
    """Return the error that an answer names."""
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
    """Return True if a Host header names this machine. A server without tokens answers no other:
    a web page, shown by a browser here, may ask under a name of its own that leads here.
    """
    found = _HOST.fullmatch(host.lower())
    return found is not None and is_loopback(found["v6"] or found["name"])
