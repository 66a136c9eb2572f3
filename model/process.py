"""Identifying a process by its number, although numbers are reused."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_BOOT = Path("/proc/sys/kernel/random/boot_id")


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
