from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.support.words import naming
from vizpub.ingest.spark import doorway
from vizpub.machine.private import NO_FOLDER, OF_ANOTHER, make_private
from vizpub.model.errors import UseError

LISTENER = """
import sys, time
from pathlib import Path
from vizpub.ingest.spark.doorway import listen
door = listen(Path(sys.argv[1]))
print("listening", flush=True)
time.sleep(600)
"""


@contextmanager
def listener(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that listens and never answers."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "listening\n"
        try:
            yield child
        finally:
            child.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace" / "session"
    make_private(folder)
    return folder


def answering(folder: Path, answer: Callable[[socket.socket], None]) -> Thread:
    """Somebody here who does this to the first that connects."""
    door = doorway.listen(folder)

    def serve() -> None:
        with door, door.accept()[0] as end:
            answer(end)

    thread = Thread(target=serve)
    thread.start()
    return thread


def asked(folder: Path) -> doorway.Message:
    end = doorway.connect(folder)
    assert end
    with end:
        return doorway.ask(end, {"ask": "this"})


def echo(end: socket.socket) -> None:
    doorway.send(end, {"heard": doorway.receive(end)})


def test_question_is_answered(folder: Path) -> None:
    thread = answering(folder, echo)
    assert asked(folder) == {"heard": {"ask": "this"}}
    thread.join()


def test_folder_path_too_long_for_a_socket_address_works(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 150) / "session"
    make_private(folder)
    thread = answering(folder, echo)
    assert asked(folder) == {"heard": {"ask": "this"}}
    thread.join()


def test_doorway_without_a_listener_gives_no_connection(tmp_path: Path, folder: Path) -> None:
    assert doorway.connect(folder) is None
    assert doorway.connect(tmp_path / "nowhere") is None


def test_doorway_of_a_killed_listener_is_free_for_another(folder: Path) -> None:
    with listener(folder) as child:
        end = doorway.connect(folder)
        assert end
        end.close()
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert doorway.identity(folder) is not None
        assert doorway.connect(folder) is None
    thread = answering(folder, echo)
    assert asked(folder) == {"heard": {"ask": "this"}}
    thread.join()


def test_hanging_listener_raises_no_answer_with_its_pid(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "ANSWER_S", 0.2)
    with listener(folder) as child, pytest.raises(doorway.NoAnswer) as told:
        asked(folder)
    if hasattr(socket, "SO_PEERCRED"):
        assert told.value.pid == child.pid


def test_malformed_message_raises_no_answer(folder: Path) -> None:
    def say(end: socket.socket) -> None:
        end.recv(100)
        end.sendall(b"[1]\n")

    thread = answering(folder, say)
    with pytest.raises(doorway.NoAnswer):
        asked(folder)
    thread.join()


def test_closed_connection_raises_eof_error(folder: Path) -> None:
    thread = answering(folder, lambda end: None)
    with pytest.raises(EOFError):
        asked(folder)
    thread.join()


class TestOnlyItsOwners:
    def test_folder_is_closed_to_others(self, folder: Path) -> None:
        assert folder.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770])
    def test_open_folder_is_refused(self, folder: Path, mode: int) -> None:
        folder.chmod(mode)
        for use in (make_private, doorway.connect):
            with pytest.raises(UseError, match=naming(f"chmod 700 {folder}")):
                use(folder)

    def test_symbolic_link_is_refused(self, folder: Path) -> None:
        link = folder.with_name("link")
        link.symlink_to(folder)
        with pytest.raises(UseError, match=naming(link, NO_FOLDER)):
            make_private(link)
        with pytest.raises(UseError, match=naming(link, NO_FOLDER)):
            doorway.connect(link)

    def test_folder_of_another_user_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        with pytest.raises(UseError, match=naming(folder, OF_ANOTHER)):
            doorway.connect(folder)

    @pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the kernel does not tell")
    def test_peer_of_another_user_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, other = socket.socketpair(socket.AF_UNIX)
        with one, other:
            doorway.check_peer(one)
            user = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: user)
            with pytest.raises(UseError, match=doorway.OTHER_USER):
                doorway.check_peer(one)
