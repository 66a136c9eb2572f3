"""Spark sessions that keep running: start, stop, show and use the one of a workspace.

A small process, the holder (vizpub.ingest.spark.holder), keeps Spark's JVM with one SparkContext
running. Each command runs in its own process and borrows the session (vizpub.ingest.spark.warm),
one command at a time. A lease is a connection to the holder, so it ends with the command in every
case.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import psutil

from vizpub.ingest.spark.doorway import NoAnswer, ask, connect, peer_pid
from vizpub.ingest.spark.shipping import digest
from vizpub.machine.locks import hold_file_lock
from vizpub.machine.private import make_private, new_file
from vizpub.model.errors import SparkFailed, UseError, cause_of

ENDING = "it is ending"

IDLE_MINUTES = 15.0
FOLDER = "session"
_LOG = "log"
_ELSEWHERE = ("SPARK_MASTER", "SPARK_HOME", "SPARK_CONF_DIR")
_SUBMITTED = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS")
_TELLING = (
    *("SPARK_", "PYSPARK_", "VIZPUB_SPARK_", "VIZPUB_JAVA", "JAVA_", "_JAVA_", "JDK_JAVA_"),
    *("PYTHON", "NUMBA_", "OMP_", "HADOOP_", "AWS_", "LC_", "LANG", "TZ", "HOME", "XDG_CACHE_"),
)
"""Prefixes of the variables that Spark, its workers or their file systems may read."""
_PACKAGES = ("vizpub", "pyspark", "py4j", "pyarrow", "numpy", "pandas", "numba")
_STOP_S = 30.0


@dataclass(frozen=True)
class SessionStatus:
    """The status of a running session."""

    state: str
    """'absent', 'running', 'in use' or 'not answering'."""
    pid: int | None = None
    java: int | None = None
    """Process id of the JVM."""
    since: str | None = None
    idle_s: float | None = None
    """Seconds since the last command; null while one uses it."""
    ends_after_s: float | None = None
    """Seconds without a command after which it ends."""
    commands: int | None = None
    """Number of commands that used it so far."""
    used_by: int | None = None
    """Process id of the command that uses it."""
    memory: int | None = None
    """Resident bytes of the holder, the JVM and Python's workers."""
    fits: str | None = None
    """'yes', or the reason why commands of this installation cannot use it."""


def folder_of(scratch: Path) -> Path:
    """Return the folder of a workspace's session."""
    return scratch.absolute() / FOLDER


def configured_elsewhere() -> str | None:
    """Return the environment variable that configures another Spark; null if none is set."""
    return next((name for name in (*_ELSEWHERE, *_SUBMITTED) if os.environ.get(name)), None)


@cache
def session_requirements() -> Mapping[str, str]:
    """Return the facts that a command and a session must have in common, by name.

    Cached from the first call, as Spark itself changes the environment.
    """
    versions = {name: version(name) for name in _PACKAGES}
    variables = {
        f"${name}": hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        for name, value in os.environ.items()
        if name.startswith(_TELLING)
    }
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "vizpub's code": digest(),
        "Python": f"{sys.executable} {sys.prefix} {sys.version}",
        "Java": shutil.which("java") or "",
        "umask": f"{mask:03o}",
        **versions,
        **variables,
    }


