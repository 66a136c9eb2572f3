"""Attributes from side files and reports → the table of the run, over appends and rebuilds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.ingested import ingested
from tests.support.words import naming
from vizpub.ingest.pipeline import rebuild_request
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.stages import ONLY_IN_ATTRIBUTES
from vizpub.model.clock import OPEN
from vizpub.model.errors import InputError, InputsDiffer
from vizpub.questions.run import Run
from vizpub.runstore.store import open_run

pytestmark = pytest.mark.spark


def written(folder: Path, interval: int, **attributes: Any) -> Path:
    """Reports of an interval; peer p<interval> is there from it on."""
    path = folder / f"{interval}.ndjson"
    reports = [
        {"format": "vizpub.report/1", "peer": f"p{n}", "interval": interval, "neighbors": ["p0"]}
        for n in range(interval + 1)
    ]
    path.write_text("".join(json.dumps(report | attributes) + "\n" for report in reports))
    return path


def made(spark: SparkSession, folder: Path, *paths: Path, **options: Any) -> set[tuple[Any, ...]]:
    """peer, key, value, valid_from, valid_to, after an ingest."""
    files = tuple(map(str, options.pop("attributes", ())))
    request = IngestRequest(tuple(map(str, paths)), "a", folder, attributes=files, **options)
    ingested(spark, request)
    return rows(folder)


def rows(folder: Path) -> set[tuple[Any, ...]]:
    table = Run.open(folder, "a").sql("FROM attributes").to_pylist()
    columns = ("peer_name", "key", "value", "valid_from", "valid_to")
    return {tuple(row[name] for name in columns) for row in table}


def test_side_files_of_a_run_go_on_over_appends_and_a_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = [written(tmp_path, number) for number in range(3)]
    side = tmp_path / "peers.csv"
    side.write_text("peer,key,value,from,to\np0,c,x,,2\np0,c,y,2,\np1,c,z,,\nq,c,z,,\n")
    of_p0 = {("p0", "c", "x", 0, 2), ("p0", "c", "y", 2, OPEN)}
    assert made(spark, tmp_path, files[0], attributes=[side]) == of_p0
    assert open_run(tmp_path, "a").manifest.notes[ONLY_IN_ATTRIBUTES] == 2
    with pytest.raises(InputsDiffer, match=naming("--attributes")):
        made(spark, tmp_path, files[0])
    # An append reads them again, for new peers.
    of_both = of_p0 | {("p1", "c", "z", 0, OPEN)}
    assert made(spark, tmp_path, files[1], append=True) == of_both
    # A further file adds, and replaces what an earlier one says of a peer's key.
    more = tmp_path / "more.csv"
    more.write_text("peer,c,mbps\np1,w,25\n")
    every = of_p0 | {("p1", "c", "w", 0, OPEN), ("p1", "mbps", "25", 0, OPEN)}
    assert made(spark, tmp_path, files[2], append=True, attributes=[more]) == every
    run = open_run(tmp_path, "a")
    assert [file["path"] for file in run.manifest.attribute_files] == [str(side), str(more)]
    ingested(spark, rebuild_request(IngestRequest((), "a", tmp_path)))
    assert rows(tmp_path) == every
    side.write_text("peer,c\np0,changed\n")
    with pytest.raises(InputError, match=naming("peers.csv")):
        made(spark, tmp_path, written(tmp_path, 3), append=True)
