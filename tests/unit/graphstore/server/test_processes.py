"""Who is not our server is neither ended nor told a password, whatever it looks like."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import SimpleNamespace

import psutil
import pytest

from vizpub.graphstore.server import server as server_module
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.admin import end_tools, java_environment
from vizpub.graphstore.server.connection import connect, from_home
from vizpub.graphstore.server.home import ServerHome, ServerState
from vizpub.graphstore.server.processes import (
    ANOTHER_PROCESS,
    check_server,
    java_processes,
    recorded_process,
    speaks_bolt,
)
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.settings import ADMIN_CLASS, SERVER_CLASS, SET_PASSWORD
from vizpub.machine.private import OF_ANOTHER
from vizpub.machine.process import birth
from vizpub.model.errors import NO_ANSWER, Neo4jUnavailable, UseError

NOBODY = 65534
SECRET = "overheard by nobody"

by_root = pytest.mark.skipif(os.geteuid() != 0, reason="to be another user takes root")


@pytest.fixture
def home(tmp_path: Path) -> ServerHome:
    home = ServerHome(tmp_path / "neo4j")
    home.path.mkdir(mode=0o700)
    return home


@pytest.fixture
def children() -> Iterator[ExitStack]:
    """Processes that are waited for until they are ended."""
    with ExitStack() as stack:
        yield stack


@dataclass
class Looks:
    """A process that looks like a server or tool of a home: a shell that waits for a line."""

    home: ServerHome
    program: str = "java"
    folder: Path | None = None
    user: int | None = None
    words: list[str] = field(default_factory=lambda: [SERVER_CLASS, "--home-dir=it"])

    def start(self, children: ExitStack) -> subprocess.Popen[bytes]:
        place = Path(children.enter_context(TemporaryDirectory()))  # others enter it, too
        place.chmod(0o755)
        program = place / self.program
        shutil.copy(shutil.which("bash") or "", program)
        child = subprocess.Popen(
            [program, "-c", "read", *self.words],
            stdin=subprocess.PIPE,
            cwd=self.folder or self.home.path,
            user=self.user,
        )
        children.enter_context(child)
        children.callback(child.kill)
        return child


def found(home: ServerHome) -> list[int]:
    return [process.pid for process in java_processes(home, SERVER_CLASS, "--home-dir=it")]


def test_java_of_ours_in_the_home_is_found(home: ServerHome, children: ExitStack) -> None:
    child = Looks(home).start(children)
    assert found(home) == [child.pid]


@pytest.mark.parametrize("change", [
    {"program": "editor"}, {"folder": Path("/")},
    {"words": [SERVER_CLASS]}, {"words": ["--home-dir=it"]},
    pytest.param({"user": NOBODY}, marks=by_root),
], ids=["program", "folder", "home", "class", "user"])  # fmt: skip
def test_lookalike_is_not_found(
    home: ServerHome, children: ExitStack, change: dict[str, object]
) -> None:
    replace(Looks(home), **change).start(children)  # type: ignore[arg-type]
    assert found(home) == []


def test_process_that_names_the_home_survives_stop_and_end_of_tools(
    home: ServerHome, children: ExitStack
) -> None:
    home.write_state(ServerState(1, 2, "5"))
    words = [f"-Dvizpub.home={home.path}", ADMIN_CLASS, f"--home-dir={home.path}", SERVER_CLASS]
    child = Looks(home, program="editor", words=words).start(children)
    assert not LocalServer(home.path).stop()
    end_tools(home)
    assert child.poll() is None


def state_of(pid: int, port: int = 1) -> ServerState:
    born = birth(pid)
    assert born
    return ServerState(port, 2, "5", pid, born.boot, born.ticks)


def test_process_is_recognised_by_its_birth_alone(home: ServerHome) -> None:
    state = state_of(os.getpid())
    assert recorded_process(state) == psutil.Process()
    assert recorded_process(replace(state, ticks=state.ticks + 1)) is None
    assert recorded_process(replace(state, boot="another")) is None
    assert recorded_process(replace(state, pid=None)) is None


@by_root
def test_process_of_another_user_is_not_recognised(children: ExitStack, home: ServerHome) -> None:
    for user, known in ((None, True), (NOBODY, False)):
        child = children.enter_context(subprocess.Popen(["sleep", "60"], user=user))
        children.callback(child.kill)
        assert (recorded_process(state_of(child.pid)) is not None) is known


class Eavesdropper:
    """Somebody in this process who speaks Bolt just well enough to be told a password."""

    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.heard = b""
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                end = self._door.accept()[0]
                with end:
                    self.heard += end.recv(20)
                    end.sendall(b"\0\0\0\5")  # Bolt 5.0, whose first message has the password
                    self.heard += end.recv(4096)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join()


@pytest.fixture
def eavesdropper() -> Iterator[Eavesdropper]:
    there = Eavesdropper()
    yield there
    there.close()


def kept(home: ServerHome, state: ServerState) -> Connection:
    """The connection of a home that was told this state."""
    home.password_file.touch(0o600)
    home.password_file.write_text(SECRET)
    home.write_state(state)
    connection = from_home(home.path)
    assert connection
    return connection


def test_password_is_not_sent_to_another_process_at_the_port(
    home: ServerHome, eavesdropper: Eavesdropper, children: ExitStack
) -> None:
    server = children.enter_context(subprocess.Popen(["sleep", "60"]))
    children.callback(server.kill)
    connection = kept(home, state_of(server.pid, eavesdropper.port))
    with pytest.raises(Neo4jUnavailable, match=ANOTHER_PROCESS):
        connect(connection)
    assert SECRET.encode() not in eavesdropper.heard
    with pytest.raises(Neo4jUnavailable):  # as a server that the user names would be
        connect(replace(connection, home=None))
    assert SECRET.encode() in eavesdropper.heard


def test_password_is_not_sent_to_the_port_of_a_server_that_ended(
    home: ServerHome, eavesdropper: Eavesdropper
) -> None:
    with subprocess.Popen(["sleep", "60"]) as server:
        state = state_of(server.pid, eavesdropper.port)
        server.kill()
    with pytest.raises(Neo4jUnavailable, match=NO_ANSWER):
        connect(kept(home, state))
    assert eavesdropper.heard == b""


def test_first_password_is_set_from_its_file(
    home: ServerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lists processes sees the words of their commands."""
    said: list[str] = []

    def run(*words: str) -> None:
        said.extend(words)
        raise Neo4jUnavailable("the tool", "it is none", "go on")

    monkeypatch.setattr(server_module, "local_tool", lambda *_: SimpleNamespace(run=run))
    with pytest.raises(Neo4jUnavailable, match="it is none"):
        LocalServer(home.path).start()
    assert said == [*SET_PASSWORD, f"@{home.password_file}"]


