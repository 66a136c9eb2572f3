"""Processes that measure, and end with the experiment."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
WORKER_BYTES = 240_000_000
"""Of a process with numba and scipy that measures something small, as measured."""
_LOOK_S = 0.5


@contextmanager
def worker_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of processes for the block. If an error or a signal ends the block, tasks that
    have not started are dropped and started ones are finished; a killed
    experiment takes its processes along.
    """
    # Not forked: a copy of a process with threads may hang or crash, and its copies of open
    # connections end those of the experiment when it forgets them.
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=_start_worker, initargs=(os.getpid(),)
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def map_in_processes(
    function: Callable[[_Argument], _Result], arguments: Iterable[_Argument], processes: int
) -> list[_Result]:
    """Call the function with each argument, in several processes."""
    with worker_pool(processes) as pool:
        return list(pool.map(function, arguments))


def _start_worker(parent: int) -> None:
    """Leave signals of a terminal to the experiment, and look after it: a pool's processes wait
    for work for ever when the one that gives it is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)

    def exit_after_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_S)
        os._exit(1)

    threading.Thread(target=exit_after_parent, daemon=True).start()
