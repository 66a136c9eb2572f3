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
"""For more than a second of work. Java obeys the last of two arguments of a kind."""

_JAVA_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_", "TZ", "TMPDIR"),
    *("JAVA_", "_JAVA_", "JDK_JAVA_", "LD_", "DYLD_", "MALLOC_"),
)
"""Prefixes of the variables that Java, or the system libraries in it, read."""


@dataclass(frozen=True)
class LocalTool(Tool):
    """The administration tool of a home whose lock is held and whose server is stopped."""

    home: ServerHome
    java: Java
    jars: tuple[Path, ...]

    @contextmanager
    def command(self, *words: str) -> Iterator[Command]:
        """Yield a command that runs the tool in a Java of its own."""
        flags = [*_JVM, *self.class_data.mapping_flags(), _mark(self.home)]
        command: list[str | Path] = [self.java.executable, *flags, ADMIN_CLASS, *words]
        environment = {
            **java_environment(self.class_path),
            "NEO4J_HOME": str(self.home.path),
            "NEO4J_CONF": str(self.home.conf),
        }
        yield Command(command, LOCAL, environment, self.home.path)

    @property
    def class_path(self) -> str:
        """The class path of the tool and of the server."""
        return os.pathsep.join(map(str, self.jars))

    @property
    def class_data(self) -> ClassData:
        """Java's archive of the server's classes, which include the tool's."""
        folder = cache_path() / JARS / kind_of(self.java, SERVER_JVM, self.jars)
        command = (str(self.java.executable), *SERVER_JVM, "-cp", self.class_path)
        return ClassData(folder, command)

    def share(self, folder: Path) -> str:
        """Return the path of the folder: the tool runs on this machine."""
        return str(folder)

    def finish_replacement(self, database: str) -> None:
        """See vizpub.graphstore.server.offline.Tool."""
        replace_text(self.home.replacement_file, database)  # from here on it is the new one
        finish_replacement(self.home)


def local_tool(home: ServerHome, progress: Progress | None = None) -> LocalTool:
    """Return the tool of a home. Raises: JavaMissing, ArtifactsMissing."""
    return LocalTool(home, find_java(), tuple(jars(JARS, progress)))


def java_environment(class_path: str) -> dict[str, str]:
    """Return the environment of a Java that runs Neo4j.

    It has only what Java needs of ours: no password, for one.
    """
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(_JAVA_VARIABLES)
    }
    return {**variables, "CLASSPATH": class_path, "LC_ALL": "C.UTF-8"}  # Java reads paths by it


def finish_replacement(home: ServerHome) -> None:
    """Put a complete new database into its place; delete an incomplete one.

    The home's lock must be held, and no tool may work on the home.
    """
    folders = [home.path / "data" / kind for kind in ("databases", "transactions")]
    if home.replacement_file.exists():
        database = home.replacement_file.read_text("utf-8")
        for folder in folders:
            if database and (folder / SCRATCH).exists():  # else it is in its place already
                shutil.rmtree(folder / database, ignore_errors=True)
                (folder / SCRATCH).rename(folder / database)
        home.replacement_file.unlink()
    for folder in folders:
        shutil.rmtree(folder / SCRATCH, ignore_errors=True)


def end_tools(home: ServerHome) -> None:
    """Kill the tools that still work on a home although their parents are gone."""
    for process in tool_processes(home):
        with suppress(psutil.Error):
            process.kill()
            process.wait(30)


def tool_processes(home: ServerHome) -> list[psutil.Process]:
    """Return the processes of the tools that work on a home."""
    return processes.java_processes(home, ADMIN_CLASS, _mark(home))


def _mark(home: ServerHome) -> str:
    """Return an argument that marks the tools of a home."""
    return f"-Dvizpub.home={home.path}"
