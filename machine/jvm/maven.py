"""jgo, a Maven resolver in Python: fetches single jars and makes the lock.

`python -m vizpub.machine.jvm.maven [SET…]` resolves the roots that stand in `jvm.lock` (of all
sets, or of those named), fetches what follows from them and writes sizes and sha256 sums. The
repositories are those jgo is configured for; none is named here.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from tenacity import retry, stop_after_attempt, wait_exponential

from vizpub.machine.jvm.lock import LOCK, Artifact, JarSet, read_lock, write_lock
from vizpub.model.errors import ArtifactsMissing

if TYPE_CHECKING:
    from jgo.maven import MavenContext

THREADS = 16
"""How many jars are fetched at once."""

_TIMEOUT_S = 60

_OnBytes = Callable[[int], None]
"""Called while a jar arrives, with the bytes that are there; a new try begins again at 0."""


def fetch(at: str, staging: Path, on_bytes: _OnBytes | None = None) -> Path:
    """Fetch the jar `group:artifact:version[:classifier]` into a directory below `staging`.

    Raises: ArtifactsMissing.
    """
    try:
        return _try_fetch(at, staging, on_bytes)
    except (OSError, RuntimeError) as error:  # what requests and jgo raise
        raise ArtifactsMissing(at, f"cannot be fetched: {error}") from error


@retry(stop=stop_after_attempt(3), wait=wait_exponential(0.5), reraise=True)
def _try_fetch(at: str, staging: Path, on_bytes: _OnBytes | None) -> Path:
    # A directory for each try: jgo takes a part that an earlier one left for the whole.
    context = _context(Path(mkdtemp(dir=staging)), on_bytes)
    group, name, version, *classifier = at.split(":")
    return context.project(group, name).at_version(version).artifact(*classifier).resolve()


def _context(folder: Path, on_bytes: _OnBytes | None = None) -> MavenContext:
    """jgo with the user's own repositories, keeping what it fetches in `folder`."""
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext, PythonResolver

    @contextmanager
    def counted(_name: str, _size: int) -> Iterator[Callable[[int], None]]:
        arrived = 0

        def add(count: int) -> None:
            nonlocal arrived
            arrived += count
            if on_bytes:
                on_bytes(arrived)

        yield add

    context = MavenContext(
        resolver=PythonResolver(progress_callback=counted), repo_cache=folder, timeout=_TIMEOUT_S
    )
    context.remote_repos.update(GlobalSettings.load().repositories)
    return context


def resolved(jars: JarSet, folder: Path) -> JarSet:
    """The set with its artifacts as its roots have them now, fetched into `folder`."""
    coordinates = _coordinates(jars, folder) if jars.transitive else jars.roots
    with ThreadPoolExecutor(THREADS) as pool:
        artifacts = pool.map(partial(_measured, folder=folder), sorted(coordinates))
        return replace(jars, artifacts=tuple(artifacts))


def _coordinates(jars: JarSet, folder: Path) -> set[str]:
    from jgo.parse import Coordinate

    context = _context(folder)
    roots = [context.create_dependency(Coordinate.parse(root)) for root in jars.roots]
    asked, implied = context.resolver.resolve(roots)
    return {
        ":".join(filter(None, (d.groupId, d.artifactId, d.version, d.classifier)))
        for d in [*asked, *implied]
        if f"{d.groupId}:{d.artifactId}" not in jars.without
    }


def _measured(at: str, folder: Path) -> Artifact:
    path = fetch(at, folder)
    with path.open("rb") as file:
        return Artifact(at, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def make_lock(names: Collection[str] = (), path: Path = LOCK) -> None:
    """Resolve the named sets of the lock again, or all of them."""
    with TemporaryDirectory() as folder:
        write_lock(
            [
                resolved(jars, Path(folder)) if not names or name in names else jars
                for name, jars in read_lock(path).items()
            ],
            path,
        )


if __name__ == "__main__":
    make_lock(sys.argv[1:])
