"""Which process of pytest-xdist runs which files.

Java is started once, and stays warm. One browser draws at a time: without a graphics card it takes
a processor for itself, and browsers beside each other wait for all but their turn. Long files come
first, so that no process works alone in the end; in a random order, too. What is long for the
whole, such as the mutants, comes first whatever it needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.project import ROOT
from tests.support.record import Record

NEO4J, SPARK, BROWSER, NONE = range(4)
"""What files need most."""

NEW_S = 2.0
"""What a test costs whose seconds are not recorded."""


@cache
def need_of(file: str) -> int:
    """Return it by the file's folder, and by its marks: a server that is needed once is started."""
    if file.startswith("tests/integration/explorer/"):
        return BROWSER
    if not file.startswith("tests/integration/"):
        return NONE
    return NEO4J if "pytest.mark.neo4j" in (ROOT / file).read_text("utf-8") else SPARK


def turn_of(file: str, place: int) -> int:
    """When a process takes a file, by its place among them: 0 is first.

    Each has a need of its own, and takes what has none before another's.
    """
    need = need_of(file)
    return 0 if need == place % 3 else 1 if need == NONE else 2


def cost_of_files(tests: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the recorded seconds of the files' tests."""
    keys = {test if test in seconds else test.partition("[")[0] for test in tests}
    cost: dict[str, float] = defaultdict(float)
    for key in sorted(keys):
        cost[key.partition("::")[0]] += seconds.get(key, NEW_S)
    return cost


def size_of(cost: float) -> int:
    """Return 0 for all files of less than eight seconds, and one more for twice the cost."""
    return max(0, int(cost).bit_length() - 3)


def rank_of(file: str, place: int, cost: float, large: float) -> tuple[bool, int, int]:
    """Return what orders the files for a process at a place; those of a `large` cost are first."""
    return cost < large, turn_of(file, place), -size_of(cost)


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Keeps a file in one process, and files of one need in one process as far as they go."""

    @cached_property
    def _costs(self) -> dict[str, float]:
        return cost_of_files(self.collection, Record.read().seconds)

    @cached_property
    def _large(self) -> float:
        """Seconds from which a file comes before all others: a quarter of a process' share."""
        return sum(self._costs.values()) / len(self.nodes) / 4

    def _reschedule(self, node: Any) -> None:
        # A process that takes the place of one that crashed may still be collecting.
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        place = self.nodes.index(node)
        first = min(
            self.workqueue,
            key=lambda file: rank_of(file, place, self._costs[file], self._large),
        )
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
