"""The process that keeps a Spark session running: `python -m vizpub.ingest.spark.holder`.

It starts Spark's JVM and lends it to one command at a time. What a command leaves behind,
also one that was killed in the middle of a job, is ended and dropped before the next one gets
the session; where that cannot be done the session ends. It ends as well after some time
without a command, on request, with its JVM, and when its socket is gone, as it is
when the workspace was removed. The JVM ends with it, because its standard input closes.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import psutil
from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession

from vizpub.ingest.spark import doorway
from vizpub.ingest.spark.doorway import Message
from vizpub.ingest.spark.session import spark_session
from vizpub.ingest.spark.staying import differing_names, folder_of, session_requirements
from vizpub.model.errors import UseError

_TICK_S = 1.0
_BUSY_S = 2.0
"""Seconds that a command waits for another one that is ending."""
_SETTLE_S = 20.0
"""Seconds that a job of a command that has ended may take to end."""
_POLL_S = 0.05


class _SessionHolder:
    """A session and its current lease."""

    def __init__(self, spark: SparkSession, gateway: Any, folder: Path, idle_s: float) -> None:
        self._spark, self._gateway, self._folder, self._idle_s = spark, gateway, folder, idle_s
        self._java = psutil.Process(gateway.jvm.java.lang.ProcessHandle.current().pid())
        server = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client)
        self._bindings = server.getGateway().getBindings()
        self._own_objects = self._gateway.jvm.java.util.HashSet(self._bindings.keySet())
        self._own_objects.add(self._own_objects._target_id)
        self._since, self._last_use = datetime.now().astimezone(), time.monotonic()
        self._lent, self._used_by, self._commands = Lock(), 0, 0
        self.over, self.is_terminated = Event(), False

    def serve(self, ready: socket.socket) -> None:
        """Serve until the session ends; writes a byte to `ready` once it accepts commands."""
        door = doorway.listen(self._folder)
        own_socket = doorway.identity(self._folder)
        Thread(target=self._accept_connections, args=(door,), daemon=True).start()
        with ready, suppress(OSError):  # who started us may be gone
            ready.send(b"1")
        while not (self.over.wait(_TICK_S) or self.is_terminated):
            if not _is_alive(self._java) or doorway.identity(self._folder) != own_socket:
                break
            # The holder takes the lease itself, so no command can get it now.
            if self._idle() > self._idle_s and self._lent.acquire(blocking=False):
                break
        self.over.set()
        if doorway.identity(self._folder) == own_socket:
            doorway.remove(self._folder)

    def _idle(self) -> float:
        return time.monotonic() - self._last_use

    def _accept_connections(self, door: socket.socket) -> None:
        while True:
            end, _ = door.accept()
            Thread(target=self._answer, args=(end,), daemon=True).start()

    def _answer(self, end: socket.socket) -> None:
        with end, suppress(OSError, EOFError, ValueError, UseError):
            doorway.check_peer(end)
            end.settimeout(doorway.ANSWER_S)
            question = doorway.receive(end)
            match question.get("ask"):
                case "lease":
                    self._lend(end, question)
                case "status":
                    doorway.send(end, self._status(question))
                case "stop":
                    self.over.set()
                    doorway.send(end, {"stopping": True})

    def _status(self, question: Message) -> Message:
        differences = differing_names(question.get("fit", {}), session_requirements())
        return {
            "state": "in use" if self._used_by else "running",
            "pid": os.getpid(),
            "java": self._java.pid,
            "since": self._since.isoformat(timespec="seconds"),
            "idle_s": None if self._used_by else round(self._idle(), 1),
            "ends_after_s": self._idle_s,
            "commands": self._commands,
            "used_by": self._used_by or None,
            "fits": _difference_text(differences) if differences else "yes",
        }

    def _lend(self, end: socket.socket, question: Message) -> None:
        """Lend the session until the connection ends."""
        if differences := differing_names(question.get("fit", {}), session_requirements()):
            doorway.send(
                end, {"refused": f"{_difference_text(differences)}; vizpub session start renews it"}
            )
            return
        if not self._lent.acquire(timeout=_BUSY_S):
            why = f"process {self._used_by} uses it" if self._used_by else "it is ending"
            doorway.send(end, {"refused": why})
            return
        try:
            self._used_by = int(question.get("pid") or -1)
            self._commands += 1
            parameters = self._gateway.gateway_parameters
            doorway.send(end, {"port": parameters.port, "secret": parameters.auth_token})
            end.settimeout(None)
            with suppress(OSError):
                end.recv(1)  # nothing is said: it ends
        finally:
            if self._clear_up():
                self._used_by, self._last_use = 0, time.monotonic()
                self._lent.release()
            else:
                self.over.set()

    def _clear_up(self) -> bool:
        """End and drop the jobs and data that a command left in the JVM. Return False if that
        fails.
        """
        try:
            if not self._cancel_jobs() or self._spark.sparkContext._jsc.sc().isStopped():
                return False
            self._drop()
        except Exception as error:
            print(f"the data of the last command could not be dropped: {error}", file=sys.stderr)
            return False
        return True

    def _cancel_jobs(self) -> bool:
        """Cancel the jobs of closed connections. Return False if they do not end."""
        deadline = time.monotonic() + _SETTLE_S
        while self._calls_left():
            self._spark.sparkContext.cancelAllJobs()
            if self.over.wait(_POLL_S) or time.monotonic() > deadline:
                return False
        return True

    def _calls_left(self) -> bool:
        """Return True if the JVM still works for a closed connection.

        A thread of its gateway serves a connection, and closes it when its call is done.
        """
        port = self._gateway.gateway_parameters.port
        return any(
            connection.laddr.port == port and connection.status == psutil.CONN_CLOSE_WAIT
            for connection in self._java.net_connections("tcp")
        )

    def _drop(self) -> None:
        jvm, context = self._gateway.jvm, self._spark.sparkContext
        ours = self._spark._jsparkSession
        ours.catalog().clearCache()
        for rdd in context._jsc.getPersistentRDDs().values():
            rdd.unpersist(False)
        getattr(jvm, "org.apache.spark.sql.classic.SparkSession").setDefaultSession(ours)
        self._bindings.keySet().retainAll(self._own_objects)
        own_folder = Path(context._temp_dir)
        for folder in own_folder.parent.glob("pyspark-*"):
            if folder != own_folder:
                shutil.rmtree(folder, ignore_errors=True)
        jvm.System.gc()  # blocks and files of shuffles go with the objects that stand for them


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _difference_text(names: list[str]) -> str:
    return f"it has another {', '.join(names)}"


def main(scratch: str, idle_s: str, ready: str) -> None:
    """Hold a session for the workspace of that scratch folder."""
    session_requirements()  # as it was before Spark added to it
    where = Path(scratch)
    with spark_session(where, quick=True) as spark:
        # A worker of each kind runs once, as the daemons that fork them keep running.
        spark.sparkContext.parallelize([0], 1).map(abs).count()
        spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        holder = _SessionHolder(spark, SparkContext._gateway, folder_of(where), float(idle_s))
        # The event's lock may be held by the very code that the signal interrupts.
        signal.signal(signal.SIGTERM, lambda *_: setattr(holder, "is_terminated", True))
        holder.serve(socket.socket(fileno=int(ready)))


if __name__ == "__main__":
    main(*sys.argv[1:])
