"""Files of tests in the order of their cost: the longest first, so that none is left over.

`seconds.json` has the last recorded seconds of each file (`make test
PYTEST_ARGS=--record-seconds`); a file that it does not know comes before all others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

SECONDS = Path(__file__).with_name("seconds.json")


def longest_first() -> Callable[[str], tuple[float, str]]:
    """The sort key of files, given as in test ids."""
    known = json.loads(SECONDS.read_text("utf-8"))
    return lambda file: (-known.get(file, inf), file)


class Recorder:
    """Adds up the seconds of each file's tests, and writes them at the end."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        root = Path(__file__).parents[2]
        known = json.loads(SECONDS.read_text("utf-8")) | self._seconds
        there = {file: round(s, 1) for file, s in sorted(known.items()) if (root / file).exists()}
        SECONDS.write_text(json.dumps(there, indent=1) + "\n", "utf-8")
