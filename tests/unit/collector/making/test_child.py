"""Processes that end when their input does, or have to."""

from __future__ import annotations

import asyncio
import platform
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE

import pytest

from vizpub.collector.making import child

READS = "import sys; sys.stdin.read(); "


@pytest.mark.parametrize(
    ("code", "seconds", "found"),
    [
        (READS + "sys.exit(7)", 60.0, 7),
        (READS + "sys.stderr.write('x' * 10**6); sys.exit(8)", 60.0, 8),
        ("import time; time.sleep(600)", 0.3, -signal.SIGKILL),
    ],
    ids=["ends", "says much first", "goes on"],
)
def test_process_ends_with_its_input_or_is_killed(code: str, seconds: float, found: int) -> None:
    async def work() -> int | None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdin=PIPE, stderr=PIPE
        )
        assert process.returncode is None
        await child.end(process, seconds)
        await child.end(process, seconds)  # it is gone already
        return process.returncode

    assert asyncio.run(work()) == found


def test_line_beyond_the_limit_is_cut_and_the_next_ones_are_read() -> None:
    code = "print('a'); print(200_000 * 'b' + 'c'); print('d')"

    async def work() -> list[bytes]:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
        assert process.stdout
        lines = []
        while line := await child.read_line(process.stdout):
            lines.append(line)
        await process.wait()
        return lines

    first, *cut, last = asyncio.run(work())
    assert (first, last) == (b"a\n", b"d\n")
    assert all((200_000 * b"b" + b"c\n").endswith(part) for part in cut)


def printed(code: str) -> str:
    """By a Python that is started as the collector starts its own."""
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=child.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout


def test_variables_that_the_user_has_set_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    assert child.environment()["MALLOC_ARENA_MAX"] == "4"
    pool = printed("import pyarrow; print(pyarrow.default_memory_pool().backend_name)")
    assert pool == "system\n"


def test_pages_between_what_is_in_use_go_back() -> None:
    code = """
import psutil
from vizpub.collector.making.child import trim
kept = [bytes(1000) for _ in range(200_000)]
kept = kept[::100]
held = psutil.Process().memory_info().rss
trim()
print(held - psutil.Process().memory_info().rss)
"""
    given_back = int(printed(code))
    if platform.libc_ver()[0] == "glibc":
        assert given_back > 50_000_000  # of some 200 MB
