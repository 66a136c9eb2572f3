"""Objects in S3 and in what speaks it: the only interface to an object store, obstore behind it.

An object appears whole or not at all. A write on a condition takes effect only while the object is
the one that the writer has read, so it can be a commit. An answer may be lost after a request took
effect; then what the store has decides.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vizpub.model.errors import ServiceError

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import S3Store

_T = TypeVar("_T")
_RANGE = 8 * 2**20
"""Bytes of one request for a part of an object."""
_PAUSES_S = (0.1, 0.3, 1.0, 3.0)
"""Before a write on a condition is tried again."""
_EXPIRED = re.compile(
    "ExpiredToken|TokenRefreshRequired|token (included in the request )?is expired"
)
"""What stores say of credentials that were valid: S3 with 400, others with 401 or 403."""
_TRIES_S = 20
"""In which obstore itself tries requests again that can be repeated."""


class Changed(Exception):
    """An object is not the one that a condition names."""

    def __init__(self, there: Found | None) -> None:
        super().__init__(there)
        self.there = there


class Found(NamedTuple):
    """The content of an object, and the tag that conditions name."""

    content: bytes
    version: str


class Listed(NamedTuple):
    """An object in a list."""

    name: str
    size: int
    changed_s: float
    """The time of its writing, in seconds since 1970."""


@dataclass(frozen=True)
class Objects:
    """The objects of a bucket whose names begin with a prefix, which is no part of the names here.

    All methods raise ServiceError where the store cannot be reached or refuses.
    """

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""

    def __reduce__(self) -> tuple[type[Objects], tuple[str, ...]]:
        """Go to other processes without connections."""
        return Objects, (self.bucket, self.prefix, self.endpoint, self.region)

    @property
    def url(self) -> str:
        """The address as users write it."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @cached_property
    def _store(self) -> S3Store:
        from obstore.store import S3Store

        return S3Store(
            self.bucket,
            prefix=self.prefix or None,
            endpoint=self.endpoint or None,
            region=self.region or "us-east-1",
            checksum_algorithm="SHA256",
            client_options={"allow_http": self.endpoint.startswith("http://")},
            retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=_TRIES_S)},
            credential_provider=_profile_credentials(),
        )

    def find(self, name: str) -> Found | None:
        """Return an object; null if there is none."""
        import obstore

        def get() -> Found:
            found = obstore.get(self._store, name)
            return Found(bytes(found.bytes()), found.meta["e_tag"] or "")

        with suppress(FileNotFoundError):
            return self._try(get)
        return None

    def fetch(self, name: str, size: int, to: Path) -> None:
        """Write the first `size` bytes of an object to a file. Raises: FileNotFoundError,
        OSError.
        """
        import obstore

        with to.open("wb") as file:
            for start in range(0, size, _RANGE):
                end = min(start + _RANGE, size)
                part = partial(obstore.get_range, self._store, name, start=start, end=end)
                file.write(self._try(part))

    def put(self, name: str, content: Path) -> None:
        """Write an object with the content of a file, in place of an existing one."""
        import obstore

        self._try(partial(obstore.put, self._store, name, content))

    def put_if(self, name: str, content: bytes, version: str | None) -> str:
        """Write an object if it is still of that version (null = if there is none), and return the
        new version. The content is of this writer alone, so that it tells after a lost answer
        whether the write took effect. Raises: Changed.
        """
        import obstore
        from obstore.exceptions import BaseError

        for pause_s in (*_PAUSES_S, None):
            try:
                mode: PutMode = "create" if version is None else {"e_tag": version}
                return obstore.put(self._store, name, content, mode=mode)["e_tag"] or ""
            except (BaseError, OSError) as error:
                there = self.find(name)
                if there and there.content == content:
                    return there.version
                if (there.version if there else None) != version:
                    raise Changed(there) from error
                if pause_s is None:
                    raise self._unavailable(error) from error
                time.sleep(pause_s)
        raise AssertionError

    def delete(self, names: list[str]) -> None:
        """Delete objects; those that are gone do no harm."""
        import obstore

        if names:
            self._try(partial(obstore.delete, self._store, names))

    def walk(self, prefix: str) -> Iterator[Listed]:
        """List the objects in a folder, and in the folders below."""
        import obstore

        pages = self._try(lambda: [*obstore.list(self._store, prefix=prefix, chunk_size=1000)])
        for meta in chain.from_iterable(pages):
            yield Listed(meta["path"], meta["size"], meta["last_modified"].timestamp())

    def folders(self, prefix: str) -> list[str]:
        """List the names of the folders in a folder."""
        import obstore

        listed = self._try(partial(obstore.list_with_delimiter, self._store, prefix=prefix))
        return [path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"]]

    def _try(self, call: Callable[[], _T]) -> _T:
        """Do what does no harm if it is done twice, after an error again.

        Raises: FileNotFoundError, ServiceError.
        """
        from obstore.exceptions import BaseError

        for pause_s in (*_PAUSES_S, None):
            try:
                return call()
            except BaseError as error:
                if isinstance(error, FileNotFoundError):
                    raise
                if pause_s is None or _is_refused(error):
                    raise self._unavailable(error) from error
                time.sleep(pause_s)
        raise AssertionError

    def _unavailable(self, error: Exception) -> ServiceError:
        why = " ".join(str(error).split("\n\nDebug source")[0].split())
        if _EXPIRED.search(why):
            return ServiceError(
                f"{self.url}: the credentials have expired; renew them and run the same command "
                "again"
            )
        return ServiceError(
            f"{self.url} cannot be used ({why[:600]}): check the address, --s3-endpoint, "
            "--s3-region and your credentials, or try again"
        )


def _is_refused(error: Exception) -> bool:
    """Return True if the store does not accept the credentials: to try again changes nothing."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    is_denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
    return is_denied or bool(_EXPIRED.search(str(error)))


def _profile_credentials() -> Any:
    """The credentials of a profile, as boto3 knows them (also single sign-on), where it is
    installed; null = obstore's own: those of the environment, of the container or the machine.
    """
    has_profile = os.environ.get("AWS_PROFILE") or Path("~/.aws").expanduser().is_dir()
    if os.environ.get("AWS_ACCESS_KEY_ID") or not (has_profile and find_spec("boto3")):
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()
