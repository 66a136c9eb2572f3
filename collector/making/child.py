"""Processes that work for the collector, and end when their input ends."""

from __future__ import annotations

import ctypes
import os
from asyncio import StreamReader, create_subprocess_exec, timeout
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Any

_STEADY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**16),
}
"""Variables that make freed memory go back to the system, in a process that lives for days: without
them the process that appends grows by half a MB with each batch, although nothing is in use
(`python -m benchmarks.fed many`). Arrow's own allocators and glibc's arenas keep what they had, and
without a threshold glibc maps ever larger blocks into the heap.
"""


def environment() -> dict[str, str]:
    """Return the variables of such a process; those of the user take precedence."""
    return {**_STEADY, **os.environ}


async def start(*command: str, **options: Any) -> Process:
    """Start a process, in a session of its own: Ctrl-C is for the collector, which then ends it."""
    return await create_subprocess_exec(
        *command, env=environment(), stdin=PIPE, start_new_session=True, **options
    )


async def read_line(stream: StreamReader) -> bytes:
    """Return the next line of a process; of a line beyond the stream's limit, only an end. Empty at
    the end of the stream.
    """
    while True:
        try:
            return await stream.readline()
        except ValueError:  # the limit: what was read of the line is gone
            continue


def trim() -> None:
    """Return unused pages of glibc's heap to the system, also those between used ones."""
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def kill(process: Process) -> None:
    """Kill a process, unless it has ended."""
    with suppress(ProcessLookupError):
        process.kill()


async def end(process: Process, seconds: float) -> None:
    """Let a process finish its work; kill it after so many seconds."""
    if process.returncode is not None:
        return
    assert process.stdin
    process.stdin.close()
    try:
        async with timeout(seconds):
            await process.communicate()  # reads on: a full pipe would hold it
    except TimeoutError:
        kill(process)
        await process.wait()
