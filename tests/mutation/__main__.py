"""Do the tests of a checker find small wrong changes in it? `python -m tests.mutation [MODULE]`.

The tests are collected once and run for each change in one process, whose Spark and Neo4j stay;
fixtures of a module of tests, or smaller, are made again.
"""

from __future__ import annotations

import importlib
import random
import signal
import sys
import time
from contextlib import suppress
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import living, mutants
from tests.mutation.targets import TARGETS, Target

SEED = 13
PATIENCE_S = 30.0
"""Added to ten times the duration without a change: a test that takes longer never ends."""


class Mutating:
    """Runs the collected tests without a change, and then with each change."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._module = importlib.import_module(target.module)
        self.tried: set[str] = set()
        self.survivors: set[str] = set()
        self._limits: dict[pytest.Item, float] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        say = session.config.pluginmanager.get_plugin("terminalreporter").write_line
        _send_by_value(self._module)
        order = sorted(session.items, key=_cost)
        if failed := self._first_failure(session, order):
            raise pytest.UsageError(f"{failed.nodeid} fails without any change")
        every = list(mutants(self._module))
        count = min(len(every), self._target.most)
        chosen = set(random.Random(SEED).sample(range(len(every)), count))
        say(f"{self._module.__name__}: {len(chosen)} of {len(every)} changes, seed {SEED}")
        for mutant in (mutant for i, mutant in enumerate(every) if i in chosen):
            with living(mutant, self._module):
                killer = self._first_failure(session, order)
            self.tried.add(str(mutant))
            if killer is None:
                self.survivors.add(str(mutant))
            else:  # who finds one may well find the next
                order.sort(key=lambda item: (_cost(item), item is not killer))
            say(f"{'found   ' if killer else 'SURVIVES'} {mutant}")
        return True

    def _first_failure(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> pytest.Item | None:
        nobody: Any = _Nobody(session)
        signal.signal(signal.SIGALRM, _stop)
        try:
            for item, following in pairwise([*items, nobody]):
                begun = time.monotonic()
                signal.setitimer(signal.ITIMER_REAL, self._limits.get(item, 0))
                reports = runtestprotocol(item, log=False, nextitem=following)
                signal.setitimer(signal.ITIMER_REAL, 0)
                self._limits.setdefault(item, PATIENCE_S + 10 * (time.monotonic() - begun))
                if any(report.failed for report in reports):
                    return item
            return None
        finally:
            with suppress(Exception):
                session._setupstate.teardown_exact(nobody)


def _cost(item: pytest.Item) -> int:
    """First tests that need neither Spark nor Neo4j."""
    return int(any(item.get_closest_marker(service) for service in ("spark", "neo4j")))


class _Nobody:
    """Stands for a test of another file, so that the session's fixtures stay."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[pytest.Session]:
        return [self._session]


def _stop(*_: object) -> None:
    """A change that never ends counts as found."""
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.cancelAllJobs()
    pytest.fail("it does not end")


def _send_by_value(module: ModuleType) -> None:
    """Spark's workers import no module again, and would not see a change."""
    if "pyspark" in sys.modules:
        from pyspark.cloudpickle import register_pickle_by_value

        register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def main() -> None:
    """Exit code 1 if an unlisted change survives, or a listed one is found."""
    target = TARGETS[sys.argv[1]]
    mutating = Mutating(target)
    failed = pytest.main(["-q", "-p", "no:cacheprovider", *target.tests], plugins=[mutating])
    listed = set(target.equivalent)
    unlisted = sorted(mutating.survivors - listed)
    gone = sorted(listed & mutating.tried - mutating.survivors)
    print(*(f"survives: {name}" for name in unlisted), sep="\n")
    print(*(f"listed as equivalent, and is none: {name}" for name in gone), sep="\n")
    sys.exit(int(failed) or (1 if unlisted or gone else 0))


if __name__ == "__main__":
    main()
