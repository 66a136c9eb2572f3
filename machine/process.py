"""Identifying a process by its number, although numbers are reused."""

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
    """The birth of the process with that number; null if there is none, or it is not visible."""
    try:
        boot = _BOOT.read_text("ascii").strip()
        facts = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None if _BOOT.exists() else _by_the_clock(pid)
    # The name of the program stands in brackets and may hold anything; of what follows it the
    # 20th is the 22nd of all, starttime in proc(5).
    return Birth(boot, int(facts.rpartition(b")")[2].split()[19]))


def _by_the_clock(pid: int) -> Birth | None:
    import psutil

    try:
        return Birth("", round(psutil.Process(pid).create_time() * 100))
    except psutil.Error:
        return None


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """In the block, this process gets at most so many bytes more than it has now, where the kernel
    can see to that, and so does every process that it starts. Asking for more raises a MemoryError,
    or what a library makes of it.
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
    """The process of this user that has the number and the birth, if it still runs."""
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if birth(pid) == born and is_ours(process) and is_alive(process):
            return process
    return None


def is_ours(process: psutil.Process) -> bool:
    """Started by us, and not as a program that has our rights with any user who starts it."""
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
            found.status == psutil.CONN_LISTEN and found.laddr.port == port
            for found in process.net_connections("tcp")
        )
    return False
