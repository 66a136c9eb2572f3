"""Objects in HDFS, through hdfs-native. An object is a file, written under another name and then
renamed.

HDFS has no write on a condition. But a rename takes place at once, and only if its source is there.
So an object that is written on a condition is a folder, in which one name says what is current:

    runs/lab/run.json/is-5e7a…   the version; empty
    runs/lab/run.json/5e7a…      its content

A writer adds its content, then renames `is-OLD` to `is-NEW`: of all that have read OLD, one
succeeds. The folder itself appears by a rename that fails if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO, RawIOBase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from uuid import uuid4

from vizpub.model.errors import ServiceError, StoreBroken
from vizpub.runstore.stores.objects import RANGE, Found, Listed, Objects

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus

_IS = "is-"
"""How the name begins that says which version is current."""
FEW_ATTEMPTS = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.max.millis": "2000",
}
"""Of hdfs-native at each request, in some seven seconds; its own default takes three minutes."""
_LISTS = 20
"""Tries to list what others remove meanwhile."""
_REFUSED = re.compile("AccessControlException|InvalidToken|SaslError|GSSAPI|Kerberos", re.I)
"""What name nodes and hdfs-native say where they do not know who asks, or what he may."""


@dataclass(frozen=True)
class HdfsObjects(Objects):
    """The files below a folder of HDFS."""

    authority: str
    """HOST:PORT of a name node, or the name of a service of which HADOOP_CONF_DIR knows more."""
    prefix: str = ""

    def __reduce__(self) -> tuple[type[HdfsObjects], tuple[str, ...]]:
        """Go to other processes without connections."""
        return HdfsObjects, (self.authority, self.prefix)

    @property
    def url(self) -> str:
        """The address as users write it."""
        return f"hdfs://{self.authority}/{self.prefix}".rstrip("/")

    @cached_property
    def _client(self) -> Client:
        from hdfs_native import Client

        return Client(f"hdfs://{self.authority}", FEW_ATTEMPTS)

    def find(self, name: str) -> Found | None:
        """Return an object; null if there is none."""
        path, seen = self._path(name), None
        while (version := self._try(partial(self._version, path))) is not None and version != seen:
            with suppress(FileNotFoundError):  # another version is current by now
                content = f"{path}/{version}" if version else path
                return Found(self._try(partial(self._read, content)), version)
            seen = version
        if version is None:
            return None
        raise StoreBroken(f"{self.url}/{name}", f"the version {version} is missing")

    def _version(self, path: str) -> str | None:
        """The current version; empty for a file that is written on no condition, null for none."""
        names = {_name_of(status): status for status in self._list(path)}
        if path.rpartition("/")[2] in names:
            return ""
        return next((name.removeprefix(_IS) for name in names if name.startswith(_IS)), None)

    def _read(self, path: str) -> bytes:
        return self._client.read(path).read()

    def fetch(self, name: str, size: int, to: Path) -> None:
        """Write the first `size` bytes of an object to a file. Raises: FileNotFoundError,
        OSError.
        """
        reader = self._try(lambda: self._client.read(self._path(name)))
        size = min(size, len(reader))
        with to.open("wb") as file:
            for start in range(0, size, RANGE):
                part = partial(reader.read_range, start, min(RANGE, size - start))
                file.write(self._try(part))

    def put(self, name: str, content: Path) -> None:
        """Write an object with the content of a file, in place of an existing one."""
        path, new = self._path(name), self._path(f"{name}.{uuid4().hex}")

        def put() -> None:
            self._write(new, content)
            self._client.rename(new, path, overwrite=True)

        self._try(put)

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects, and the folders that are empty then."""
        for name in names:
            self._try(partial(self._client.delete, self._path(name), recursive=True))
        parents = {str(path) for name in names for path in PurePosixPath(name).parents}
        for parent in sorted(parents - {"."}, key=len, reverse=True):
            with suppress(*self._errors):  # it has other entries
                self._client.delete(self._path(parent), recursive=False)

    def walk(self, prefix: str) -> Iterator[Listed]:
        """List the objects in a folder, and in the folders below."""
        top = f"{self._path('')}/".replace("//", "/")
        listed = self._try(partial(self._list, self._path(prefix), is_recursive=True))
        files = [status for status in listed if not status.isdir]
        current = {_folder_of(of): _name_of(of)[len(_IS) :] for of in files if _is_pointer(of)}
        for status in files:
            folder, name = _folder_of(status), status.path.removeprefix(top)
            if folder in current:
                if _name_of(status) != current[folder]:
                    continue
                name = folder.removeprefix(top)
            yield Listed(name, status.length, status.modification_time / 1000)

    def folders(self, prefix: str) -> list[str]:
        """List the names of the folders in a folder."""
        listed = self._try(partial(self._list, self._path(prefix)))
        return [_name_of(status) for status in listed if status.isdir]

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        return OSError, RuntimeError

    def _put_if(self, name: str, content: bytes, version: str | None) -> str:
        path, new = self._path(name), uuid4().hex
        if version is None:
            return self._create_object(path, content, new)
        before = self._list(path)
        self._write(f"{path}/{new}", content, create_parent=False)  # the object may be gone
        self._client.rename(f"{path}/{_IS}{version}", f"{path}/{_IS}{new}")
        # Whoever wrote what was there before, had read no later version: he succeeds no more.
        for status in before:
            if not _is_pointer(status):
                with suppress(*self._errors):  # the next writer removes it
                    self._client.delete(status.path)
        return new

    def _create_object(self, path: str, content: bytes, version: str) -> str:
        made = f"{path}.{version}"
        try:
            self._write(f"{made}/{version}", content)
            self._write(f"{made}/{_IS}{version}", b"")
            self._client.rename(made, path)
        except self._errors:
            with suppress(*self._errors):
                self._client.delete(made, recursive=True)
            raise
        return version

    def _is_refused(self, error: Exception) -> bool:
        return isinstance(error, PermissionError) or bool(_REFUSED.search(str(error)))

    def _unavailable(self, error: Exception) -> ServiceError:
        why = " ".join(str(error).partition("\n")[0].partition("\\n")[0].split())
        return ServiceError(
            f"{self.url} cannot be used ({why[:600]}): check the address, HADOOP_CONF_DIR, and who "
            "you are there (HADOOP_USER_NAME, kinit), or try again"
        )

    def _path(self, name: str) -> str:
        return "/" + "/".join(filter(None, (self.prefix, name)))

    def _list(self, path: str, *, is_recursive: bool = False) -> list[FileStatus]:
        """What is in a folder, or the file itself; nothing where there is neither."""
        for _ in range(_LISTS):
            try:
                return [*self._client.list_status(path, is_recursive)]
            except FileNotFoundError:  # perhaps of a folder below, which somebody removes
                if not (is_recursive and self._list(path)):
                    return []
        raise OSError(f"{path} changes while it is listed")

    def _write(self, path: str, content: bytes | Path, *, create_parent: bool = True) -> None:
        """Write a file; it is on the disks of its data nodes then."""
        from hdfs_native import WriteOptions

        options = WriteOptions(overwrite=True, create_parent=create_parent)
        with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            writer = self._client.create(path, options)
            try:
                while part := file.read(RANGE):
                    writer.write(part)
                if file.tell():
                    writer.hsync()
                writer.close()
            finally:  # else Python closes it once more as it is freed, and prints what goes wrong
                RawIOBase.close(writer)


def _name_of(status: FileStatus) -> str:
    return status.path.rpartition("/")[2]


def _folder_of(status: FileStatus) -> str:
    return status.path.rpartition("/")[0]


def _is_pointer(status: FileStatus) -> bool:
    return _name_of(status).startswith(_IS)
