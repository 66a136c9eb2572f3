"""The process that Spark's Python workers on this machine are forked from, with all imported.

Spark's own daemon imports nothing before it forks, so every worker spends seconds on the same
imports. The reason: a thread that runs while a process forks may hold a lock for which the child
waits for ever. So the libraries imported here are configured to start no threads, and none of
their functions are called. Executors on other machines cannot use this daemon: theirs starts before
they get our packages.

Spark starts its daemon with the first task, which then waits for these imports. So one is started
beside Java, while that starts. It imports, and waits at a socket in a folder that only this user
may enter. The daemon that Spark starts hands its standard streams and its environment over to it,
and from then on only waits for its end. If no process waits there, it imports and forks itself.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from select import select
from shutil import rmtree

_NO_THREADS = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables that keep the libraries below from starting threads as they are loaded."""

IMPORTED = (
    "pyspark.worker",
    "pyarrow.parquet",
    "msgspec",
    "vizpub.analytics.blocks",
    "vizpub.analytics.messages.message_fold",
    "vizpub.analytics.snapshots",
    "vizpub.ingest.inputs.inventory",
    "vizpub.ingest.sources",
)

AHEAD = "_VIZPUB_WORKER_DAEMON"
"""Variable of Java with the path of the socket at which a process waits."""
_DIGITS = 12
"""Digits of the size of what is handed over."""
_TAKEN = b"+"
_POLL_S = 0.2


def preload() -> None:
    """Import the modules that workers need, without a thread. Prints go to standard error."""
    os.environ.update(_NO_THREADS)
    with redirect_stdout(sys.stderr):  # Spark reads the port of the daemon from standard output
        from vizpub.analytics.structure import cache_kernels  # and with it numpy and Arrow

        cache_kernels()
        for name in IMPORTED:
            with suppress(ImportError):  # a worker that needs it will say what is wrong
                import_module(name)
    gc.collect()
    gc.freeze()  # or every worker's first collection would copy all of its pages


def take_over(path: Path, java: int) -> socket.socket:
    """Import, wait at the socket `path` for the daemon that Spark starts, and take its place.

    Return the connection to that daemon, which closes with this process. The folder of the socket
    is removed. Raises: OSError if the path is too long; SystemExit if the parent, whose process
    number is `java`, has ended.
    """
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(1)
            preload()
            while not select([listener], [], [], _POLL_S)[0]:
                if os.getppid() != java:
                    sys.exit()
            daemon, _ = listener.accept()
    finally:
        rmtree(path.parent, ignore_errors=True)
    size, streams, _, _ = socket.recv_fds(daemon, _DIGITS, 3)
    facts = daemon.recv(int(size), socket.MSG_WAITALL)
    environment, sys.path[:], sys.argv[1:] = json.loads(facts)
    os.environ.update(environment | _NO_THREADS)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    daemon.send(_TAKEN)
    return daemon


def hand_over(path: str) -> bool:
    """Let the process that waits at the socket `path` take the place of this one, and return True
    when it has ended. Return False if none waits.
    """
    with suppress(OSError), socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(path)
        facts = json.dumps([dict(os.environ), sys.path, sys.argv[1:]]).encode()
        socket.send_fds(waiting, [f"{len(facts):{_DIGITS}}".encode()], [0, 1, 2])
        waiting.sendall(facts)
        if waiting.recv(1) == _TAKEN:
            waiting.recv(1)
            return True
    return False


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ahead"]:
        daemon = take_over(Path(sys.argv[2]), int(sys.argv[3]))
    elif hand_over(os.environ.pop(AHEAD, "")):
        sys.exit()
    else:
        preload()
    from pyspark.daemon import manager

    manager()
