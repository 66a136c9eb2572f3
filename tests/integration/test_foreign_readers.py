"""Other programs read the folders of a run's tables while it grows, is settled and made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingest.pipeline import IngestRequest, settling
from runstore.run import Run
from runstore.store import StoredRun
from runstore.views import files
from tests.integration.test_growth import interval
from tests.support.foreign import NOTHING, PROGRAMS, digest, reading
from tests.support.ingested import ingest, ingested

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("small_inputs"),
    pytest.mark.timeout(7200),
]

RUN = "fed"


@pytest.mark.parametrize("appends", [3, pytest.param(100, marks=pytest.mark.long)])
def test_other_programs_see_one_state_of_a_run_or_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appends: int
) -> None:
    """In the middle the run is settled, then it is replaced, and grows on."""
    monkeypatch.setattr("runstore.writer.KEPT_SECONDS", 600)
    inputs = [tmp_path / f"{number}.ndjson" for number in range(appends + 1)]
    for number, path in enumerate(inputs):
        path.write_text("".join(f"{json.dumps(record)}\n" for record in interval(number)))
    known, middle = set(), appends // 2

    def made() -> StoredRun:
        run = Run.open(tmp_path, RUN).stored
        known.add(digest(run.read("links")))
        return run

    ingest(spark, tmp_path, RUN, inputs[0])
    folder = made().directory / "links"
    with reading(folder, tmp_path, [*PROGRAMS, "spark"]) as found:
        for number, path in enumerate(inputs[1:], start=1):
            ingest(spark, tmp_path, RUN, path, append=True)
            run = made()
            if number == middle:
                ingested(spark, settling(run))
                made()
                paths = tuple(map(str, inputs[: number + 1]))
                ingested(spark, IngestRequest(paths, RUN, tmp_path, replace=True))
                run = made()
        check_whole(run)
    for program, told in found.items():
        print(program, sum(told.values()), "readings,", told[NOTHING], "found nothing")
        assert told.keys() - {NOTHING} <= known, program
        assert told.total() > told[NOTHING], program


def check_whole(run: StoredRun) -> None:
    """That the folder of each table has its rows, in files of one schema."""
    for name in files(run.directory, run.manifest):
        paths = [*(run.directory / name).iterdir()]
        shape = pq.read_schema(paths[0]).remove_metadata()
        assert {pq.read_schema(path).remove_metadata() == shape for path in paths} == {True}, name
        whole = pa.concat_tables(map(pq.read_table, paths)).cast(run.read(name).schema)
        columns = [(column, "ascending") for column in run.definition(name).key]
        order = [
            *columns,
            *((c, "ascending") for c in whole.column_names if c not in dict(columns)),
        ]
        assert whole.sort_by(order) == run.read(name).sort_by(order), name
