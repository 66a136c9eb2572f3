"""Fetches single jars and makes the lock, with jgo, a Maven resolver in Python.

`python -m vizpub.machine.jvm.maven [SET…]` resolves the roots in `jvm.lock` (of all sets, or of
these), fetches their dependencies, and writes sizes and sha256 sums. The repositories are those in
jgo's configuration.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from tenacity import retry, stop_after_attempt, wait_exponential

from vizpub.machine.jvm.lock import LOCK, Artifact, JarSet, read_lock, write_lock
from vizpub.model.errors import ArtifactsMissing

if TYPE_CHECKING:
    from jgo.maven import MavenContext

THREADS = 16
"""Jars to fetch at once."""

_TIMEOUT_S = 60

_OnBytes = Callable[[int], None]
"""Called while a jar arrives, with the bytes so far; a new try begins again at 0."""


def fetch(at: str, staging: Path, on_bytes: _OnBytes | None = None) -> Path:
    """Fetch the jar `group:artifact:version[:classifier]` into a new directory below `staging`.

    Raises: ArtifactsMissing.
    """
    try:
        return _try_fetch(at, staging, on_bytes)
    except (OSError, RuntimeError) as error:  # what requests and jgo raise
        raise ArtifactsMissing(at, f"cannot be fetched: {error}") from error


@retry(stop=stop_after_attempt(3), wait=wait_exponential(0.5), reraise=True)
def _try_fetch(at: str, staging: Path, on_bytes: _OnBytes | None) -> Path:
    # Each try has its own directory: jgo would take an earlier try's part of a jar for all of it.
    context = _context(Path(mkdtemp(dir=staging)), on_bytes)
    group, name, version, *classifier = at.split(":")
    return context.project(group, name).at_version(version).artifact(*classifier).resolve()


def _context(folder: Path, on_bytes: _OnBytes | None = None) -> MavenContext:
    """Configure jgo with the user's own repositories, to store what it fetches in `folder`."""
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext, PythonResolver

    @contextmanager
    def count_bytes(_name: str, _size: int) -> Iterator[Callable[[int], None]]:
        total = 0

        def add(count: int) -> None:
            nonlocal total
            total += count
            if on_bytes:
                on_bytes(total)

        yield add

    context = MavenContext(
        resolver=PythonResolver(progress_callback=count_bytes),
        repo_cache=folder,
        timeout=_TIMEOUT_S,
    )
    context.remote_repos.update(GlobalSettings.load().repositories)
    return context


def resolve_artifacts(jars: JarSet, folder: Path) -> JarSet:
    """Return the set with the artifacts that its roots have now, fetched into `folder`."""
    from jgo.parse import Coordinate

    coordinates = set(jars.roots)
    if jars.transitive:
        context = _context(folder)
        roots = [context.create_dependency(Coordinate.parse(root)) for root in jars.roots]
        coordinates = {
            ":".join(filter(None, (d.groupId, d.artifactId, d.version, d.classifier)))
            for dependencies in context.resolver.resolve(roots)
            for d in dependencies
            if f"{d.groupId}:{d.artifactId}" not in jars.without
        }

    def measure(at: str) -> Artifact:
        content = fetch(at, folder).read_bytes()
        return Artifact(at, len(content), hashlib.sha256(content).hexdigest())

    with ThreadPoolExecutor(THREADS) as pool:
        return replace(jars, artifacts=tuple(pool.map(measure, sorted(coordinates))))


def make_lock(names: Collection[str] = (), path: Path = LOCK) -> None:
    """Resolve the sets of these names in the lock again, or all of them."""
    with TemporaryDirectory() as folder:
        write_lock(
            [
                resolve_artifacts(jars, Path(folder)) if not names or name in names else jars
                for name, jars in read_lock(path).items()
            ],
            path,
        )


if __name__ == "__main__":
    make_lock(sys.argv[1:])
