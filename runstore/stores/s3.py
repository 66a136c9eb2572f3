"""Objects in S3 and in what speaks it, through obstore. A write on a condition is a conditional
PUT, and the version of an object is its tag.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizpub.model.errors import ServiceError
from vizpub.runstore.stores.objects import RANGE, Found, Listed, Objects

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import S3Store

_EXPIRED = re.compile(
    "ExpiredToken|TokenRefreshRequired|token (included in the request )?is expired"
)
"""What stores say of credentials that were valid: S3 with 400, others with 401 or 403."""
_TRIES_S = 20
"""In which obstore itself tries requests again that can be repeated."""


@dataclass(frozen=True)
class S3Objects(Objects):
    """The objects of a bucket whose names begin with a prefix."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""

    def __reduce__(self) -> tuple[type[S3Objects], tuple[str, ...]]:
        """Go to other processes without connections."""
        return S3Objects, (self.bucket, self.prefix, self.endpoint, self.region)

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
            for start in range(0, size, RANGE):
                end = min(start + RANGE, size)
                part = partial(obstore.get_range, self._store, name, start=start, end=end)
                file.write(self._try(part))

    def put(self, name: str, content: Path) -> None:
        """Write an object with the content of a file, in place of an existing one."""
        import obstore

        self._try(partial(obstore.put, self._store, name, content))

    def delete(self, names: Sequence[str]) -> None:
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

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        from obstore.exceptions import BaseError

        return BaseError, OSError

    def _put_if(self, name: str, content: bytes, version: str | None) -> str:
        import obstore

        mode: PutMode = "create" if version is None else {"e_tag": version}
        return obstore.put(self._store, name, content, mode=mode)["e_tag"] or ""

    def _is_refused(self, error: Exception) -> bool:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        is_denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
        return is_denied or bool(_EXPIRED.search(str(error)))

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


def _profile_credentials() -> Any:
    """The credentials of a profile, as boto3 knows them (also single sign-on), where it is
    installed; null = obstore's own: those of the environment, of the container or the machine.
    """
    has_profile = os.environ.get("AWS_PROFILE") or Path("~/.aws").expanduser().is_dir()
    if os.environ.get("AWS_ACCESS_KEY_ID") or not (has_profile and find_spec("boto3")):
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()
