"""Work on a database while its server is stopped, with Neo4j's administration tool.

There are two places where a server can be stopped and started again: the home of a local
server (vizpub.graphstore.server.server) and a container (vizpub.graphstore.server.container). Both
give a `Tool`, and start the server again whatever happens in between. A database that is made anew
is made under another name, which the server does not know, and takes the place of the old one when
it is whole: half of one is never seen, and what fails or is killed leaves the old one as it is.
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
"""Takes each line that the tool prints, while it works."""

FULL = "No space left on device"
ROOM = "free some space, and run the same command again"

SCRATCH = "vizpub-remade"
"""The name of a database in the making."""

_WRONG = re.compile(r" ERROR |^Caused by: |^Exception in |^Error")


@dataclass(frozen=True)
class Command:
    """A program to run, and what its failure is called."""

    words: Sequence[str | Path]
    of: str
    """The server, as errors name it."""
    environment: Mapping[str, str] | None = None
    folder: Path | None = None
    what: str = TOOL

    def run(
        self,
        on_line: OnLine | None = None,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> str:
        """Run it and give what it printed. It is ended where this call is (by Ctrl-C).

        Raises: Neo4jUnavailable with the gist of what it said, where it fails.
        """
        with TemporaryFile() as said:
            with subprocess.Popen(
                self.words,
                env=self.environment,
                cwd=self.folder,
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout or subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for us, and we end it
            ) as process:
                try:
                    printed = _read(process, on_line)
                    process.wait()
                except BaseException:
                    process.kill()
                    raise
            if process.returncode:
                said.seek(0)
                text = said.read().decode("utf-8", "replace")
                raise failed(self.of, text + printed, self.what)
        return printed


class Tool(ABC):
    """The administration tool of a server that is stopped."""

    def run(
        self,
        *words: str,
        on_line: OnLine | None = None,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> str:
        """Run it and give what it printed (nothing where that goes to `stdout`).

        Raises: Neo4jUnavailable with the gist of what it said, where it fails.
        """
        with self.command(*words) as command:
            return command.run(on_line, stdin, stdout)

    @abstractmethod
    def command(self, *words: str) -> AbstractContextManager[Command]:
        """The program that is the tool, for the length of the block."""

    @abstractmethod
    def place(self, folder: Path) -> str:
        """The folder of this machine as the tool sees it."""

    @contextmanager
    def remaking(self, database: str) -> Iterator[str]:
        """The name under which a new database is to be made in the block.

        When the block has come to its end it takes the place of the old one, at once.
        """
        yield SCRATCH
        self.settle(database)

    @abstractmethod
    def settle(self, database: str) -> None:
        """Put the database that was made whole into the place of this one."""


class Place(Protocol):
    """Where a server is, that can be stopped."""

    def start(self) -> Connection:
        """Start it unless it runs already, and wait until Bolt answers.

        Raises: Neo4jUnavailable, and what else keeps it from starting.
        """

    def stopped(self) -> AbstractContextManager[Tool]:
        """Its tool, with the server stopped for the length of the block; it is started again
        and has answered when the block is left, in whatever way.

        Raises: Neo4jUnavailable, and what starting it raises.
        """

    def staging(self) -> AbstractContextManager[Path]:
        """A folder of this machine for files that the tool shall read, for the block."""

    def load_lock(self) -> Path:
        """The file of the lock that who loads holds; see `alone`."""


@contextmanager
def alone(lock_file: Path, progress: Progress) -> Iterator[None]:
    """One load into a server at a time.

    Else an import would stop it under another load, which would then go on in a database that
    has lost what it wrote, and the constraints that keep it from writing twice. `progress` is
    called where there is another load to wait for.
    """
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


def _read(process: subprocess.Popen[bytes], on_line: OnLine | None) -> str:
    lines = []
    for raw in process.stdout or ():
        line = raw.decode("utf-8", "replace")
        lines.append(line)
        if on_line:
            on_line(line)
    return "".join(lines)


def failed(of: str, said: str, what: str = Command.what) -> Neo4jUnavailable:
    """The failure of a program in our words."""
    if FULL in said:
        return Neo4jUnavailable(of, DISK_FULL, ROOM)
    return Neo4jUnavailable(of, f"{what} failed: {gist(said)}", "check it")


def gist(log: str, lines: int = 3) -> str:
    """The last lines of a log that say what went wrong, without stack frames."""
    said = [line.strip() for line in log.splitlines() if line.strip()]
    wrong = [line for line in said if _WRONG.search(line)]
    return "\n  ".join((wrong or said)[-lines:]) or "it said nothing"


def last_transaction(tool: Tool, database: str) -> int:
    """The last transaction that was committed in a database. Raises: Neo4jUnavailable."""
    output = tool.run("database", "info", database, "--format=json")
    found: int = int(json.loads(output[output.index("{") :])["lastCommittedTransaction"])
    return found
