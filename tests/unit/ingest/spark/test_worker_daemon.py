"""The process that Python workers are forked from."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark import SparkConf

from tests.support.collected import until
from vizpub.ingest.spark import session
from vizpub.ingest.spark.worker_daemon import AHEAD, IMPORTED

DAEMON = "vizpub.ingest.spark.worker_daemon"

_TOLD = """
import json, os, sys
from vizpub.ingest.spark.worker_daemon import IMPORTED, preload
print("before")
preload()
threads = len(os.listdir("/proc/self/task"))
print(json.dumps([threads, [name for name in IMPORTED if name not in sys.modules]]))
"""


def test_preloading_imports_all_and_starts_no_thread() -> None:
    assert IMPORTED
    done = subprocess.run([sys.executable, "-c", _TOLD], stdout=subprocess.PIPE, check=True)
    before, told = done.stdout.decode().splitlines()
    assert before == "before"
    assert json.loads(told) == [1, []]


def test_workers_on_this_machine_have_our_own_python_and_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def choose(master: str, python: str) -> tuple[str, str | None]:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
        conf = SparkConf(loadDefaults=False).setMaster(master)
        session._choose_python(conf)
        return os.environ["PYSPARK_PYTHON"], conf.get("spark.python.daemon.module")

    assert choose("local[2]", "/opt/other/python3") == (sys.executable, DAEMON)
    assert choose("spark://10.0.0.1:7077", "/opt/python3") == ("/opt/python3", None)


def _start_daemon(waiting: Path | None) -> subprocess.Popen[bytes]:
    """Start a daemon as Spark does, given the socket where a process waits."""
    variables = {"PYTHON_WORKER_FACTORY_SECRET": "any"} | ({AHEAD: str(waiting)} if waiting else {})
    return subprocess.Popen(
        [sys.executable, "-m", DAEMON, "pyspark.worker"],
        env=os.environ | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _listener(daemon: subprocess.Popen[bytes]) -> psutil.Process:
    """Return the process that listens where a daemon says that it does."""
    assert daemon.stdout
    port = int.from_bytes(daemon.stdout.read(4))
    (process,) = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    }
    assert process
    return psutil.Process(process)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """The socket at which a process waits, and the process."""
    path = tmp_path / "folder" / "daemon"
    path.parent.mkdir()
    command = [sys.executable, "-m", DAEMON, "--ahead", path, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        until(path.exists)
        yield path, process
        process.kill()


def test_process_that_waits_takes_the_place_of_the_daemon(waiting: Any) -> None:
    path, process = waiting
    daemon = _start_daemon(path)
    listener = _listener(daemon)
    assert listener.pid == process.pid
    assert not path.parent.exists()
    assert daemon.poll() is None
    daemon.communicate(timeout=60)  # as Spark ends it
    process.wait(60)


def test_daemon_that_follows_one_forks_by_itself(waiting: Any) -> None:
    path, process = waiting
    first = _start_daemon(path)
    assert _listener(first).pid == process.pid
    second = _start_daemon(path)
    assert _listener(second).pid == second.pid
    for daemon in (first, second):
        daemon.communicate(timeout=60)


def test_daemon_forks_by_itself_if_the_process_that_waits_ends(tmp_path: Path) -> None:
    path = tmp_path / "daemon"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        daemon = _start_daemon(path)
        listener.accept()[0].close()
    assert _listener(daemon).pid == daemon.pid
    daemon.communicate(timeout=60)


def test_process_that_waits_ends_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "daemon"
    path.parent.mkdir()
    command = [sys.executable, "-m", DAEMON, "--ahead", path, str(os.getppid())]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60)
    assert not path.parent.exists()
