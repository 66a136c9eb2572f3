"""A run that is collected into a store equals one ingest of its reports, while the store fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.collector.test_batches import START, Live, reports_of
from tests.integration.test_append import same_tables
from tests.support.object_store import Fault, Machine, Server
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import ServiceError, UnknownName
from vizpub.runstore.store import open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
FAULTS: tuple[Fault, ...] = ("503", "cut", "lost", "half", "expired")


@pytest.fixture
def live(spark: SparkSession, machine: Machine, tmp_path: Path) -> Callable[[int], Live]:
    def begin(seed: int) -> Live:
        CollectionPlace(machine("here"), "lab").place_log(tmp_path / "logs")
        return Live(spark, machine("here"), random.Random(seed), [])

    return begin


def rows_elsewhere(case: Live, machine: Machine) -> int | None:
    """What another machine sees: the links of the run; null = it has no interval."""
    try:
        return open_run(machine("elsewhere"), "lab", complete=False).rows("links")
    except UnknownName:
        return None
    finally:
        machine("here")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_run_in_a_store_equals_one_ingest_of_its_reports(
    live: Callable[[int], Live], machine: Machine, server: Server, seed: int
) -> None:
    """The store is away for the second interval, in the middle of an append, and the process that
    appends begins anew: its batch is appended when the store is back.
    """
    case = live(seed)
    works = iter([None] * random.Random(seed).randrange(8))

    async def collect() -> None:
        intake = case.intake()
        for number, records in enumerate(reports_of(seed, 2)):
            await case.post(intake, records)
            await intake._close(START + number)
            case.until = intake.closed_at
            if number == 0:
                case.append()
                continue
            before = rows_elsewhere(case, machine)
            with server.failing(lambda _: next(works, "expired")), pytest.raises(ServiceError):
                case.append()
            assert rows_elsewhere(case, machine) == before
            with server.failing(lambda _: "expired"), pytest.raises(ServiceError):
                case.append(afresh=True)
        case.append(afresh=True)
        await case.end(intake)

    asyncio.run(collect())
    assert case.run.manifest.ended
    whole = case.whole(case.sent, end=START + 1)
    same_tables(open_run(machine("elsewhere"), "lab"), whole)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_random_faults_of_the_store_change_nothing(
    live: Callable[[int], Live], server: Server, seed: int
) -> None:
    case, dice, left = live(seed), random.Random(seed), [8]

    def sometimes(_: str) -> Fault | None:
        if left[0] and dice.random() < 0.1:
            left[0] -= 1
            return dice.choice(FAULTS)
        return None

    async def collect() -> None:
        intake = case.intake()
        for number, records in enumerate(reports_of(seed, 4)):
            await case.post(intake, records)
            await intake._close(START + number)
            case.until = intake.closed_at
            try:
                with server.failing(sometimes):
                    case.append(afresh=dice.random() < 0.5)
            except ServiceError:
                case.appending = None
        await case.end(intake)

    asyncio.run(collect())
    same_tables(case.run, case.whole(case.sent, end=START + 3))
