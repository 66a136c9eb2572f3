"""The local Neo4j server: one child process per home directory, that outlives its parent.

A start writes down its process before it waits for it. So any process can find a server whose
parent was killed, from the home alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import Literal

import psutil
from neo4j.exceptions import AuthError, DatabaseUnavailable

from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.admin import (
    LOCAL,
    LocalTool,
    end_tools,
    finish_replacement,
    java_environment,
    local_tool,
)
from vizpub.graphstore.server.connection import connect, from_home
from vizpub.graphstore.server.home import HOST, ServerHome, ServerState
from vizpub.graphstore.server.offline import ROOM, gist
from vizpub.graphstore.server.processes import (
    java_processes,
    recorded_process,
    speaks_bolt,
    wait_for_end,
)
from vizpub.graphstore.server.settings import JARS, PROFILES, SERVER_CLASS, SET_PASSWORD, conf_text
from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.jvm.artifacts import Progress, jar_set
from vizpub.machine.jvm.class_data import is_listed
from vizpub.machine.locks import OF_IMPORTS, hold_file_lock, own_folder
from vizpub.machine.private import make_private, new_file, replace_text
from vizpub.machine.process import birth, is_alive
from vizpub.model.errors import Neo4jUnavailable, ServiceError, UseError, cause_of
from vizpub.model.progress import announce_wait

ENDED = "it ended while starting"

NO_HOME = "is not the home of a local Neo4j"

_START_S = 180
_SETTLE_S = 10
"""Seconds that a database may be unavailable while its server answers."""
_STOP_S = 30
_POLL_S = 0.05
_MOST_STARTS = 3
_TAKEN = "already in use"
"""What Neo4j says of a port that another program took since it was free."""

_ROOM_BYTES = 20_000_000
"""Free space that a start needs; with less, the server hangs instead of ending."""

State = Literal["absent", "stopped", "starting", "running"]


class _EndedWhileStarting(Neo4jUnavailable):
    """The server's process ended before it answered."""


@dataclass(frozen=True)
class ServerStatus:
    """State, addresses and process of a local server."""

    state: State
    home: Path
    uri: str | None = None
    browser: str | None = None
    pid: int | None = None
    version: str | None = None
    memory: int | None = None
    """Resident memory in bytes."""


