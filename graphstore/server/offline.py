"""Work on a database while its server is stopped, with Neo4j's administration tool.

Two kinds of servers can be stopped and started again: a local one (vizpub.graphstore.server.server)
and one in a container (vizpub.graphstore.server.container). Both give a `Tool`, and start the
server again whatever happens in between. A new database is made under another name, which the
server does not know, and takes the place of the old one when it is complete: nobody ever sees half
of one, and a failure or a kill leaves the old one as it is.
"""

from __future__ import annotations

import json
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from filelock import FileLock, Timeout

from vizpub.graphstore.server.address import Connection
from vizpub.model.errors import Neo4jUnavailable
from vizpub.model.progress import Progress

TOOL = "its administration tool"

DISK_FULL = "its disk is full"

OnLine = Callable[[str], None]
"""Receives each line that the tool prints, while it works."""

FULL = "No space left on device"
ROOM = "free some space, and run the same command again"

SCRATCH = "vizpub-remade"
"""The name of a database in the making."""

_WRONG = re.compile(r" ERROR |^Caused by: |^Exception in |^Error")


@dataclass(frozen=True)
class Command:
    """A program to run, and the names that errors use for it and its server."""

    words: Sequence[str | Path]
    server: str
    """The server, as errors name it."""
    environment: Mapping[str, str] | None = None
    folder: Path | None = None
    program: str = TOOL

    def run(
        self,
        on_line: OnLine | None = None,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> str:
        """Run the program and return its output. It is killed if this call is interrupted.

        Raises: Neo4jUnavailable with the gist of its messages, if it fails.
        """
        lines: list[str] = []
        with TemporaryFile() as messages:
            with subprocess.Popen(
                self.words,
                env=self.environment,
                cwd=self.folder,
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout or subprocess.PIPE,
                stderr=messages,
                start_new_session=True,  # Ctrl-C reaches us only, and we kill it
            ) as process:
                try:
                    for raw in process.stdout or ():
                        lines.append(raw.decode("utf-8", "replace"))
                        if on_line:
                            on_line(lines[-1])
                    process.wait()
                except BaseException:
                    process.kill()
                    raise
            if process.returncode:
                messages.seek(0)
                text = messages.read().decode("utf-8", "replace")
                raise failure(self.server, text + "".join(lines), self.program)
        return "".join(lines)


class Tool(ABC):
    """The administration tool of a server that is stopped."""

    def run(
        self,
        *words: str,
        on_line: OnLine | None = None,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> str:
        """Run the tool and return its output (nothing if that goes to `stdout`).

        Raises: Neo4jUnavailable with the gist of its messages, if it fails.
        """
        with self.command(*words) as command:
            return command.run(on_line, stdin, stdout)

    @abstractmethod
    def command(self, *words: str) -> AbstractContextManager[Command]:
        """Yield the command that runs the tool."""

    @abstractmethod
    def share(self, folder: Path) -> str:
        """Make a folder of this machine visible to the tool; return its path there."""

    @contextmanager
    def replacement(self, database: str) -> Iterator[str]:
        """Yield the name under which the block makes a new database.

        If the block succeeds, the new database replaces the old one in one step.
        """
        yield SCRATCH
        # Its files have its name in small letters, however it was spelled.
        self.finish_replacement(database.lower())

    @abstractmethod
    def finish_replacement(self, database: str) -> None:
        """Put the complete new database into the place of this one."""


class StoppableServer(Protocol):
    """A server that can be stopped and started again."""

    def start(self) -> Connection:
        """Start the server unless it runs already, and wait until Bolt answers.

        Raises: Neo4jUnavailable, and what else keeps it from starting.
        """

    def offline_tool(self) -> AbstractContextManager[Tool]:
        """Stop the server for the length of the block, and yield its administration tool.

        However the block ends, the server is started again and has answered afterwards.

        Raises: Neo4jUnavailable, and the errors of `start`.
        """

    def staging_folder(self) -> AbstractContextManager[Path]:
        """Yield a temporary folder of this machine for files that the tool reads."""

    def load_lock(self) -> Path:
        """Return the file of the lock that each load holds; see `hold_load_lock`."""


@contextmanager
def hold_load_lock(lock_file: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock that allows one load into a server at a time.

    `progress` is called if there is another load to wait for.
    """
    # Otherwise an import would stop the server under another load. That load would go on in a
    # database that has lost its rows, and the constraints that keep it from writing twice.
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("wait for another load", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def failure(server: str, output: str, program: str = Command.program) -> Neo4jUnavailable:
    """Return the error for a program that failed."""
    if FULL in output:
        return Neo4jUnavailable(server, DISK_FULL, ROOM)
    return Neo4jUnavailable(server, f"{program} failed: {gist(output)}", "check it")


def gist(log: str) -> str:
    """Return the last three lines of a log that say what went wrong, without stack frames."""
    texts = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in texts if _WRONG.search(line)]
    return "\n  ".join((errors or texts)[-3:]) or "it said nothing"


def last_transaction(tool: Tool, database: str) -> int:
    """Return the number of a database's last committed transaction. Raises: Neo4jUnavailable."""
    output = tool.run("database", "info", database, "--format=json")
    document = output[output.index("{") :]  # Java's warnings may come before it
    transaction: int = int(json.loads(document)["lastCommittedTransaction"])
    return transaction
