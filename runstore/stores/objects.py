"""Objects in a store: the one interface to S3 (vizpub.runstore.stores.s3) and to HDFS
(vizpub.runstore.stores.hdfs).

An object appears whole or not at all. A write on a condition takes effect only while the object is
the one that the writer has read, so it can be a commit. An answer may be lost after a request took
effect; then what the store has decides.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from vizpub.model.errors import ServiceError
from vizpub.model.progress import WAITS

_T = TypeVar("_T")
RANGE = 8 * 2**20
"""Bytes of one request for a part of an object."""
AT_ONCE = 12
"""Objects on their way at the same time."""
_PAUSES_S = (0.1, 0.3, 1.0, 3.0)
"""Before a request is made again."""


class Changed(Exception):
    """An object is not the one that a condition names."""

    def __init__(self, there: Found | None) -> None:
        super().__init__(there)
        self.there = there


class Found(NamedTuple):
    """The content of an object, and the version that conditions name."""

    content: bytes
    version: str


class Listed(NamedTuple):
    """An object in a list."""

    name: str
    size: int
    changed_s: float
    """The time of its writing, in seconds since 1970."""


class Objects(ABC):
    """The objects of a workspace, whose address is no part of their names. An object that is once
    written on a condition is always written so.

    All methods raise ServiceError where the store cannot be reached or refuses.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The address as users write it."""

    @abstractmethod
    def find(self, name: str) -> Found | None:
        """Return an object; null if there is none."""

    @abstractmethod
    def fetch(self, name: str, size: int, to: Path) -> None:
        """Write the first `size` bytes of an object to a file. Raises: FileNotFoundError,
        OSError.
        """

    @abstractmethod
    def put(self, name: str, content: Path) -> None:
        """Write an object with the content of a file, in place of an existing one."""

    @abstractmethod
    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone do no harm."""

    @abstractmethod
    def walk(self, prefix: str) -> Iterator[Listed]:
        """List the objects in a folder, and in the folders below."""

    @abstractmethod
    def folders(self, prefix: str) -> list[str]:
        """List the names of the folders in a folder."""

    def put_if(self, name: str, content: bytes, version: str | None) -> str:
        """Write an object if it is still of that version (null = if there is none), and return the
        new version. The content is of this writer alone, so that it tells after a lost answer
        whether the write took effect. Raises: Changed.
        """
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._put_if(name, content, version)
            except self._errors as error:
                there = self.find(name)
                if there and there.content == content:
                    return there.version
                if (there.version if there else None) != version:
                    raise Changed(there) from error
                if pause_s is None:
                    raise self._unavailable(error) from error
                _announce_attempts(self.url)
                time.sleep(pause_s)
        raise AssertionError

    def _try(self, call: Callable[[], _T]) -> _T:
        """Do what does no harm if it is done twice, after an error again.

        Raises: FileNotFoundError, ServiceError.
        """
        for pause_s in (*_PAUSES_S, None):
            try:
                return call()
            except self._errors as error:
                if isinstance(error, FileNotFoundError):
                    raise
                if pause_s is None or self._is_refused(error):
                    raise self._unavailable(error) from error
                _announce_attempts(self.url)
                time.sleep(pause_s)
        raise AssertionError

    @property
    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """What requests raise."""

    @abstractmethod
    def _put_if(self, name: str, content: bytes, version: str | None) -> str:
        """Make one attempt at `put_if`; an error tells nothing of what took effect."""

    @abstractmethod
    def _is_refused(self, error: Exception) -> bool:
        """Return True if the store does not accept who asks: to try again changes nothing."""

    @abstractmethod
    def _unavailable(self, error: Exception) -> ServiceError:
        """The error for users."""


@cache
def _announce_attempts(url: str) -> None:
    """Log once that requests are repeated."""
    logging.getLogger(WAITS).info("%s does not answer, or answers with an error: trying again", url)