class LocalServer:
    """The server whose files are in `home` (any path; made at the first start).

    `profile` is a key of vizpub.graphstore.server.settings.PROFILES.
    """

    def __init__(self, home: Path, profile: str = "default") -> None:
        self._home = ServerHome(home.resolve())
        self._profile = PROFILES[profile]

    def start(self, progress: Progress | None = None) -> Connection:
        """Start the server unless it is running already, and wait until Bolt answers.

        `progress` reports jars that have to be fetched first. Of several starts at once, one
        starts the server and the others find it running.

        Raises: Neo4jUnavailable, JavaMissing, ArtifactsMissing.
        """
        with self._lock():
            if process := self._find_process():
                # A process that was killed may still be listed for a moment.
                with suppress(_EndedWhileStarting):
                    return self._wait_until_ready(process)
            for _ in range(_MOST_STARTS - 1):
                try:
                    return self._wait_until_ready(self._launch(progress))
                except _EndedWhileStarting as error:  # maybe of a program that was faster
                    if _TAKEN not in str(error):
                        raise
            return self._wait_until_ready(self._launch(progress))

    def stop(self) -> bool:
        """Stop the server; return False if none was running."""
        if not self._home.check():
            return False
        with self._lock():
            return self._stop()

    def remove(self) -> None:
        """Stop the server and delete its home with every database in it.

        Raises: UseError for a directory in which no server was ever started.
        """
        home = self._home.path
        if os.path.lexists(home):
            if not self._home.state_file.exists():
                raise UseError(f"{home} {NO_HOME}; it was not changed")
            with self._lock():
                self._stop()
                # Its name goes first: who waits for the lock in it would make a new one there.
                home.rename(home.with_name(f".{home.name}.{token_hex(8)}.removed"))
        # Also what a removal left that was killed.
        for removed in home.parent.glob(f".{escape(home.name)}.*.removed"):
            with as_errors_of_ours(removed), suppress(FileNotFoundError):
                shutil.rmtree(removed)

    @contextmanager
    def offline_tool(self) -> Iterator[LocalTool]:
        """See StoppableServer.offline_tool."""
        with self._lock():
            tool = local_tool(self._home)
            self._stop()
            end_tools(self._home)
            try:
                yield tool
            finally:
                self._wait_until_ready(self._launch(None))

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
        """See StoppableServer.staging_folder. It is in the home, on the disk of the data."""
        with own_folder(self._home.path, OF_IMPORTS) as folder:
            yield folder

    def load_lock(self) -> Path:
        """See StoppableServer.load_lock."""
        return self._home.load_lock

    def status(self) -> ServerStatus:
        """Return the server's status at once, without waiting for an answer.

        Raises: UseError if anybody else owns the home or can enter it.
        """
        home, state = self._home.path, self._home.check() and self._home.read_state()
        if not state:
            return ServerStatus("absent", home)
        with suppress(psutil.NoSuchProcess):
            if process := recorded_process(state):
                memory = process.memory_info().rss
                word: State = "running" if speaks_bolt(process, state.bolt_port) else "starting"
                return ServerStatus(
                    word, home, state.uri, state.browser, process.pid, state.version, memory
                )
        return ServerStatus("stopped", home, version=state.version)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock that allows one start, stop or removal at a time, across processes."""
        try:
            make_private(self._home.path)
            with hold_file_lock(self._home.lock_file, "starts or stops this Neo4j"):
                yield
        except OSError as error:
            raise Neo4jUnavailable(
                LOCAL,
                f"its home cannot be used: {error.filename or self._home.path}: {cause_of(error)}",
                "free space, or check its permissions",
            ) from error

    def _find_process(self) -> psutil.Process | None:
        """Return the running server of this home, or None.

        A server whose parent was killed before it could write the state is found by its command
        line, and the state is written now.
        """
        state = self._home.read_state()
        if state and (process := recorded_process(state)):
            return process
        for process in java_processes(self._home, SERVER_CLASS, self._home_argument):
            self._record(state, process)
            return process
        return None

    def _record(self, state: ServerState | None, process: psutil.Process) -> None:
        if state and (born := birth(process.pid)):
            state = replace(state, pid=process.pid, boot=born.boot, ticks=born.ticks)
            self._home.write_state(state)

    @property
    def _home_argument(self) -> str:
        return f"--home-dir={self._home.path}"

    def _launch(self, progress: Progress | None) -> psutil.Process:
        """Start the server's process and write it down."""
        free = shutil.disk_usage(self._home.path).free
        if free < _ROOM_BYTES:
            free_mb, needed_mb = free // 1_000_000, _ROOM_BYTES // 1_000_000
            why = f"its disk has {free_mb} MB left, and a start needs {needed_mb}"
            raise Neo4jUnavailable(LOCAL, why, ROOM)
        tool = local_tool(self._home, progress)
        end_tools(self._home)
        finish_replacement(self._home)
        state = ServerState(*self._choose_ports(), jar_set(JARS).version)
        for folder in (self._home.conf, self._home.log.parent):
            folder.mkdir(exist_ok=True)
        conf = conf_text(state.bolt_port, state.http_port, self._profile)
        replace_text(self._home.conf / "neo4j.conf", conf)
        self._home.make_password()
        self._home.write_state(state)
        if not self._home.has_store:  # later the tool would refuse to set a first password
            # It reads the argument from the file, so the password is not in the process list.
            tool.run(*SET_PASSWORD, f"@{self._home.password_file}")
        process = self._start_process(tool)
        self._record(state, process)
        return process

    def _choose_ports(self) -> tuple[int, int]:
        """Return ports for Bolt and HTTP: those of the last start, or else two free ones."""
        state = self._home.read_state()
        if state and _is_free(state.bolt_port) and _is_free(state.http_port):
            return state.bolt_port, state.http_port
        with socket.create_server((HOST, 0)) as bolt, socket.create_server((HOST, 0)) as http:
            return bolt.getsockname()[1], http.getsockname()[1]

    def _start_process(self, tool: LocalTool) -> psutil.Process:
        with suppress(FileNotFoundError):
            self._home.log.replace(self._home.log.with_suffix(".1.log"))
        with os.fdopen(new_file(self._home.log), "wb") as log:
            child = subprocess.Popen(
                [tool.java.executable, *self._profile.jvm, *tool.class_data.flags(), SERVER_CLASS,
                 self._home_argument, f"--config-dir={self._home.conf}", "--console-mode"],
                env=java_environment(tool.class_path), cwd=self._home.path, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        # The server outlives us on purpose: Popen must neither warn about that nor wait.
        child.returncode = 0
        return psutil.Process(child.pid)

    def _wait_until_ready(self, process: psutil.Process) -> Connection:
        connection = from_home(self._home.path)
        if not connection:
            raise Neo4jUnavailable(
                LOCAL,
                f"process {process.pid} serves {self._home.path}, which lacks its own files",
                f"end it: kill {process.pid}",
            )
        with announce_wait(f"Neo4j to start in {self._home.path}", _START_S):
            return self._poll_until_ready(process, connection)

    def _poll_until_ready(self, process: psutil.Process, connection: Connection) -> Connection:
        deadline, log = time.monotonic() + _START_S, self._home.log
        while time.monotonic() < deadline:
            if not is_alive(process):
                raise _EndedWhileStarting(*self._failure(connection, ENDED, log))
            try:
                connect(connection).close()
                return connection
            except Neo4jUnavailable as error:
                if isinstance(error.__cause__, AuthError):
                    raise Neo4jUnavailable(
                        connection.uri,
                        "its password is not the one kept for it; was it changed?",
                        f"write the new one into {self._home.password_file}",
                    ) from error
                if isinstance(error.__cause__, DatabaseUnavailable):
                    # Bolt answers when the databases have started, or have failed to.
                    deadline = min(deadline, time.monotonic() + _SETTLE_S)
                    log = self._home.debug_log
            time.sleep(_POLL_S)
        self._stop()
        raise Neo4jUnavailable(*self._failure(connection, "its database did not start", log))

    def _failure(self, connection: Connection, problem: str, log: Path) -> tuple[str, str, str]:
        return (
            connection.uri,
            f"{problem}: {gist(log.read_text('utf-8', 'replace') if log.exists() else '')}",
            f"its whole log: {log}\n"
            "  if its store is broken: vizpub neo4j remove, then load the runs again",
        )

    def _stop(self) -> bool:
        process = self._find_process()
        if not process:
            return False
        with suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            process.terminate()
            if not wait_for_end(process, _STOP_S):
                process.kill()
                wait_for_end(process, _STOP_S)
            if is_listed(words):
                with suppress(ServiceError):  # that Java or those jars may be gone by now
                    local_tool(self._home).class_data.make_after(process.pid, words)
        return True


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server((HOST, port)):
        return True
    return False
