"""The checksums that a copy keeps, through real appends, skipped generations and a settled run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from neo4j import Driver
from pyspark.sql import SparkSession

from tests.integration.test_growth import interval
from tests.support.ingested import ingest, ingested
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import Difference, verify_kept, verify_run
from vizpub.ingest.pipeline import settling_request
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

RUN = "summed"


@pytest.fixture
def driver(neo4j_server: Connection) -> Iterator[Driver]:
    with connect(neo4j_server) as driver:
        yield driver
        remove_run(driver, "neo4j", RUN)


def differences(driver: Driver, run: StoredRun) -> list[Difference]:
    found = verify_kept(driver, "neo4j", run.facts, run)
    assert found is not None
    return found.differences


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "appends"),
    [(20, 2), (18, 10), (19, 10), (20, 10)],
)
def test_kept_checksums_stay_those_of_the_tables(
    spark: SparkSession, tmp_path: Path, driver: Driver, seed: int, appends: int
) -> None:
    """A full verification compares the kept checksums with those of the whole tables. With a gap
    tolerance periods that ended are joined again; some reports come late.
    """
    print("seed", seed)
    rng, held, late = random.Random(seed), "", list[str]()
    for number in range(appends):
        lines = [json.dumps(record) for record in interval(number) if rng.random() < 0.8]
        if number > 2 and late:
            lines.append(late.pop())
        late += [json.dumps(record) for record in interval(number) if rng.random() < 0.1]
        (file := tmp_path / f"{number}.ndjson").write_text("".join(f"{x}\n" for x in lines))
        options = {"message_window": 2, "gap_tolerance": 1}
        run = ingest(spark, tmp_path, RUN, file, append=True, **options).run
        if number and rng.random() < 0.4:
            assert differences(driver, run) == [], number  # of the generation that is held
            continue
        loaded = load_run(driver, "neo4j", run.facts, run)
        assert loaded.grown == bool(held)
        held = run.facts.tables
        assert differences(driver, run) == [], number
        assert verify_run(driver, "neo4j", run.facts, run) == [], number
    settled = ingested(spark, settling_request(run)).run
    load_run(driver, "neo4j", settled.facts, settled)
    assert differences(driver, settled) == []
    assert verify_run(driver, "neo4j", settled.facts, settled) == []


@pytest.mark.long
def test_damage_is_found_before_and_after_a_growth(
    spark: SparkSession, tmp_path: Path, driver: Driver
) -> None:
    """A growth mends what is damaged from its boundary on, and no alarm stays; what is damaged
    before is found as long as it is.
    """
    run = None
    for number in range(3):
        (file := tmp_path / f"{number}.ndjson").write_text(
            "".join(json.dumps(record) + "\n" for record in interval(number))
        )
        run = ingest(spark, tmp_path, RUN, file, append=True, message_window=2).run
        if number == 1:
            load_run(driver, "neo4j", run.facts, run)
    assert run is not None
    open_gone = "MATCH ()-[r:LINK {run: $run, length_class: 63}]->() WITH r LIMIT 1 DELETE r"
    driver.execute_query(open_gone, run=RUN)
    (found,) = differences(driver, run)
    assert (found.table, found.what) == ("links", "relationships links")
    assert load_run(driver, "neo4j", run.facts, run).grown
    assert differences(driver, run) == []
    assert verify_run(driver, "neo4j", run.facts, run) == []
    past = "MATCH (n:Interval {run: $run, i: 0}) SET n.density = n.density + 1e-9"
    driver.execute_query(past, run=RUN)
    assert [d.table for d in differences(driver, run)] == ["metrics/overlay"]
