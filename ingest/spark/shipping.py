"""vizpub's packages as one zip file, for executors whose Python does not have them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from pkgutil import iter_modules

_LEFT_OUT = (".pyc", ".nbi", ".nbc")
"""What Python and numba make from sources, for the machine they run on."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def packages() -> list[str]:
    """Names of our packages: all that lie beside this one, and that the wheel brought if one did.

    A checkout has no other packages at its top, nor does the file that executors get.
    """
    home = str(Path(__file__).parents[2])
    found = {module.name for module in iter_modules([home]) if module.ispkg}
    for installed in distributions(name="vizpub", path=[home]):
        found &= {path.parts[0] for path in installed.files or ()}
    return sorted(found)


def pack(folder: Path) -> Path:
    """Zip the packages as they are installed, with all their files, into the folder.

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
    """The digest of the installed packages, as in the file name of `pack`."""
    return _digest(dict(sorted(_contents())))


def _digest(contents: Mapping[str, bytes]) -> str:
    hashed = hashlib.sha256()
    for name, content in contents.items():
        hashed.update(f"{name}\0{len(content)}\0".encode())
        hashed.update(content)
    return hashed.hexdigest()[:16]


def _contents() -> Iterator[tuple[str, bytes]]:
    """Path below the packages' parent, and content, of every file."""
    for package in packages():
        yield from _below(files(package), package)


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{path}/{entry.name}")
        elif not entry.name.endswith(_LEFT_OUT):
            yield f"{path}/{entry.name}", entry.read_bytes()
