"""A small input is handed on in memory and its run committed in the end; the run is the same as
one of a large input, which is committed stage by stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingest import scale
from ingest.job import Job
from ingest.manifest import FILE, read_manifest
from ingest.pipeline import IngestOutcome, IngestRequest, ingest_in
from ingest.stages import STAGES
from ingest.store import RunWriter, StoredRun, writing
from tests.support.faults import LARGE, Stopped

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def reports(folder: Path, intervals: range) -> Path:
    """What six peers in a ring say of news that goes round."""
    path = folder / f"reports-{intervals.start}.ndjson"
    with path.open("w") as out:
        for i in intervals:
            for n in range(6):
                before, after = f"p{(n - 1) % 6}", f"p{(n + 1) % 6}"
                told: dict[str, Any] = {
                    "format": "vizpub.report/1",
                    "peer": f"p{n}",
                    "interval": i,
                    "neighbors": [after] if (i + n) % 5 else [],
                    "topics": ["news"] if n % 3 else ["news", f"t{i % 2}"],
                    "sent": [],
                    "received": [],
                }
                if n == i % 6:
                    told["sent"] = [{"message": f"m{i}", "topic": "news", "to": [after]}]
                elif n == (i + 1) % 6:
                    told["received"] = [{"message": f"m{i}", "from": before, "time_us": 1000 * i}]
                out.write(json.dumps(told) + "\n")
        out.write("not a report\n")
    return path


def edges(folder: Path) -> Path:
    path = folder / "edges.csv"
    path.write_text("interval,src,dst\n0,a,b\n0,b,c\n1,a,b\n2,c,a\n2,never mind\n")
    return path


@dataclass(frozen=True)
class Runs:
    """Ingests in one workspace."""

    spark: SparkSession
    folder: Path

    def ingest(self, run: str, *paths: Path, append: bool = False) -> IngestOutcome:
        request = IngestRequest(tuple(map(str, paths)), run, self.folder, append=append)
        with writing(self.folder, run) as writer:
            return ingest_in(self.spark, writer, request)


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> Runs:
    return Runs(spark, tmp_path)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets up to how many bytes an input is small."""
    return lambda size: monkeypatch.setattr(scale, "SMALL_INPUT", size)


def tables(run: StoredRun) -> dict[str, list[str]]:
    return {
        name: sorted(repr(sorted(row.items())) for row in run.read(name).to_pylist())
        for name in run.manifest.tables
    }


def facts(run: StoredRun) -> tuple[object, ...]:
    told = run.manifest
    return told.clock, told.unknown, told.notes, told.engines, told.stages, sorted(told.carry)


def gossipsub(folder: Path) -> Path:
    del folder
    return sorted((ROOT / "examples/gossipsub").glob("*.ndjson.gz"))[0]


@pytest.mark.parametrize(
    "made",
    [
        edges,
        pytest.param(gossipsub, marks=pytest.mark.long),
        pytest.param(lambda folder: reports(folder, range(4)), marks=pytest.mark.long),
    ],
    ids=["edges", "libp2p", "reports"],
)
def test_run_is_the_same_in_memory_and_stage_by_stage(
    runs: Runs, limit: Callable[[int], None], tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    path = made(tmp_path)
    small = runs.ingest("small", path).run
    limit(LARGE)
    large = runs.ingest("large", path).run
    assert facts(small) == facts(large)
    assert tables(small) == tables(large)
    assert sum(small.rows(name) for name in small.manifest.tables) > 0
    assert not small.has("staged/structure")


def test_append_is_the_same_in_memory_and_stage_by_stage(
    runs: Runs, limit: Callable[[int], None], tmp_path: Path
) -> None:
    first, second = reports(tmp_path, range(4)), reports(tmp_path, range(4, 6))
    runs.ingest("small", first)
    small = runs.ingest("small", first, second, append=True).run
    whole = runs.ingest("whole", first, second).run
    limit(LARGE)
    runs.ingest("large", first)
    large = runs.ingest("large", first, second, append=True).run
    assert facts(small) == facts(large)
    assert tables(small) == tables(large) == tables(whole)


def test_small_input_of_a_large_run_is_made_stage_by_stage(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = reports(tmp_path, range(4))
    monkeypatch.setattr("ingest.job.SMALL_RUN", 6 * 4)
    small = runs.ingest("small", path).run
    committed: list[tuple[str, ...]] = []
    commit = RunWriter.commit
    monkeypatch.setattr(
        RunWriter, "commit", lambda w, m: (committed.append(m.stages), commit(w, m))[1]
    )
    monkeypatch.setattr("ingest.job.SMALL_RUN", 6 * 4 - 1)
    large = runs.ingest("large", path).run
    assert [stages[-1] for stages in committed] == list(large.manifest.stages)
    assert tables(small) == tables(large)


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("describe", marks=pytest.mark.long),
        pytest.param("versions", marks=pytest.mark.long),
        "finish",
    ],
)
def test_small_run_that_was_stopped_begins_again(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: str
) -> None:
    path = reports(tmp_path, range(4))
    directory = runs.folder / "runs" / "small"

    def stop(job: Job) -> None:
        raise Stopped

    stopping = tuple(replace(s, run=stop) if s.name == stage else s for s in STAGES)
    with monkeypatch.context() as patch:
        patch.setattr("ingest.pipeline.STAGES", stopping)
        with pytest.raises(Stopped):
            runs.ingest("small", path)
    assert read_manifest(directory).stages == ()
    run = runs.ingest("small", path).run
    assert run.manifest.complete
    named = run.manifest.directories
    files = {str(f.relative_to(directory).parent) for f in directory.rglob("*.parquet")}
    assert files == named
    assert tables(run) == tables(runs.ingest("other", path).run)
    assert (directory / FILE).is_file()


@contextmanager
def counted(spark: SparkSession) -> Iterator[dict[str, int]]:
    """Jobs that Spark runs in the block, and those of them that belong to no query: as when it
    opens files to see what columns they have.
    """
    context = spark.sparkContext._jsc.sc()
    queries = spark._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]
    first, counts = context.dagScheduler().numTotalJobs(), {}
    yield counts
    context.listenerBus().waitUntilEmpty()
    last, found = context.dagScheduler().numTotalJobs(), queries.executionsList()
    keys = (found.apply(i).jobs().keySet().mkString(" ") for i in range(found.size()))
    of_queries = {int(job) for told in keys for job in told.split()}
    counts |= {"jobs": last - first, "outside": len(set(range(first, last)) - of_queries)}


def test_small_ingests_take_few_jobs_and_infer_no_schema(
    runs: Runs, spark: SparkSession, tmp_path: Path
) -> None:
    first, second = reports(tmp_path, range(4)), reports(tmp_path, range(4, 6))
    found = {}
    for name, paths in {
        "gossipsub": [ROOT / "examples/gossipsub"],
        "edges": [edges(tmp_path)],
        "reports": [first],
    }.items():
        with counted(spark) as found[name]:
            runs.ingest(name, *paths)
    with counted(spark) as found["append"]:
        runs.ingest("reports", first, second, append=True)
    print(found)
    assert {name: counts["outside"] for name, counts in found.items()} == dict.fromkeys(found, 0)
    assert {name: counts["jobs"] for name, counts in found.items() if counts["jobs"] > 40} == {}
