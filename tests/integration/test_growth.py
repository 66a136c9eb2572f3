"""What an append reads does not grow with the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.counted import Read, counted
from tests.support.ingested import ingest
from vizpub.runstore import rewriting
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import open_run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(3600),
]
PEERS = 8


def interval(number: int) -> Iterator[dict[str, Any]]:
    """A peer moves its link, one publishes, another receives what was published before."""
    for peer in range(PEERS):
        shift = number // 3 if peer == 0 else 0
        sent = [{"message": f"m{number}", "topic": "news", "hops": 0, "to": ["p1"]}]
        before = [{"message": f"m{number - 1}", "topic": "news", "from": "p1", "hops": 1}]
        yield {
            "format": "vizpub.report/1",
            "peer": f"p{peer}",
            "interval": number,
            "neighbors": [f"p{(peer + 1 + shift) % PEERS}"],
            "topics": ["news"],
            "control": {"sent": {"messages": 1, "bytes": 9}},
            "sent": sent if peer == number % PEERS else [],
            "received": before if number and peer == (number + 3) % PEERS else [],
        }


def fed(spark: SparkSession, folder: Path, looks: range) -> tuple[Read, int]:
    """Feed a run interval by interval. Returns the median of what the appends of `looks` read, and
    the size of run.json after the last of them.
    """
    found = []
    for number in range(looks.stop):
        if (file := folder / f"{number}.ndjson").exists():
            continue
        file.write_text("".join(json.dumps(record) + "\n" for record in interval(number)))

        def append(file: Path = file) -> None:
            ingest(spark, folder, "fed", file, append=True, message_window=8)

        if number in looks:
            read = counted(spark, append)
            names = open_run(folder, "fed").rows("publications")  # the names of all messages
            found.append(Read(read.files, read.rows - names, read.jobs))
        else:
            append()
    size = (folder / "runs/fed" / FILE).stat().st_size
    typical = (median(of) for of in zip(*((r.files, r.rows, r.jobs) for r in found), strict=True))
    return Read(*map(round, typical)), size


def test_append_reads_no_more_after_many_appends_than_after_few(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median of sixteen appends. Some join the parts of as many appends before, so that a row
    is joined at most log2(appends) times. `python -m benchmarks.fed` has hundreds of appends.
    """
    monkeypatch.setattr(rewriting, "_LEAST_PART", 1)  # smaller parts are joined as they come
    early, small = fed(spark, tmp_path, range(16, 32))
    late, large = fed(spark, tmp_path, range(64, 80))
    print(early, late, small, large)
    assert late.files == pytest.approx(early.files, rel=0.2)
    assert late.rows <= 1.2 * early.rows
    assert late.jobs == early.jobs
    assert large < 1.5 * small