def differing_names(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the names whose values differ."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def session_status(scratch: Path) -> SessionStatus:
    """Return the status of the workspace's session. Raises: UseError."""
    end = _connect(scratch)
    if end is None:
        return SessionStatus("absent")
    with end:
        try:
            answer = ask(end, {"ask": "status", "fit": dict(session_requirements())})
        except EOFError:
            return SessionStatus("absent")
        except NoAnswer as error:
            return SessionStatus("not answering", error.pid, memory=_memory(error.pid))
    fields = {name: answer[name] for name in SessionStatus.__dataclass_fields__ if name in answer}
    return SessionStatus(**{**fields, "memory": _memory(answer.get("pid"))})


def _connect(scratch: Path) -> socket.socket | None:
    folder = folder_of(scratch)
    if os.path.lexists(folder):
        # It takes a while, and the listener waits for a question no longer than we do.
        session_requirements()
    return connect(folder)


def _memory(pid: int | None) -> int | None:
    """Return the resident bytes of a process and its descendants; null if it has ended."""
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total or None


def start_session(scratch: Path, idle_minutes: float = IDLE_MINUTES) -> tuple[SessionStatus, bool]:
    """Start the session unless a fitting one runs, and wait until it accepts commands.

    A session that no longer fits is ended first. Concurrent starts share one session. Return its
    status, and True if it was running already.

    Raises: UseError if another Spark is configured, if other users can access the folder, or if
    a command uses a session that does not fit; JavaMissing, SparkFailed.
    """
    from vizpub.machine.jvm.java import find_java

    if name := configured_elsewhere():
        raise UseError(
            f"{name} is set: a session is only for Spark on this machine; unset it, or ingest "
            "without a session"
        )
    folder = folder_of(scratch)
    with _session_lock(folder):
        current = session_status(scratch)
        if current.state in ("running", "in use") and current.fits == "yes":
            return current, True
        if current.state == "in use":
            raise UseError(
                f"process {current.used_by} uses a session that does not fit ({current.fits}); "
                "wait for it, or end both: vizpub session stop"
            )
        _stop_holder(folder)
        find_java()  # a missing Java is an error here, not only in the holder's log
        _launch_holder(scratch, folder, idle_minutes)
        return session_status(scratch), False


def stop_session(scratch: Path) -> SessionStatus:
    """End the session at once, even if it is in use, and wait for its end. Return its last status.

    Raises: UseError if other users can access the folder.
    """
    folder = folder_of(scratch)
    if not os.path.lexists(folder):
        return SessionStatus("absent")
    with _session_lock(folder):
        current = session_status(scratch)
        _stop_holder(folder)
        return current


@contextmanager
def _session_lock(folder: Path) -> Iterator[None]:
    """Hold the lock that allows one start or stop at a time. Raises: UseError."""
    try:
        make_private(folder)
    except OSError as error:
        raise UseError(f"a session cannot be kept in {folder}: {cause_of(error)}") from error
    with hold_file_lock(folder / "lock", "starts or stops the Spark session"):
        yield


def _stop_holder(folder: Path) -> None:
    end = connect(folder)
    if end is None:
        return
    with end:
        # Its process is known from the connection, and the connection ends with it: no other
        # can be meant.
        process = None
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid) if (pid := peer_pid(end)) else None
        with suppress(NoAnswer, EOFError):
            ask(end, {"ask": "stop"})
        if process:
            _wait_or_kill(process)


def _wait_or_kill(process: psutil.Process) -> None:
    """Wait for the process to end, and kill it after a while; the JVM ends with it."""
    with suppress(psutil.NoSuchProcess):
        below = process.children(recursive=True)
        try:
            process.wait(_STOP_S)
        except psutil.TimeoutExpired:
            process.kill()
        _, alive = psutil.wait_procs(below, _STOP_S)
        for survivor in alive:
            with suppress(psutil.NoSuchProcess):
                survivor.kill()


def _launch_holder(scratch: Path, folder: Path, idle_minutes: float) -> None:
    """Start the holder, which outlives this process; wait until ready. Raises: SparkFailed."""
    ours, its = socket.socketpair()
    log = folder / _LOG
    with ours, its, os.fdopen(new_file(log), "wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "vizpub.ingest.spark.holder", str(scratch.absolute()),
             str(idle_minutes * 60), str(its.fileno())],
            cwd="/", start_new_session=True, pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        )  # fmt: skip
        its.close()
        try:
            ready = ours.recv(1)
        except BaseException:
            child.terminate()
            raise
    if not ready:
        child.wait()
        why = (log.read_text("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
        raise SparkFailed(f"the session did not start: {why} (its whole log: {log})")
    # It outlives us on purpose: Popen must neither warn about that nor wait for it.
    child.returncode = 0


@dataclass(frozen=True)
class SessionLease:
    """The exclusive use of a session until the connection is closed."""

    end: socket.socket
    port: int
    secret: str


class SessionNotUsable(Exception):
    """Reason why a command cannot use the session."""


def lease_session(scratch: Path) -> SessionLease | None:
    """Lease the workspace's session; null if there is none.

    Raises: SessionNotUsable if it does not fit, is in use, or does not answer; UseError if other
    users can access the folder.
    """
    end = _connect(scratch)
    if end is None:
        return None
    with ExitStack() as unless_taken:
        unless_taken.enter_context(end)
        try:
            answer = ask(
                end, {"ask": "lease", "pid": os.getpid(), "fit": dict(session_requirements())}
            )
            if refused := answer.get("refused"):
                raise SessionNotUsable(str(refused))
            granted = SessionLease(end, int(answer["port"]), str(answer["secret"]))
        except EOFError as error:
            raise SessionNotUsable(ENDING) from error
        except (NoAnswer, KeyError, ValueError) as error:
            raise SessionNotUsable("it does not answer; vizpub session stop ends it") from error
        unless_taken.pop_all()
    return granted
