"""Processes that work for the collector, and end when their input does."""

from __future__ import annotations

from asyncio import timeout
from asyncio.subprocess import Process


async def end(process: Process, seconds: float) -> None:
    """Let it end what it does; after so long it is killed."""
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
