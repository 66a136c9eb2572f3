"""Simulations and traces that report while they run: the run that a collector makes of it equals
one ingest of the same reports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.test_append import same_tables
from tests.support.collecting import Served, collector_in, serving
from tests.support.ingested import Store, ingest
from vizpub.collector.http.client import CollectorClient
from vizpub.collector.inputs.trace_reporter import FollowOptions, TraceReporter
from vizpub.collector.making.batches import BatchAppender, BatchJob
from vizpub.collector.reservation import reserve
from vizpub.ingest.pipeline import ingest_in
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun, open_run
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.live import Live
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1200),
]
ROOT = Path(__file__).parents[3]


def collected(spark: SparkSession, folder: Path, report: Callable[[str], None]) -> StoredRun:
    """The run of what is reported, appended in two steps: half of it is closed first."""
    with serving(collector_in(folder)) as served:
        intake = served.web.intake
        reserve(intake.place)
        report(f"http://127.0.0.1:{served.port}/v1/runs/lab")
        last = intake.ending.last
        assert last is not None, "the end was marked"
        appending = BatchAppender(partial(ingest_in, spark), BatchJob(str(folder), "lab"))
        _wait(served, intake._close(last // 2))
        list(appending.append_until(intake.closed_at))
        _wait(served, intake.end())
        list(appending.append_until(intake.closed_at))
        appending.settle()
    return open_run(folder, "lab")


def _wait(served: Served, work: object) -> None:
    import asyncio

    asyncio.run_coroutine_threadsafe(work, served.loop).result(60)  # type: ignore[arg-type]


@pytest.mark.long
def test_simulation_that_reports_equals_its_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "simulated")
    chosen = {
        "peers": 20,
        "intervals": 12,
        "publications": "every:2",
        "churn": "exponential:6s,down=3s",
    }
    plan = make_plan("poldercast", chosen, 3)
    run = collected(
        spark, tmp_path, lambda url: simulate(plan, folder, live=Live(url, speed=1000)) and None
    )
    whole = ingest(spark, tmp_path, "whole", folder.reports).run
    same_tables(run, whole)
    assert run.manifest.protocol == whole.manifest.protocol == "poldercast"
    assert run.manifest.clock == whole.manifest.clock


@pytest.mark.long
def test_trace_that_is_replayed_equals_an_ingest_of_its_reports(
    spark: SparkSession, stored: Store, tmp_path: Path
) -> None:
    how = FollowOptions(replay=True, speed=100_000, end=True)

    def report(url: str) -> None:
        told = TraceReporter(
            [ROOT / "examples/gossipsub"], [CollectorClient(url)], how, print
        ).run()
        assert (told.refused, told.dropped, told.late) == (0, 0, 0)

    run = collected(spark, tmp_path, report)
    batches = sorted((tmp_path / "collected/lab/batches").iterdir())
    whole = ingest(spark, tmp_path, "whole", *batches).run
    same_tables(run, whole)
    assert run.manifest.clock == whole.manifest.clock
    traced = stored("gossipsub")
    same_samples(run, traced)
    names = [f"{unit}_{way}" for unit in ("messages", "ids") for way in ("sent", "received")]
    assert Run(run).control(names).to_pylist() == Run(traced).control(names).to_pylist()
    # Reports do not tell what a peer asked for or refused.
    (found,), (wanted,) = (Run(of).duplicates().to_pylist() for of in (run, traced))
    for name in ("after_idontwant", "before_idontwant", "by_iwant"):
        assert found[f"duplicates_{name}"] is None
        assert wanted[f"duplicates_{name}"] is not None


def same_samples(run: StoredRun, traced: StoredRun) -> None:
    """At the end of every interval, peers and links are those of an ingest of the trace, but for
    peers that were offline: nothing shows then that they will come back.
    """
    names = ("network_size", "links")
    found, wanted = (
        {
            row["interval"]: [row[name] for name in names]
            for row in of.read("metrics/overlay").to_pylist()
        }
        for of in (run, traced)
    )
    assert found.keys() == wanted.keys()
    offline = {*range(28, 38), *range(87, 109)}
    differing = {i for i in found if found[i] != wanted[i]}
    assert differing <= offline, {i: (found[i], wanted[i]) for i in differing - offline}
