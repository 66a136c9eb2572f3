"""Processes of an experiment that ends, in one way or another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from vizpub.experiments.workers import worker_pool

JOBS = 2_000
"""More than anybody does before the experiment is ended, however slow the machine."""
_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from vizpub.cli.errors import raising_signals
from vizpub.experiments.workers import worker_pool

folder = Path(__file__).parent / "begun"

def job(number):
    (folder / f"{number}-{os.getpid()}").touch()
    time.sleep(0.1)

if __name__ == "__main__":
    folder.mkdir()
    with raising_signals(sys.exit), worker_pool(2) as pool:
        for one in [pool.submit(job, number) for number in range(2_000)]:
            one.result()
"""


def begun(folder: Path) -> list[Path]:
    return list(folder.glob("begun/*"))


def processes(folder: Path) -> set[int]:
    return {int(path.name.partition("-")[2]) for path in begun(folder)}


def wait_for(text: str, found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text("ascii")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_ended_experiment_drops_its_work_and_ends_its_processes(
    tmp_path: Path, how: signal.Signals
) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as running:
        wait_for("both processes work", lambda: len(processes(tmp_path)) == 2)
        running.send_signal(how)
        assert running.wait(60) != 0
    pids = processes(tmp_path)
    assert len(pids) == 2
    wait_for("the processes end", lambda: not any(map(is_alive, pids)))
    assert len(begun(tmp_path)) < JOBS


def test_failing_work_drops_what_has_not_begun() -> None:
    running: list[Future[None]] = []

    def fail() -> None:
        with worker_pool(1) as pool:
            failing = pool.submit(divmod, 1, 0)
            running.extend(pool.submit(time.sleep, 0.05) for _ in range(500))
            failing.result()

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sum(one.cancelled() for one in running) > 400


def test_interrupt_of_a_terminal_is_left_to_the_experiment() -> None:
    with worker_pool(1) as pool:
        pid = pool.submit(os.getpid).result()
        os.kill(pid, signal.SIGINT)
        assert pool.submit(os.getpid).result() == pid
