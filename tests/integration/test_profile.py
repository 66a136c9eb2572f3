"""What `vizpub ingest --profile` says of the steps, against the files that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.faults import LARGE
from tests.support.ingested import ingested
from vizpub.analytics.step_profile import OTHER, StepUse
from vizpub.cli.commands.everyday.ingest import profile_lines
from vizpub.cli.main import app
from vizpub.ingest import stages
from vizpub.ingest.account import Account
from vizpub.ingest.job import Job
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.spark import scale

pytestmark = pytest.mark.spark

PEERS, INTERVALS = 12, 10
READER, FOLD, SORT, SINK = (
    f"ingest/{module}"
    for module in (
        *("inputs/reader.py", "tasks/fold.py", "tasks/packs.py:OrderedFold", "tasks/sink.py"),
    )
)


def reports(folder: Path, intervals: range) -> Path:
    """A report of each peer of a ring in each interval, and a line that is none."""
    path = folder / f"{intervals.start}.ndjson"
    lines = []
    for i in intervals:
        for n in range(PEERS):
            after, before = f"p{(n + 1) % PEERS}", f"p{(n - 1) % PEERS}"
            sent = [{"message": f"m{i}", "topic": "news", "to": [after]}] if n == i else []
            received = [{"message": f"m{i}", "from": before, "time_us": i}] if n == i + 1 else []
            lists = {"neighbors": [after] if (i + n) % 5 else [], "topics": ["news"]}
            report = {"peer": f"p{n}", "interval": i, **lists, "sent": sent, "received": received}
            lines.append(json.dumps({"format": "vizpub.report/1", **report}))
    path.write_text("\n".join([*lines, "no report"]))
    return path


@dataclass(frozen=True)
class Profiled:
    """The account of an ingest, and the rows of the files that it wrote, by table."""

    account: Account
    written: Mapping[str, int]

    @property
    def steps(self) -> Mapping[str, StepUse]:
        return self.account.steps

    def rows(self, *tables: str) -> int:
        return sum(self.written.get(name, 0) for name in tables)


@pytest.fixture(
    scope="module",
    params=[
        "small",
        pytest.param("large", marks=pytest.mark.long),
        pytest.param("small append", marks=pytest.mark.long),
        "large append",
    ],
)
def profiled(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Profiled:
    folder, written = tmp_path_factory.mktemp("profile"), dict[str, int]()
    append = "append" in request.param
    files = [reports(folder, range(INTERVALS // 2)), reports(folder, range(INTERVALS // 2, 10))]
    finish = stages.finish_run

    def count_and_finish(job: Job) -> None:
        earlier = job.base.directories if job.base else set()
        written.update({
            name: sum(
                pq.read_metadata(path).num_rows
                for path in (job.writer.directory / entry.newest.directory).glob("*.parquet")
            )
            for name, entry in job.manifest.tables.items()
            if entry.newest.directory not in earlier
        })  # fmt: skip
        finish(job)

    with pytest.MonkeyPatch.context() as patch:
        if "large" in request.param:
            patch.setattr(scale, "SMALL_INPUT", LARGE)
        asked = IngestRequest((str(files[0]),), "run", folder / "work", profile=True)
        if append:
            ingested(spark, asked)
        patch.setattr(stages, "finish_run", count_and_finish)
        paths = tuple(map(str, files)) if append else asked.paths
        asked = IngestRequest(paths, "run", folder / "work", append=append, profile=True)
        return Profiled(ingested(spark, asked).account, written)


def makers() -> dict[str, list[str]]:
    """The tables that each step makes, as `vizpub runs tables` says."""
    shown = CliRunner().invoke(app, ["runs", "tables", "--format", "json"])
    made: dict[str, list[str]] = {}
    for row in json.loads(shown.stdout):
        made.setdefault(row["made by"], []).append(row["table"])
    return made


def test_step_makes_the_rows_of_its_stored_tables(profiled: Profiled) -> None:
    made_by = makers()
    assert profiled.rows("links", "receptions", "metrics/peers", "quarantine") > 0
    shown = {
        step: profiled.steps[step].rows_out
        for step, tables in made_by.items()
        if profiled.written.keys() & {*tables}
    }
    folded = [name for name in profiled.written if name.startswith("staged/folded.")]
    made_by[FOLD] += folded
    assert shown == {step: profiled.rows(*made_by[step]) for step in shown}
    assert {*shown} >= {FOLD, "ingest/sql/clipped_links.sql", "analytics/sql/overlay.sql"}
    assert profiled.steps[SINK].rows_in == profiled.steps[SINK].rows_out


def test_step_takes_the_rows_of_its_tables(profiled: Profiled) -> None:
    steps, rows = profiled.steps, profiled.rows
    assert steps[FOLD].rows_in == steps[SORT].rows_in == steps[SORT].rows_out
    records = PEERS * INTERVALS // 2 + 1
    assert records <= steps[READER].rows_out <= records + 4 * steps[READER].tasks  # and tallies
    assert steps["ingest/sql/topics.sql"].rows_in >= rows("staged/folded.names")
    traffic = steps["ingest/sql/traffic.sql"]
    assert traffic.rows_in == rows("staged/folded.traffic") + traffic.tasks * PEERS
    versions = steps["analytics/sql/versions.sql"]
    assert versions.rows_in >= versions.tasks * rows("presence", "links", "subscriptions")
    assert steps["analytics/snapshots.py"].rows_in == versions.rows_out
    rows_of_messages = steps["ingest/sql/message_rows.sql"]
    assert rows_of_messages.rows_out == steps["analytics/messages/message_fold.py"].rows_in
    assert rows_of_messages.rows_in == rows("publications", "receptions", "rejections") + (
        rows_of_messages.tasks * rows("subscriptions")
    )


def test_steps_take_no_more_time_than_their_tasks(profiled: Profiled) -> None:
    steps = profiled.steps.values()
    assert all(use.tasks > 0 and use.seconds >= 0 and use.processor_seconds >= 0 for use in steps)
    longest = max(job.end - job.begin for job in profiled.account.jobs)
    assert 0 < sum(use.seconds for use in steps) <= profiled.steps[OTHER].tasks * longest


def test_profile_has_a_line_for_every_step(profiled: Profiled) -> None:
    lines = [line.split() for line in profile_lines(profiled.account)]
    shown = {line[0]: line[1:] for line in lines if line}
    for name, use in profiled.steps.items():
        assert shown[name][2:5] == [str(use.tasks), f"{use.rows_in:,}", f"{use.rows_out:,}"]
