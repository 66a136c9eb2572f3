"""Runs that several tests look at: whole ingests of small inputs, made once.

The ingests run in one process of their own, one after the other, because each stops its
Spark session in the end.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ingest.manifest import FILE
from ingest.pipeline import IngestOutcome, IngestRequest, ingest_in
from ingest.sources.base import SourceOptions
from ingest.store import StoredRun, open_run, writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests/data/libp2p_small"
GEPHI = ROOT / "tests/data/gephi_small"
Row = dict[str, Any]

_CHILD = """
import json, sys
from pathlib import Path
from ingest.job import Measuring
from ingest.pipeline import IngestRequest, ingest
from ingest.sources.base import SourceOptions
from model.errors import VizpubError

for line in sys.stdin:
    asked = json.loads(line)
    asked["paths"] = tuple(asked["paths"])
    options = SourceOptions(**asked.pop("options", {}))
    asked["measuring"] = Measuring(asked.pop("layers", None))
    try:
        outcome = ingest(IngestRequest(**asked, workspace=Path(sys.argv[1]), options=options))
        told = {"already_complete": outcome.already_complete, "state": outcome.run.manifest.state}
    except VizpubError as error:
        told = {"error": type(error).__name__, "message": str(error)}
    print("told", json.dumps(told), flush=True)
"""

TINY = "interval,src,dst\n0,a,b\n0,b,c\n1,a,b\n2,c,a\n"


@dataclass(frozen=True)
class Ingested:
    """The workspace after all ingests, and what each of them told."""

    workspace: Path
    told: Mapping[str, Row]

    def run(self, name: str) -> StoredRun:
        return open_run(self.workspace, name)


def asked(inputs: Path) -> dict[str, Row]:
    """What is ingested, in order; the names are those of the cases."""
    (one_node,) = SMALL.glob("one_node.*.pb")
    tiny = {"run": "tiny", "paths": [str(inputs / "tiny.csv")]}
    return {
        "gossipsub": {"run": "gossipsub", "paths": [str(ROOT / "examples/gossipsub")]},
        "old spelling": {
            "run": "old",
            "paths": [str(SMALL / "trace2json_v0.4_spelling.ndjson.gz")],
        },
        "one node": {"run": "one", "paths": [str(one_node)]},
        "gephi": {"run": "gephi", "paths": [str(GEPHI / "versions.csv.gz")]},
        "tiny": tiny,
        "again": {**tiny, "paths": [str(inputs / "elsewhere/tiny.csv")]},
        "other options": {**tiny, "options": {"interval_us": 5}, "layers": ["mesh"]},
        "other content": {**tiny, "paths": [str(inputs / "other/tiny.csv")]},
        "replaced": {**tiny, "paths": [str(inputs / "other/tiny.csv")], "replace": True},
        "nothing good": {**tiny, "paths": [str(inputs / "bad/tiny.csv")], "replace": True},
    }


def ingest(
    spark: SparkSession,
    workspace: Path,
    run: str,
    *paths: Path,
    append: bool = False,
    **options: Any,
) -> IngestOutcome:
    """One ingest more, in the session of the tests: quicker than a `vizpub` of its own."""
    request = IngestRequest(
        tuple(map(str, paths)), run, workspace, options=SourceOptions(**options), append=append
    )
    with writing(workspace, run) as writer:
        return ingest_in(spark, writer, request)


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    folder = tmp_path_factory.mktemp("pipeline")
    inputs = folder / "inputs"
    for place in ("", "elsewhere", "other", "bad"):
        (inputs / place).mkdir(parents=True, exist_ok=True)
        (inputs / place / "tiny.csv").write_text(TINY)
    (inputs / "other/tiny.csv").write_text(TINY + "3,a,b\n")
    (inputs / "bad/tiny.csv").write_text("interval,src,dst\nnever,a,b\n")
    requests = asked(inputs)
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(folder / "ws")],
        cwd=ROOT,
        input="".join(json.dumps(request) + "\n" for request in requests.values()),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    lines = [line.removeprefix("told ") for line in done.stdout.splitlines() if "told" in line]
    assert len(lines) == len(requests), done.stdout + done.stderr
    told = dict(zip(requests, map(json.loads, lines), strict=True))
    assert (folder / "ws/runs/gossipsub" / FILE).exists(), told
    return Ingested(folder / "ws", told)


@pytest.fixture(scope="session")
def gossipsub(ingested: Ingested) -> StoredRun:
    return ingested.run("gossipsub")


@cache
def truth() -> Any:
    """What the driver of the gossipsub network saw from inside."""
    return json.loads(gzip.decompress((SMALL / "truth.json.gz").read_bytes()))
