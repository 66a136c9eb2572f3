"""Copies of the files of runs in a store, shared by all processes of a user.

A file of a run never changes and its name never stands for other bytes, so a copy that has the
checksum of run.json is the file. It is checked when it arrives and when it is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from vizpub.machine.files import as_errors_of_ours, replacing
from vizpub.machine.locks import lock_of
from vizpub.model.errors import StoreBroken, UseError
from vizpub.runstore.leftovers import is_young
from vizpub.runstore.manifest import FILE, StoredFile, read_manifest
from vizpub.runstore.stores.objects import AT_ONCE, Objects
from vizpub.runstore.stores.place import STORES

DIFFERS_IN_STORE = "it has other bytes in the store than run.json says"
LIMIT = "VIZPUB_S3_CACHE_GB"
"""The variable with the most gigabytes of copies."""
_LIMIT_GB = 20.0
_PARTS = 20
"""Of the limit, that a process fetches before it looks at all copies again."""
Check = Callable[[Path, StoredFile], None]
"""Raises StoreBroken where a local file is not the one that run.json names."""


def bring(
    store: Objects, run: Path, paths: Sequence[tuple[Path, StoredFile]], check: Check
) -> None:
    """Let the copies of these files of a run be there and intact.

    Raises: StoreBroken for a file that the store has not, or has with other bytes; ServiceError,
    DiskFull.
    """
    missing = [(path, file) for path, file in paths if not _is_here(path, file, check)]
    if not missing:
        return

    def fetch(path: Path, file: StoredFile) -> None:
        _fetch(store, f"runs/{run.name}/{path.relative_to(run)}", path, file)
        check(path, file)

    with as_errors_of_ours(run), ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(fetch, *zip(*missing, strict=True)))
        _make_room_after(run.parents[2], sum(file.size for _, file in missing))


def _is_here(path: Path, file: StoredFile, check: Check) -> bool:
    try:
        check(path, file)
        os.utime(path)
    except (StoreBroken, FileNotFoundError):  # damaged here: the store has it
        return False
    return True


def _fetch(store: Objects, name: str, path: Path, file: StoredFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        try:
            store.fetch(name, file.size, new)
        except FileNotFoundError:
            raise StoreBroken(f"{store.url}/{name}", "the file is missing") from None
        if file.crc is not None and crc_of(new) != file.crc:
            raise StoreBroken(f"{store.url}/{name}", DIFFERS_IN_STORE)


def crc_of(path: Path, start: int = 0) -> int:
    """CRC-32 of a file from a byte on."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while chunk := file.read(2**20):
            crc = crc32(chunk, crc)
    return crc


_arrived: dict[Path, int] = {}
"""Bytes that this process has fetched since it last made room, by folder of stores."""


def _make_room_after(stores: Path, size: int) -> None:
    """Make room once, and again when this process has fetched a part of the limit: all copies are
    looked at.
    """
    if stores in _arrived and _arrived[stores] + size < _limit_gb() * 1e9 / _PARTS:
        _arrived[stores] += size
        return
    _make_room(stores)
    _arrived[stores] = 0


def _make_room(stores: Path) -> None:
    """Remove the copies that were not used for the longest time, until the others take no more than
    the limit; but none that may be in use, and nothing that is not in a store yet.
    """
    if stores.name != STORES:
        return
    files = []
    for path in stores.glob("*/runs/*/data/**/*.parquet"):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    too_much = sum(size for _, size, _ in files) - _limit_gb() * 1e9
    kept = {run for run in stores.glob("*/runs/*") if _is_being_made(run)} if too_much > 0 else ()
    for used_s, size, path in sorted(files):
        if too_much <= 0 or is_young(used_s):
            return
        if not any(run in kept for run in path.parents):
            path.unlink(missing_ok=True)
            too_much -= size


def _limit_gb() -> float:
    text = os.environ.get(LIMIT) or _LIMIT_GB
    try:
        return float(text)
    except ValueError:
        raise UseError(f"{LIMIT} must be a number of gigabytes, not {text!r}") from None


def _is_being_made(run: Path) -> bool:
    """Return True if some files of a run may be on this machine only."""
    if os.path.exists(lock_of(run)) or (run / "pending.json").exists():
        return True
    try:
        return not read_manifest(run, FILE).complete
    except (StoreBroken, FileNotFoundError):
        return False
