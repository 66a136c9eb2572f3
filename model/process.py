"""Identifying a process by its number, although numbers are reused."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Birth(NamedTuple):
    """What no two processes of a number have in common."""

    boot: str
    """The start of the machine that it lives in; empty where the system gives it no name."""
    ticks: int
    """When it began: hundredths of a second since then, which no change of the clock moves; of
    Unix time where there is no name."""


def birth(pid: int) -> Birth | None:
    """Of the process that has the number now; null where none has, or it may not be seen."""
    try:
        boot = _BOOT.read_text("ascii").strip()
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None if _BOOT.exists() else _by_the_clock(pid)
    # The name of the program stands in brackets and may hold anything; of what follows it the
    # 20th is the 22nd of all, starttime in proc(5).
    return Birth(boot, int(told.rpartition(b")")[2].split()[19]))


def _by_the_clock(pid: int) -> Birth | None:
    import psutil

    try:
        return Birth("", round(psutil.Process(pid).create_time() * 100))
    except psutil.Error:
        return None
