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
from filelock import FileLock

from vizpub.ingest.spark.doorway import NoAnswer, ask, connect, peer_pid
from vizpub.ingest.spark.shipping import digest
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
"""How variables begin that Spark, its workers or the file systems they read may look at."""
_PACKAGES = ("vizpub", "pyspark", "py4j", "pyarrow", "numpy", "pandas", "numba")
_STOP_S = 30.0


@dataclass(frozen=True)
class Status:
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
    """'yes', or why commands of this installation cannot use it."""


def folder_of(scratch: Path) -> Path:
    """The folder of a workspace's session."""
    return scratch.absolute() / FOLDER


def elsewhere() -> str | None:
    """The environment variable that configures another Spark; null if none is set."""
    return next((name for name in (*_ELSEWHERE, *_SUBMITTED) if os.environ.get(name)), None)


@cache
def fit() -> Mapping[str, str]:
    """What a command and a session must have in common, by name.

    Cached from the first call, as Spark itself changes the environment.
    """
    versions = {name: version(name) for name in _PACKAGES}
    variables = {
        f"${name}": hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        for name, value in os.environ.items()
        if name.startswith(_TELLING)
    }
    return {
        "vizpub's code": digest(),
        "Python": f"{sys.executable} {sys.prefix} {sys.version}",
        "Java": shutil.which("java") or "",
        "umask": f"{_umask():03o}",
        **versions,
        **variables,
    }


def unlike(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The names whose values differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def status(scratch: Path) -> Status:
    """The status of the workspace's session. Raises: UseError."""
    end = _connected(scratch)
    if end is None:
        return Status("absent")
    with end:
        try:
            answer = ask(end, {"ask": "status", "fit": dict(fit())})
        except EOFError:
            return Status("absent")
        except NoAnswer as error:
            return Status("not answering", error.pid, memory=_memory(error.pid))
    known = {name: answer[name] for name in Status.__dataclass_fields__ if name in answer}
    return Status(**{**known, "memory": _memory(answer.get("pid"))})


def _connected(scratch: Path) -> socket.socket | None:
    folder = folder_of(scratch)
    if os.path.lexists(folder):
        fit()  # it takes a while, and who listens waits for a question no longer than we do
    return connect(folder)


def _memory(pid: int | None) -> int | None:
    """Resident bytes of a process and its descendants."""
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total or None


def start(scratch: Path, idle_minutes: float = IDLE_MINUTES) -> tuple[Status, bool]:
    """Start the session unless a fitting one runs, and wait until it accepts commands.

    A session that no longer fits is ended first. Concurrent starts share one session. Returns its
    status, and whether it was running already.

    Raises: UseError where another Spark is configured, where other users can access the folder,
    or where a command uses a session that does not fit; JavaMissing, SparkFailed.
    """
    from vizpub.machine.jvm.java import find_java

    if name := elsewhere():
        raise UseError(f"{name} is set: a session is only for Spark on this machine")
    folder = folder_of(scratch)
    with _locked(folder):
        found = status(scratch)
        if found.state in ("running", "in use") and found.fits == "yes":
            return found, True
        if found.state == "in use":
            raise UseError(
                f"process {found.used_by} uses a session that does not fit ({found.fits}); "
                "wait for it, or end both: vizpub session stop"
            )
        _stop(folder)
        find_java()  # a missing Java is an error here, not only in the holder's log
        _launch(scratch, folder, idle_minutes)
        return status(scratch), False


def stop(scratch: Path) -> Status:
    """End the session at once, even if it is in use, and wait for its end. Returns its last status.

    Raises: UseError where other users can access the folder.
    """
    folder = folder_of(scratch)
    if not os.path.lexists(folder):
        return Status("absent")
    with _locked(folder):
        found = status(scratch)
        _stop(folder)
        return found


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One start or stop at a time. Raises: UseError."""
    try:
        make_private(folder)
    except OSError as error:
        raise UseError(f"a session cannot be kept in {folder}: {cause_of(error)}") from error
    with FileLock(folder / "lock"):
        yield


def _stop(folder: Path) -> None:
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
            _end(process)


def _end(process: psutil.Process) -> None:
    """Wait for the process to end, and kill it after a while; the JVM ends with it."""
    with suppress(psutil.NoSuchProcess):
        below = process.children(recursive=True)
        try:
            process.wait(_STOP_S)
        except psutil.TimeoutExpired:
            process.kill()
        _, alive = psutil.wait_procs(below, _STOP_S)
        for left in alive:
            with suppress(psutil.NoSuchProcess):
                left.kill()


def _launch(scratch: Path, folder: Path, idle_minutes: float) -> None:
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
class Lease:
    """The exclusive use of a session until the connection is closed."""

    end: socket.socket
    port: int
    secret: str


class NotUsed(Exception):
    """Why a command cannot use the session."""


def lease(scratch: Path) -> Lease | None:
    """Lease the workspace's session; null if there is none.

    Raises: NotUsed where it does not fit, is in use, or does not answer; UseError where other
    users can access the folder.
    """
    end = _connected(scratch)
    if end is None:
        return None
    with ExitStack() as unless_taken:
        unless_taken.enter_context(end)
        try:
            answer = ask(end, {"ask": "lease", "pid": os.getpid(), "fit": dict(fit())})
            if refused := answer.get("refused"):
                raise NotUsed(str(refused))
            taken = Lease(end, int(answer["port"]), str(answer["secret"]))
        except EOFError as error:
            raise NotUsed(ENDING) from error
        except (NoAnswer, KeyError, ValueError) as error:
            raise NotUsed("it does not answer; vizpub session stop ends it") from error
        unless_taken.pop_all()
    return taken
