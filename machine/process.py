"""Identifies processes by their numbers, although numbers are reused."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MEMORY = Path("/proc/self/statm")


class Birth(NamedTuple):
    """Distinguishes processes that had the same number."""

    boot: str
    """The boot id of the machine; empty where the system has none."""
    ticks: int
    """Its start in hundredths of a second since boot; in Unix time where there is no boot id."""


def birth(pid: int) -> Birth | None:
    """Return the birth of a process; null if there is none of that number, or it is hidden."""
    try:
        boot = _BOOT.read_text("ascii").strip()
        facts = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        if not _BOOT.exists():
            import psutil

            with suppress(psutil.Error):
                return Birth("", round(psutil.Process(pid).create_time() * 100))
        return None
    # The program's name is in brackets and may have any characters; of the fields behind it the
    # 20th is the 22nd of all, starttime in proc(5).
    return Birth(boot, int(facts.rpartition(b")")[2].split()[19]))


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """During the block, limit this process, and each process that it starts, to so many bytes more
    than it has now, if the kernel supports that. Beyond the limit, MemoryError is raised, or what a
    library raises instead.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        pages = int(_MEMORY.read_text("ascii").split()[5])
    except OSError:
        yield
        return
    most = pages * resource.getpagesize() + size
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def find_process(pid: int, born: Birth) -> psutil.Process | None:
    """Return this user's process with that number and birth; null if it does not run any more."""
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if birth(pid) == born and is_ours(process) and is_alive(process):
            return process
    return None


def is_ours(process: psutil.Process) -> bool:
    """Return True if this user started it; others may start a program that has our rights."""
    return set(process.uids()) == {os.geteuid()}


def is_alive(process: psutil.Process) -> bool:
    """Return True if it has not ended yet."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        with suppress(psutil.TimeoutExpired):
            process.wait(0)  # a child of ours: let the system forget it
    return False


def listens(process: psutil.Process, port: int) -> bool:
    """Return True if a process listens at a port, as the kernel knows."""
    import psutil

    with suppress(psutil.Error):
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for connection in process.net_connections("tcp")
        )
    return False
