"""Exports of runs that do not stay what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.words import naming
from vizpub.cli.commands.everyday.export import GROWN, REMOVED, REPLACED, check_unchanged
from vizpub.model.clock import Clock
from vizpub.model.errors import CheckFailed, UnknownName
from vizpub.model.run import RunFacts

MONDAY = RunFacts("monday", "edges", Clock(), tables="first")


def copy_of(facts: RunFacts) -> SimpleNamespace:
    return SimpleNamespace(facts=facts, state=facts.tables, growing=False)


@dataclass
class Answering:
    """A Neo4j that has these runs."""

    there: Sequence[RunFacts]

    def open_run(self, name: str) -> Any:
        for facts in self.there:
            if facts.name == name:
                return copy_of(facts)
        raise UnknownName("run", name)


def read(there: Sequence[RunFacts], error: Exception | None = None) -> None:
    neo4j: Any = Answering(there)
    run: Any = copy_of(MONDAY)
    with check_unchanged(neo4j, run):
        if error:
            raise error


def test_run_that_is_removed_meanwhile_is_named_as_gone() -> None:
    for error in (None, TypeError("'NoneType' object is not subscriptable")):
        with pytest.raises(CheckFailed, match=naming("'monday'", REMOVED)):
            read([], error)


def test_run_that_is_replaced_meanwhile_is_refused() -> None:
    with pytest.raises(CheckFailed, match=naming("'monday'", REPLACED)):
        read([replace(MONDAY, tables="second")])
    with pytest.raises(CheckFailed, match=naming("'monday'", GROWN)):
        read([replace(MONDAY, tables="second", generation=1)])


def test_run_that_stays_is_read_and_faults_stay_what_they_are() -> None:
    read([MONDAY])
    with pytest.raises(TypeError, match="a fault"):
        read([MONDAY], TypeError("a fault"))
