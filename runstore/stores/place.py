"""Workspaces in a store (S3, HDFS), and the folder that each of them has on this machine.

The folder is a workspace as any other. It holds copies of the runs' files, so that all that reads
a run reads local files (vizpub.runstore.stores.copies), and what a command makes before it is in
the store (vizpub.runstore.stores.remote). Nothing in it is needed by anybody else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.modules import needing_extra
from vizpub.machine.private import make_private, replace_text
from vizpub.model.errors import UseError
from vizpub.model.run import address_of, check_workspace
from vizpub.runstore.stores.hdfs import HdfsObjects
from vizpub.runstore.stores.objects import Objects
from vizpub.runstore.stores.s3 import S3Objects

STORES = "stores"
"""The folder of these folders in the cache."""
_FILE = "store.json"
_S3 = re.compile(r"s3:/+([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/+(.*))?")
_HDFS = re.compile(r"hdfs:/+([A-Za-z0-9][A-Za-z0-9._-]*(?::[0-9]{1,5})?)(?:/+(.*))?")
"""Addresses, whose two slashes pathlib turns into one."""
_PREFIX = re.compile(r"[A-Za-z0-9._=+@-]+")


def folder_of(workspace: Path | str, endpoint: str = "", region: str = "") -> Path:
    """The folder of a workspace: its own, or the one that stands for a workspace in a store here.

    Raises: UseError for another URI, for a prefix that no workspace can have, and without the
    extra `s3` or `hdfs`.
    """
    kind = str(workspace).partition(":/")[0]
    environ = os.environ.get
    if kind == "s3":
        bucket, prefix = _parse(_S3, workspace, "s3://BUCKET")
        with needing_extra("s3", "a workspace in S3"):
            import obstore  # noqa: F401
        endpoint = endpoint or environ("AWS_ENDPOINT_URL_S3") or environ("AWS_ENDPOINT_URL") or ""
        region = region or environ("AWS_REGION") or environ("AWS_DEFAULT_REGION") or ""
        return _folder_for(S3Objects(bucket, prefix, endpoint, region))
    if kind == "hdfs":
        authority, prefix = _parse(_HDFS, workspace, "hdfs://HOST:PORT")
        with needing_extra("hdfs", "a workspace in HDFS"):
            import hdfs_native  # noqa: F401
        return _folder_for(HdfsObjects(authority, prefix))
    check_workspace(Path(workspace))
    return Path(workspace)


def _parse(pattern: re.Pattern[str], workspace: Path | str, top: str) -> tuple[str, str]:
    """The store and the prefix of an address that begins like `top`."""
    match = pattern.fullmatch(str(workspace))
    names = [name for name in (match[2] or "").split("/") if name] if match else []
    if not match or not all(_PREFIX.fullmatch(name) and name.strip(".") for name in names):
        raise UseError(
            f"{address_of(workspace)} is no address of a workspace: write {top} or {top}/PREFIX, "
            "with letters, digits and the signs . _ = + @ - in the prefix"
        )
    return match[1], "/".join(names)


def _folder_for(store: Objects) -> Path:
    assert isinstance(store, S3Objects | HdfsObjects)
    place = json.dumps(asdict(store))
    digest = hashlib.blake2b(place.encode(), digest_size=10).hexdigest()
    folder = _top() / digest
    with as_errors_of_ours(folder):
        make_private(_top())
        folder.mkdir(exist_ok=True)
        file = folder / _FILE
        if not (file.exists() and file.stat().st_size):
            replace_text(file, place)
    return folder


class RunPlace(NamedTuple):
    """The directory of a run, for tasks on any machine."""

    directory: Path
    """Where the process has it that began the tasks."""
    store: Objects | None
    """The store through which the machines share the run's files; null = they share the path."""

    def here(self) -> Path:
        """The directory on this machine."""
        if self.store is None:
            return self.directory
        return _folder_for(self.store) / "runs" / self.directory.name

    def share(self, *files: Path) -> None:
        """Let the other machines have files of the directory here. Raises: ServiceError."""
        if self.store:
            top = self.here()
            for file in files:
                self.store.put(f"runs/{self.directory.name}/{file.relative_to(top)}", file)


def store_of_run(directory: Path) -> Objects | None:
    """The store of the run whose directory on this machine this is; null if it has none."""
    return store_of(directory.parent.parent)


def store_of(folder: Path) -> Objects | None:
    """The store of the workspace whose folder this is; null if the runs are in the folder."""
    return _read_place(folder) if folder.parent.name == STORES else None


def name_of(workspace: Path) -> str:
    """The workspace as users name it."""
    store = store_of(workspace)
    return store.url if store else str(workspace)


@cache
def _read_place(folder: Path) -> Objects | None:
    if folder.parent != _top():  # a workspace of the user's that is in a folder of that name
        return None
    place: dict[str, str] = json.loads((folder / _FILE).read_bytes())
    return S3Objects(**place) if "bucket" in place else HdfsObjects(**place)


def _top() -> Path:
    from vizpub.machine.jvm.artifacts import cache_path  # few need it

    return cache_path().absolute() / STORES
