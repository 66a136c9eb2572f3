"""A process is told from all others that ever had its number."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from vizpub.machine.process import birth

TICKS = os.sysconf("SC_CLK_TCK")


def test_birth_is_when_the_process_began(tmp_path: Path) -> None:
    """Whatever its program is called."""
    odd = tmp_path / "x) R 1 (2"
    shutil.copy(shutil.which("sleep") or "", odd)
    with subprocess.Popen([odd, "60"]) as child:
        born = birth(child.pid)
        assert born
        since_boot = born.ticks / TICKS + (psutil.boot_time() if born.boot else 0)
        assert since_boot == pytest.approx(psutil.Process(child.pid).create_time(), abs=1)
        assert birth(child.pid) == born
        child.kill()
    assert birth(child.pid) is None


def test_births_of_a_parent_and_its_child_differ() -> None:
    """This process is older than its child by the seconds that its imports took."""
    with subprocess.Popen(["sleep", "60"]) as child:
        assert birth(child.pid) != birth(os.getpid())
        child.kill()
