"""A collected run that keeps its last intervals equals, in these, the run that keeps all.

DuckDB takes from the whole run what should be left. The process is stopped at commits.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise, product
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.integration.collector.test_batches import START, Live, Record, reports_of
from tests.integration.test_append import contents, difference
from tests.support.faults import stopping
from tests.support.few import few
from vizpub.collector.making.batch import batches_in
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import verify_run
from vizpub.ingest.retention import INTERVALS, LEFT, ROWS
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
KEEP, WINDOW = 3, 2
_MESSAGES = """(
    SELECT message, row_number() OVER (ORDER BY message) - 1 AS number
    FROM read_parquet({files}) WHERE interval >= {first}
)"""


def expected(whole: StoredRun, name: str, first: int) -> list[str]:
    """The rows of a table of the whole run that should be left from an interval on."""
    files = [str(path) for path in whole.files(name)]
    columns, rows = whole.definition(name).names, f"read_parquet({files})"
    if "valid_to" in columns:
        text = f"""
            SELECT * REPLACE (greatest(valid_from, {first}) AS valid_from)
            FROM {rows} WHERE valid_to > {first}
        """
    elif "message" in columns:
        published = [str(path) for path in whole.files("publications")]
        numbers = _MESSAGES.format(files=published, first=first)
        text = f"""
            SELECT r.* REPLACE (m.number AS message) FROM {rows} r JOIN {numbers} m USING (message)
        """
    else:
        text = f"FROM {rows}" + (f" WHERE interval >= {first}" if "interval" in columns else "")
    with duckdb.connect() as database:
        left = database.sql(text).to_arrow_table().cast(whole.definition(name).arrow)
    shown = [{**row, "file": ""} if "file" in row else row for row in left.to_pylist()]
    return sorted(map(repr, shown))


def same_from(run: StoredRun, whole: StoredRun) -> None:
    first = run.facts.clock.first
    assert run.facts.clock == replace(whole.facts.clock, first=first)
    assert set(run.manifest.tables) == set(whole.manifest.tables)
    for name in sorted(run.manifest.tables):
        found, wanted = contents(run, name), expected(whole, name, first)
        assert found == wanted, f"{name}\n{difference(found, wanted)}"


def in_time(records: list[Record]) -> list[Record]:
    """Without arrivals of messages that may have left already."""
    for record, name in product(records, ("sent", "received")):
        if name in record:
            record[name] = [
                copy
                for copy in record[name]
                if record["interval"] - int(copy["message"].partition("-")[2]) <= KEEP
            ]
    return records


class Pair:
    """Collections of the same reports: one keeps its last intervals, the other keeps all."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        print("seed", seed)
        self.seed, rng = seed, random.Random(seed)
        self.case, self.whole = (Live(spark, folder / name, rng, []) for name in ("case", "whole"))
        self.case.job = replace(self.case.job, keep=KEEP, message_window=WINDOW)
        self.whole.job = replace(self.whole.job, message_window=WINDOW)

    async def collect(
        self,
        appends: Sequence[int],
        stops: Mapping[int, bool],
        look: Callable[[StoredRun], object] = lambda run: None,
    ) -> None:
        """Append so many intervals at a time. At some appends, the process of one is stopped at the
        commit, before or after it; `look` gets its run after each.
        """
        told = iter(enumerate(map(in_time, reports_of(self.seed, sum(appends)))))
        intakes = [(of, of.intake()) for of in (self.case, self.whole)]
        for place, count in enumerate(appends):
            for number, records in islice(told, count):
                for of, intake in intakes:
                    await of.post(intake, [*records])
                    await intake._close(START + number)
                    of.until = intake.closed_at
            if place in stops:
                with stopping("finish", committed=stops[place]):
                    self.case.append()
            self.case.append(afresh=place in stops)
            self.whole.append()
            same_from(self.case.run, self.whole.run)
            look(self.case.run)
        for _, intake in intakes:
            await intake.log.aclose()


@pytest.mark.parametrize("stops", few([{}, {1: False}], [{}]))
def test_run_that_keeps_its_last_intervals_equals_the_whole_run_in_them(
    spark: SparkSession, tmp_path: Path, stops: Mapping[int, bool]
) -> None:
    pair = Pair(spark, tmp_path, seed=21)
    asyncio.run(pair.collect((6, 1), stops))
    run, folder = pair.case.run, pair.case.place.batches
    notes = run.manifest.notes
    assert notes[INTERVALS] == run.facts.clock.first - START > 1
    assert notes[ROWS] > 0
    assert notes.keys() - pair.whole.run.manifest.notes.keys() == {*LEFT}
    assert len(batches_in(folder)) == 2


@pytest.mark.long
@pytest.mark.parametrize("seed", [22, 23])
def test_rebuilt_run_begins_where_it_began_before(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Of the batches that are left; the run goes on from there."""
    pair = Pair(spark, tmp_path, seed)
    asyncio.run(pair.collect((2, 2, 2, 1, 1, 1, 1, 1, 1), {5: False, 7: True}))
    run, folder = pair.case.run, pair.case.place.batches
    needed = [Path(file["path"]).name for file in all_inputs(run.directory, run.manifest)]
    assert [batch.name for batch in batches_in(folder)] == needed
    assert 1 < len(needed) < 9
    shape = ["interval", "network_size", "links", "dangling_links", "diameter", "weak_components"]
    before = run.read("metrics/overlay", shape)
    pair.case.settle()
    rebuilt = pair.case.run
    assert rebuilt.facts.clock == run.facts.clock
    assert rebuilt.manifest.notes[INTERVALS] == run.manifest.notes[INTERVALS]
    assert rebuilt.read("metrics/overlay", shape) == before


@pytest.mark.long
@pytest.mark.neo4j
def test_copy_in_neo4j_follows_what_leaves_and_what_comes(
    spark: SparkSession, tmp_path: Path, neo4j_server: Connection
) -> None:
    pair, seen = Pair(spark, tmp_path, seed=24), list[tuple[int, bool]]()
    with connect(neo4j_server) as driver:
        place = driver, neo4j_server.database

        def load(run: StoredRun) -> None:
            summary = load_run(*place, run.facts, run)
            seen.append((run.facts.clock.first, summary.grown))
            assert verify_run(*place, run.facts, run) == []

        try:
            asyncio.run(pair.collect((2, 1, 3, 1), {}, load))
        finally:
            remove_run(*place, "lab")
    # Where nothing has left, the copy grows by what is new.
    assert [grown for _, grown in seen[1:]] == [b == a for (b, _), (a, _) in pairwise(seen)]
    assert {grown for _, grown in seen[1:]} == {False, True}
