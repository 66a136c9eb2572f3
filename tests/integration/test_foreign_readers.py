"""Other programs that read a run's folder while it is appended to, made anew and settled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.test_growth import interval
from tests.support.foreign import NOTHING, PROGRAMS, SPARK, digest, reading
from tests.support.ingested import ingest, ingested
from vizpub.ingest.pipeline import settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.runstore.store import open_run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(3600),
]

CHANGES = 40


def test_programs_read_one_state_of_a_run_that_is_ingested_or_no_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of ten changes, eight are appends, one makes the run anew and one settles it."""
    parts, known = list[Path](), set[str]()

    def change(number: int) -> None:
        parts.append(tmp_path / f"{number}.ndjson")
        parts[-1].write_text("".join(f"{json.dumps(record)}\n" for record in interval(number)))
        match number % 10:
            case 4:
                paths = tuple(map(str, parts))
                ingested(spark, IngestRequest(paths, "lab", tmp_path, replace=True))
            case 9:
                ingest(spark, tmp_path, "lab", parts[-1], append=True)
                known.add(digest(open_run(tmp_path, "lab").read("links")))
                ingested(spark, settling_request(open_run(tmp_path, "lab")))
            case _:
                ingest(spark, tmp_path, "lab", parts[-1], append=bool(number))
        known.add(digest(open_run(tmp_path, "lab").read("links")))

    change(0)
    with reading(tmp_path / "runs/lab/links", tmp_path, [*PROGRAMS, SPARK]) as found:
        for number in range(1, CHANGES):
            change(number)
    for program, told in found.items():
        print(program, sum(told.values()), "readings,", told[NOTHING], "found nothing")
        assert told.keys() - {NOTHING} <= known, program
        assert len(told.keys() - {NOTHING}) > 1, program
