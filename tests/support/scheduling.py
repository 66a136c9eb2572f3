"""Which process of pytest-xdist runs which files.

Java is started once, and stays warm. One browser draws at a time: without a graphics card it takes
a processor for itself, and browsers beside each other wait for all but their turn.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.project import ROOT

NEO4J, SPARK, BROWSER, NONE = range(4)
"""What files need most."""


@cache
def need_of(file: str) -> int:
    """By its folder and its marks; Spark starts quicker than Neo4j, whose tests often need both."""
    if file.startswith("tests/integration/explorer/"):
        return BROWSER
    if not file.startswith("tests/integration/"):
        return NONE
    return NEO4J if "mark.neo4j" in (ROOT / file).read_text("utf-8") else SPARK


def turn_of(file: str, place: int) -> int:
    """When a process takes a file, by its place among them: 0 is first.

    Each has a need of its own, and takes what has none before another's.
    """
    need = need_of(file)
    return 0 if need == place % 3 else 1 if need == NONE else 2


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Keeps a file in one process, and files of one need in one process as far as they go."""

    def _assign_work_unit(self, node: Any) -> None:
        place = self.nodes.index(node)
        first = min(self.workqueue, key=lambda file: turn_of(file, place))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
