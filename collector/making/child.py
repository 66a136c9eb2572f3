"""Processes that work for the collector, and end when their input does."""

from __future__ import annotations

import ctypes
import os
from asyncio import timeout
from asyncio.subprocess import Process
from contextlib import suppress

_STEADY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**16),
}
"""Makes what is freed go back to the system, in a process that lives for days: without it the one
that appends grows by half a MB with each batch, although nothing is in use
(`python -m benchmarks.fed many`). Arrow's own allocators and glibc's arenas keep what they had, and
glibc maps ever larger blocks into the heap, unless it is given a threshold.
"""


def environment() -> dict[str, str]:
    """Return the variables of such a process; those that the user has set stay."""
    return {**_STEADY, **os.environ}


def trim() -> None:
    """Give back the pages of glibc's heap in which nothing is in use, also between others."""
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


async def end(process: Process, seconds: float) -> None:
    """Let a process end what it does; kill it after so many seconds."""
    if process.returncode is not None:
        return
    assert process.stdin
    process.stdin.close()
    try:
        async with timeout(seconds):
            await process.communicate()  # reads on: a full pipe would hold it
    except TimeoutError:
        process.kill()
        await process.wait()
