"""A small input is one part, and its run is committed in the end; the run is the same as one of a
large input, which is made in parts and committed stage by stage.
"""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from tests.support.faults import LARGE, Stopped
from tests.support.ingested import TRACES, Store, copied, ingest
from tests.support.words import naming
from vizpub.ingest import pipeline, stages
from vizpub.ingest.inputs.files import CHANGED
from vizpub.ingest.job import Job
from vizpub.ingest.spark import scale
from vizpub.ingest.tasks.staged import is_staged
from vizpub.model.errors import InputError
from vizpub.runstore.manifest import FILE, read_manifest
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def reports(folder: Path, intervals: range, peers: int = 6) -> Path:
    """What peers in a ring say of news that goes round."""
    path = folder / f"reports-{peers}-{intervals.start}.ndjson"
    with path.open("w") as out:
        for i in intervals:
            for n in range(peers):
                before, after = f"p{(n - 1) % peers}", f"p{(n + 1) % peers}"
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

    def ingest(self, run: str, *paths: Path, append: bool = False) -> StoredRun:
        return ingest(self.spark, self.folder, run, *paths, append=append).run


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(spark, tmp_path_factory.mktemp("scale"))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    traces = folder / "gossipsub"
    traces.mkdir()
    for path in TRACES["gossipsub-4"]:
        shutil.copy(path, traces)
    return {
        "gossipsub": traces,
        "libp2p": TRACES["gossipsub-4"][0],
        "edges": edges(folder),
        "reports": reports(folder, range(4)),
        "later": reports(folder, range(4, 6)),
        "vizpub": ROOT / "tests/data/vizpub",
    }


@dataclass(frozen=True)
class Small:
    """A run of one part, and the jobs that Spark ran for it."""

    run: StoredRun
    jobs: int
    queries: int
    """Those that run jobs."""
    outside: int
    """Those that belong to no query: as when it opens files to see what columns they have."""
    calls: int
    """Commands that Python sent to Java, but for those of the progress."""


