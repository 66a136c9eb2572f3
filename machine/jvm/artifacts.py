"""The locked jars that vizpub runs (Neo4j, GraphFrames), and those that only its tests run (Gephi's
toolkit, a broker of Kafka, an HDFS).

`jars` returns the files of a set, and fetches missing ones into the user's cache. A file is moved
there atomically after a check of its sha256, so later starts only check names and sizes. Files
without a sha256 in the lock are accepted as the repository returns them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from vizpub.machine.jvm.lock import Artifact, JarSet, read_lock
from vizpub.machine.locks import hold_file_lock
from vizpub.model.errors import ArtifactsMissing, UnknownName, UseError, cause_of

Progress = Callable[[int, int], None]
"""Called with the bytes fetched so far and the bytes to fetch, one call at a time."""
_SHOWN = 5
"""Most names of files in an error."""


def cache_path() -> Path:
    """Return the cache folder of vizpub: VIZPUB_CACHE, or one in the user's cache directory."""
    from platformdirs import user_cache_path

    return _path_in("VIZPUB_CACHE") or user_cache_path("vizpub")


def jar_set(name: str) -> JarSet:
    """Return a set of the shipped lock. Raises: UnknownName."""
    sets = read_lock()
    if name not in sets:
        raise UnknownName("set of JVM artifacts", name, sorted(sets))
    return sets[name]


def missing(name: str) -> list[Artifact]:
    """List the artifacts of a set that must still be fetched. Reads and fetches nothing."""
    return [a for a in jar_set(name).files if not _is_here(a)]


def jars(name: str, progress: Progress | None = None) -> list[Path]:
    """Return the files of a set. Missing ones are fetched first.

    If VIZPUB_JARS names a directory, its files of these names are used instead.

    Raises: UnknownName; ArtifactsMissing if a file cannot be fetched or differs from the lock;
    UseError if VIZPUB_JARS is not a directory.
    """
    wanted = jar_set(name)
    if folder := _path_in("VIZPUB_JARS"):
        _check_folder(wanted, folder)
    else:
        _fetch_missing(wanted, progress)
    return [_folder() / a.file_name for a in wanted.files]


def graphframes_jars() -> list[Path]:
    """Return GraphFrames for Spark: the files of VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar, or of `jars`.

    Raises: ArtifactsMissing; UseError for a file that does not exist.
    """
    paths_text = os.environ.get("VIZPUB_GRAPHFRAMES_JARS")
    if not paths_text:
        try:
            return jars("graphframes")
        except ArtifactsMissing as error:
            why = f"{error.why}; VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar names files of your own"
            raise ArtifactsMissing(error.artifacts, why) from error
    paths = [Path(name).expanduser().absolute() for name in paths_text.split(",")]
    for path in paths:
        if not path.is_file():
            raise UseError(f"VIZPUB_GRAPHFRAMES_JARS: {path} is not a file")
    return paths


def _path_in(variable: str) -> Path | None:
    text = os.environ.get(variable)
    return Path(text).expanduser().absolute() if text else None


def _folder() -> Path:
    return _path_in("VIZPUB_JARS") or cache_path() / "jars"


def _is_here(artifact: Artifact) -> bool:
    try:
        size = (_folder() / artifact.file_name).stat().st_size
    except OSError:
        return False
    return size == artifact.size or not artifact.sha256


def _check_folder(wanted: JarSet, folder: Path) -> None:
    if not folder.is_dir():
        raise UseError(f"VIZPUB_JARS={folder} is not a directory")
    paths = [folder / a.file_name for a in wanted.files]
    absent = [path.name for path in paths if not path.is_file()]
    if absent:
        raise ArtifactsMissing(str(wanted), f"{folder} lacks {_few(absent)}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = list(pool.map(_sha256, paths))
    wrong = [
        artifact.file_name
        for artifact, sha256 in zip(wanted.files, sums, strict=True)
        if artifact.sha256 not in ("", sha256)
    ]
    if wrong:
        raise ArtifactsMissing(str(wanted), f"{folder} has other contents for {_few(wrong)}")


def _few(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_missing(wanted: JarSet, progress: Progress | None) -> None:
    if all(map(_is_here, wanted.files)):
        return
    from vizpub.machine.jvm.maven import THREADS

    folder = _folder()
    staging = folder / ".fetching"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_file_lock(folder / ".lock", "fetches jars"):  # which are here then
            artifacts = [a for a in wanted.files if not _is_here(a)]
            count = _ByteCount(sum(a.size for a in artifacts), progress)
            shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed
            staging.mkdir()
            try:
                with ThreadPoolExecutor(THREADS) as pool:
                    # The first failure is raised here and ends the fetches that have not begun.
                    list(pool.map(partial(_fetch, staging=staging, count=count), artifacts))
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise ArtifactsMissing(str(folder), cause_of(error)) from error


def _fetch(artifact: Artifact, staging: Path, count: _ByteCount) -> None:
    from vizpub.machine.jvm.maven import fetch

    path = fetch(artifact.at, staging, partial(count.note, artifact.at))
    sha256 = _sha256(path)
    if artifact.sha256 not in ("", sha256):
        raise ArtifactsMissing(
            artifact.at, f"the download has sha256 {sha256}; jvm.lock says {artifact.sha256}"
        )
    path.replace(_folder() / artifact.file_name)


class _ByteCount:
    """Adds up the bytes that the threads have fetched, and reports them, one call at a time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._by_artifact: dict[str, int] = {}
        self._lock = threading.Lock()

    def note(self, at: str, count: int) -> None:
        with self._lock:
            self._by_artifact[at] = count
            if self._progress:
                self._progress(sum(self._by_artifact.values()), self._total)
