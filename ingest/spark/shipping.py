"""vizpub as one zip file, for executors whose Python does not have it."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_PACKAGE = "vizpub"
_LEFT_OUT = (".pyc", ".nbi", ".nbc", ".ndjson.gz")
"""Files that are not sent: those that Python and numba compile, and the demo's trace."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def pack_package(folder: Path) -> Path:
    """Zip the package as it is installed, with all its files, into the folder.

    The same files always give the same bytes. The name has a digest of the
    content, `vizpub-<digest>.zip`, under which machines cache compiled functions.
    """
    contents = dict(sorted(_contents()))
    packed = folder / f"vizpub-{_digest(contents)}.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return packed


def digest() -> str:
    """Return the digest of the installed package, as in the file name of `pack_package`."""
    return _digest(dict(sorted(_contents())))


def _digest(contents: Mapping[str, bytes]) -> str:
    hashed = hashlib.sha256()
    for name, content in contents.items():
        hashed.update(f"{name}\0{len(content)}\0".encode())
        hashed.update(content)
    return hashed.hexdigest()[:16]


def _contents() -> Iterator[tuple[str, bytes]]:
    """Yield the path below the package's parent, and the content, of every file. Links are
    followed: in a checkout, the sub-packages are links.
    """
    yield from _below(files(_PACKAGE), _PACKAGE)


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{path}/{entry.name}")
        elif not entry.name.endswith(_LEFT_OUT):
            yield f"{path}/{entry.name}", entry.read_bytes()
