"""How an ingest begins, or does not."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.support.hdfs import one_cluster
from tests.support.object_store import Machine, machine, one_server, server, url
from tests.support.words import naming
from vizpub.ingest.inputs.inventory import NO_SOURCE
from vizpub.ingest.measures.choice import NO_FRAMES, MeasurementOptions
from vizpub.ingest.pipeline import ingest, ingest_in
from vizpub.ingest.request import IngestRequest
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.runstore.store import run_names
from vizpub.runstore.writer import writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["machine", "one_cluster", "one_server", "server", "url"]

REPORT = '{"format":"vizpub.report/1","peer":"a","interval":0}\n'


def test_graphframes_on_a_cluster_with_a_store_are_refused_before_anything_is_written(
    machine: Machine, tmp_path: Path
) -> None:
    """They would read the run's files in Spark itself."""
    (tmp_path / "reports.ndjson").write_text(REPORT)
    cluster = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://somewhere:7077"))
    measuring = MeasurementOptions(engine="graphframes")
    source = str(tmp_path / "reports.ndjson")
    request = IngestRequest((source,), "monday", machine("here"), measuring=measuring)
    with (
        writing(request.workspace, "monday") as writer,
        pytest.raises(UseError, match=NO_FRAMES[:20]),
    ):
        ingest_in(cast("SparkSession", cluster), writer, request)
    assert run_names(request.workspace) == []


def test_failed_start_leaves_no_run_behind(tmp_path: Path) -> None:
    (tmp_path / "green").write_text("of no source\n")
    with pytest.raises(InputError, match=naming(NO_SOURCE, tmp_path / "green")):
        ingest(IngestRequest((str(tmp_path / "green"),), "monday", tmp_path))
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "asked", "words"),
    [
        ("interval,src,dst\n0,a,b\n", "overlai", "no layer 'overlai'; did you mean overlay?"),
        ("msg,node,prev_node,t_us\nm,a,a,0\n", "overlay", "no layer 'overlay'"),
        ('{"type":0,"peerID":"AAFh","timestamp":1}\n', "msh", "no layer 'msh'; did you mean mesh?"),
    ],
)
def test_layer_that_the_source_does_not_have_is_refused_before_anything_is_written(
    tmp_path: Path, text: str, asked: str, words: str
) -> None:
    (tmp_path / "input").write_text(text)
    measuring = MeasurementOptions(layers=(asked,))
    with pytest.raises(UnknownName) as error:
        ingest(IngestRequest((str(tmp_path / "input"),), "new", tmp_path, measuring=measuring))
    assert words in str(error.value)
    assert list((tmp_path / "runs").iterdir()) == []


def test_workspace_in_the_folder_of_the_input_is_no_input(tmp_path: Path) -> None:
    """As by default: the same folder is given again when the workspace has runs."""
    (tmp_path / "reports.ndjson").write_text(REPORT)
    for workspace in (tmp_path, tmp_path / "vizpub-data"):
        for name in ("runs/monday/log.jsonl", "collected/live/batch.ndjson", ".spark/work-1/x"):
            (workspace / name).parent.mkdir(parents=True)
            (workspace / name).write_text(REPORT)
        (found,) = IngestRequest((str(tmp_path),), "monday", workspace).resolved_paths.values()
        assert {Path(path).name for path in found.files} == {"reports.ndjson"}
        shutil.rmtree(workspace / "runs")
        shutil.rmtree(workspace / "collected")
        shutil.rmtree(workspace / ".spark")


def test_name_of_the_run_is_checked_before_the_input(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=naming(f"'../x' {NO_NAME_OF_A_RUN}")):
        ingest(IngestRequest((str(tmp_path / "nowhere"),), "../x", tmp_path))
    assert list(tmp_path.iterdir()) == []