def test_server_is_known_without_a_password(home: ServerHome, eavesdropper: Eavesdropper) -> None:
    """By who listens: here that is this process."""
    home.write_state(state_of(os.getpid(), eavesdropper.port))
    check_server(home, f"bolt://127.0.0.1:{eavesdropper.port}")
    assert speaks_bolt(psutil.Process(), eavesdropper.port)
    with subprocess.Popen(["sleep", "60"]) as other:
        assert not speaks_bolt(psutil.Process(other.pid), eavesdropper.port)
        other.kill()


def test_state_of_an_earlier_version_is_read_without_its_process(home: ServerHome) -> None:
    """A server that runs is then found as one whose start was killed."""
    home.state_file.write_text(
        '{"bolt_port": 1, "http_port": 2, "version": "5", "pid": 1, "created": 1.5}'
    )
    state = home.read_state()
    assert state == ServerState(1, 2, "5", 1)
    assert recorded_process(state) is None


@pytest.mark.parametrize("how", ["open", pytest.param("foreign", marks=by_root)])
def test_home_that_is_not_ours_alone_is_refused(home: ServerHome, how: str) -> None:
    kept(home, ServerState(1, 2, "5"))
    home.path.chmod(0o755) if how == "open" else os.chown(home.path, NOBODY, NOBODY)
    before = sorted(path.name for path in home.path.iterdir())
    server = LocalServer(home.path)
    for use in (server.start, server.stop, server.status, server.remove):
        with pytest.raises(UseError, match=f"chmod 700|{OF_ANOTHER}"):
            use()
    with pytest.raises(UseError, match=f"chmod 700|{OF_ANOTHER}"):
        from_home(home.path)
    assert sorted(path.name for path in home.path.iterdir()) == before


def test_environment_of_a_java_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEO4J_PASSWORD", "NEO4J_AUTH", "AWS_SECRET_ACCESS_KEY", "TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")
    told = java_environment("jars")
    assert SECRET not in told.values()
    assert (told["CLASSPATH"], told["JAVA_TOOL_OPTIONS"]) == ("jars", "-Xint")
    # What is told is enough for a program of the system's.
    subprocess.run([sys.executable, "-c", ""], env=told, check=True)
