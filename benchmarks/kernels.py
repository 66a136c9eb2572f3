"""The kernels with nothing around them: the limit of what an engine can reach.

python -m benchmarks.kernels TOLD.json VERSIONS INTERVALS
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.reference import Versions, read_versions
from benchmarks.steps import Steps
from benchmarks.variants import TIMES, VARIANTS
from vizpub.analytics.blocks import LinkPeriods, measure_block
from vizpub.analytics.options import Measures

_LARGEST_BLOCK = 50

_held: list[Versions] = []
"""What a worker process has read, once."""


def _read_versions(folder: Path, intervals: int) -> None:
    _held.append(read_versions(folder, intervals))
    _measure(0, 0, Measures())  # whatever is compiled late


def _measure(first: int, last: int, measures: Measures) -> int:
    """Measure a block. The number of rows; the rows stay in the process."""
    links, presence, subscriptions = _held[0]
    inside = (links.start <= last) & (links.stop > first)
    block = LinkPeriods(*(column[inside] for column in links))
    measured = measure_block(block, presence, subscriptions, first, last, measures)
    return int(measured.peers["peer"].size)


def main() -> None:
    """Measure every variant, in one process per processor."""
    record, versions, intervals = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    workers = os.cpu_count() or 1
    size = max(1, min(_LARGEST_BLOCK, intervals // (4 * workers)))
    firsts = np.arange(0, intervals, size)
    lasts = np.minimum(firsts + size, intervals) - 1
    steps = Steps()
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _read_versions, (versions, intervals)) as pool:
        list(pool.map(_measure, *np.zeros((2, 4 * workers), int), [Measures()] * 4 * workers))
        for name, measures in VARIANTS.items():
            for _ in range(TIMES[name]):
                with steps.step(name):
                    list(pool.map(_measure, firsts, lasts, [measures] * firsts.size))
    steps.write(record, "numba", "numpy", processes=workers)


if __name__ == "__main__":
    main()
