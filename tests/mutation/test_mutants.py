"""Checkers are checked: their own tests find small wrong changes in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.targets import TARGETS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("module", TARGETS)
def test_mutants_of_a_checker_are_found_by_its_tests(module: str) -> None:
    """In a process of its own: changes cannot leave their Spark and Neo4j to other tests."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", module],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