def counted(runs: Runs, run: str, *paths: Path, append: bool = False) -> Small:
    client = runs.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    context = runs.spark.sparkContext._jsc.sc()
    queries = runs.spark._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]
    first = context.dagScheduler().numTotalJobs()
    send, calls = client.send_command, 0

    def count_and_send(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += threading.current_thread() is threading.main_thread()  # others ask how far it is
        return send(*given, **options)

    with patch.object(client, "send_command", count_and_send):
        made = runs.ingest(run, *paths, append=append)
    context.listenerBus().waitUntilEmpty()
    last, found = context.dagScheduler().numTotalJobs(), queries.executionsList()
    keys = (found.apply(i).jobs().keySet().mkString(" ") for i in range(found.size()))
    of_queries = [{int(job) for job in told.split()} for told in keys]
    asked = sum(any(job >= first for job in jobs) for jobs in of_queries)
    outside = len(set(range(first, last)) - set().union(*of_queries))
    return Small(made, last - first, asked, outside, calls)


@pytest.fixture(scope="module")
def small(runs: Runs, inputs: dict[str, Path]) -> dict[str, Small]:
    """Runs of the inputs; `grown` is one of reports that later ones were appended to."""
    found = {name: counted(runs, name, inputs[name]) for name in ("gossipsub", "reports", "edges")}
    copied(found["reports"].run, runs.folder, "grown")
    both = inputs["reports"], inputs["later"]
    return found | {"grown": counted(runs, "grown", *both, append=True)}


@pytest.fixture(scope="module")
def many(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Small]:
    """A run of 1,500 peers, and the same with an interval appended. So many could have more links
    than a task can measure.
    """
    folder, count = tmp_path_factory.mktemp("many"), 1_500
    inputs = [reports(folder, intervals, count) for intervals in (range(2), range(2, 3))]
    return {
        "many": counted(runs, "many", inputs[0]),
        "grown": counted(runs, "many", *inputs, append=True),
    }


def tables(run: StoredRun) -> dict[str, list[str]]:
    return {
        name: sorted(repr(sorted(row.items())) for row in run.read(name).to_pylist())
        for name in run.manifest.tables
    }


def facts(run: StoredRun) -> tuple[object, ...]:
    told = run.manifest
    return told.clock, told.unknown, told.notes, told.engines, told.stages, sorted(told.carry)


@pytest.mark.long
@pytest.mark.parametrize("name", ["edges", "libp2p", "reports", "vizpub"])
def test_run_of_one_part_equals_one_made_stage_by_stage(
    runs: Runs, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    small = runs.ingest(f"{name}-small", inputs[name])
    monkeypatch.setattr(scale, "SMALL_INPUT", LARGE)
    large = runs.ingest(f"{name}-large", inputs[name])
    check_same(small, large)


def check_same(small: StoredRun, large: StoredRun) -> None:
    assert facts(small) == facts(large)
    assert tables(small) == tables(large)
    assert sum(small.rows(name) for name in small.manifest.tables) > 0
    assert not [name for name in small.manifest.tables if is_staged(name)]


@pytest.mark.long
def test_append_of_one_part_equals_one_ingest_of_all(
    inputs: dict[str, Path], small: dict[str, Small], stored: Store
) -> None:
    """As one that is made stage by stage does: tests/integration/test_append.py."""
    whole = stored("scale-whole", inputs["reports"], inputs["later"])
    assert tables(small["grown"].run) == tables(whole)


@pytest.mark.long
def test_append_of_one_part_equals_one_made_stage_by_stage(
    runs: Runs,
    inputs: dict[str, Path],
    small: dict[str, Small],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied(small["reports"].run, runs.folder, "large")
    monkeypatch.setattr(scale, "SMALL_INPUT", LARGE)
    large = runs.ingest("large", inputs["reports"], inputs["later"], append=True)
    check_same(small["grown"].run, large)


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("NAMES", marks=pytest.mark.long),
        pytest.param("PERIODS", marks=pytest.mark.long),
        "METRICS",
    ],
)
def test_stopped_small_run_begins_again(
    runs: Runs,
    inputs: dict[str, Path],
    small: dict[str, Small],
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    name, path = f"stopped-{stage}", inputs["edges"]
    directory = runs.folder / "runs" / name

    def stop(*given: object) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(stages, stage, replace(getattr(stages, stage), work=stop))
        with pytest.raises(Stopped):
            runs.ingest(name, path)
    assert read_manifest(directory).stages == ()
    run = runs.ingest(name, path)
    assert run.manifest.complete
    named = run.manifest.directories
    files = {str(f.relative_to(directory).parent) for f in directory.rglob("data/**/*.parquet")}
    assert files == named
    assert tables(run) == tables(small["edges"].run)
    assert (directory / FILE).is_file()


def check_few(made: dict[str, Small], jobs: dict[str, int]) -> None:
    print({name: (of.jobs, of.queries, of.calls) for name, of in made.items()})
    assert {name: of.outside for name, of in made.items()} == dict.fromkeys(made, 0)
    # Read and fold; all that follows; and for an append a search for messages that are named again.
    assert {name: of.jobs for name, of in made.items()} == jobs
    assert {name: of.queries for name, of in made.items()} == jobs
    assert max(of.calls for of in made.values()) <= 400


def test_small_ingests_take_few_jobs_and_calls_and_infer_no_schema(
    small: dict[str, Small],
) -> None:
    check_few(small, {"gossipsub": 2, "reports": 2, "edges": 2, "grown": 3})


def test_append_to_a_run_of_many_open_rows_is_made_in_parts(
    runs: Runs,
    inputs: dict[str, Path],
    small: dict[str, Small],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied(small["reports"].run, runs.folder, "heavy")
    monkeypatch.setattr(pipeline, "SMALL_RUN", 3)
    heavy = counted(runs, "heavy", inputs["reports"], inputs["later"], append=True)
    assert heavy.jobs > small["grown"].jobs
    assert tables(heavy.run) == tables(small["grown"].run)


def test_ingest_of_many_peers_takes_no_more_jobs_and_calls(many: dict[str, Small]) -> None:
    check_few(many, {"many": 2, "grown": 3})


@pytest.mark.parametrize("size", [LARGE, scale.SMALL_INPUT], ids=["large", "small"])
def test_input_that_grows_after_it_was_looked_at_is_refused(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(scale, "SMALL_INPUT", size)
    name, path = f"grown-{size}", edges(tmp_path)
    read = stages.READ

    def grow_and_read(job: Job) -> None:
        with path.open("a") as file:
            file.write("3,a,b\n")
        read.work(job)

    with monkeypatch.context() as patch:
        patch.setattr(stages, "READ", replace(read, work=grow_and_read))
        with pytest.raises(InputError, match=naming(f"edges.csv {CHANGED}", "54")):
            runs.ingest(name, path)
    assert not (runs.folder / "runs" / name).exists()
    if size == LARGE:
        return  # what goes on from here is as ever
    made = runs.ingest(name, path).manifest
    assert [file["sha256"] for file in made.inputs] == [sha256(path.read_bytes()).hexdigest()]
    assert made.clock is not None
    assert made.clock.last == 3
