"""The administration tool of a local server's home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from vizpub.graphstore.server import processes
from vizpub.graphstore.server.home import ServerHome
from vizpub.graphstore.server.offline import SCRATCH, Command, Tool
from vizpub.graphstore.server.settings import ADMIN_CLASS, ADMIN_JVM, JARS, SERVER_JVM
from vizpub.machine.jvm.artifacts import Progress, cache_path, jars
from vizpub.machine.jvm.class_data import ClassData, kind_of
from vizpub.machine.jvm.java import Java, find_java
from vizpub.machine.private import replace_text

LOCAL = "the local server"

_JVM = (*ADMIN_JVM, "-XX:TieredStopAtLevel=4", "-Xmx1g")
"""More than a second of work: of two arguments of a kind Java heeds the last."""

_NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_", "TZ", "TMPDIR"),
    *("JAVA_", "_JAVA_", "JDK_JAVA_", "LD_", "DYLD_", "MALLOC_"),
)
"""How variables begin that Java, or the system's own libraries in it, look at."""


@dataclass(frozen=True)
class LocalTool(Tool):
    """The tool, for a home whose lock is held and whose server does not run."""

    home: ServerHome
    java: Java
    jars: tuple[Path, ...]

    @contextmanager
    def command(self, *words: str) -> Iterator[Command]:
        """A Java of its own."""
        flags = [*_JVM, *self.class_data.mapped(), _mark(self.home)]
        command: list[str | Path] = [self.java.executable, *flags, ADMIN_CLASS, *words]
        environment = {
            **java_environment(self.class_path),
            "NEO4J_HOME": str(self.home.path),
            "NEO4J_CONF": str(self.home.conf),
        }
        yield Command(command, LOCAL, environment, self.home.path)

    @property
    def class_path(self) -> str:
        """Of the tool and of the server."""
        return os.pathsep.join(map(str, self.jars))

    @property
    def class_data(self) -> ClassData:
        """What Java keeps of the server's classes, which the tool's are among."""
        folder = cache_path() / JARS / kind_of(self.java, SERVER_JVM, self.jars)
        command = (str(self.java.executable), *SERVER_JVM, "-cp", self.class_path)
        return ClassData(folder, command)

    def place(self, folder: Path) -> str:
        """The folder itself: the tool runs on this machine."""
        return str(folder)

    def settle(self, database: str) -> None:
        """See vizpub.graphstore.server.offline.Tool."""
        replace_text(self.home.remade_file, database)  # from here on it is the new one
        settle(self.home)


def local_tool(home: ServerHome, progress: Progress | None = None) -> LocalTool:
    """The tool of a home. Raises: JavaMissing, ArtifactsMissing."""
    return LocalTool(home, find_java(), tuple(jars(JARS, progress)))


def java_environment(class_path: str) -> dict[str, str]:
    """The environment of a Java that runs Neo4j.

    It has no password, nor what else our own holds that a Java does not need.
    """
    needed = {name: value for name, value in os.environ.items() if name.startswith(_NEEDED)}
    return {**needed, "CLASSPATH": class_path, "LC_ALL": "C.UTF-8"}  # Java reads paths by it


def settle(home: ServerHome) -> None:
    """Put a database that was made whole into its place; forget one that was not.

    The home's lock must be held, and no tool work on it.
    """
    folders = [home.path / "data" / kind for kind in ("databases", "transactions")]
    if home.remade_file.exists():
        database = home.remade_file.read_text("utf-8")
        for folder in folders:
            if (folder / SCRATCH).exists():  # else it was put into its place before
                shutil.rmtree(folder / database, ignore_errors=True)
                (folder / SCRATCH).rename(folder / database)
        home.remade_file.unlink()
    for folder in folders:
        shutil.rmtree(folder / SCRATCH, ignore_errors=True)


def end_tools(home: ServerHome) -> None:
    """End the tools that work on a home and whose parents are gone."""
    for process in tools(home):
        with suppress(psutil.Error):
            process.kill()
            process.wait(30)


def tools(home: ServerHome) -> list[psutil.Process]:
    """The tools that work on a home."""
    return processes.running(home, ADMIN_CLASS, _mark(home))


def _mark(home: ServerHome) -> str:
    """An argument by which the tools of a home are found."""
    return f"-Dvizpub.home={home.path}"
