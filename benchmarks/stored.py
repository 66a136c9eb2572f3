"""A workspace in S3 beside a folder: ingests and questions, in the same run.

The server is moto's, on this machine: what it does is in the seconds, but not in those of the
processor.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.appended import check_same
from benchmarks.markdown import against, number, table
from benchmarks.parts import Bench
from benchmarks.smoke import run_measured
from benchmarks.watched import ROOT, Json
from tests.support.object_store import BUCKET, serving
from vizpub.runstore.stores.place import folder_of

TIMES = 3
"""Whole ingests of the demo, in turns; the quickest counts."""
ASKED = 9
"""Questions of each kind, in turns; the quickest counts."""
QUESTIONS = ("metrics", "topic")
_DEMO = ROOT / "examples" / "gossipsub"


@contextmanager
def _workspaces(folder: Path) -> Iterator[Mapping[str, str]]:
    """A folder, and an empty workspace in a store."""
    with serving() as server:
        server.make_bucket(BUCKET)
        known = {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "a secret of tests",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        }
        with patch.dict(os.environ, known):
            url = f"s3://{BUCKET}/{os.getpid()}"
            try:
                yield {"folder": str(folder), "S3": url}
            finally:
                shutil.rmtree(folder_of(url), ignore_errors=True)


def stored(bench: Bench) -> Json:
    """A whole ingest into a folder, and into S3."""
    with _workspaces(bench.folder("stored")) as places:
        outcomes = {
            name: bench.program("ingested", place, "none", "new", bench.inputs.reports)
            for name, place in places.items()
        }
        check_same("in S3", *(folder_of(place) for place in places.values()))
    return outcomes


def stored_demo(bench: Bench) -> Json:
    """Whole ingests of the demo, and questions about it: in a folder, in S3 with copies here
    (warm), and without (cold).
    """
    with _workspaces(bench.folder("stored-demo")) as places:
        ingests: dict[str, list[Json]] = {name: [] for name in places}
        for turn in range(TIMES + 1):  # in the first, kernels are compiled
            for name, place in places.items():
                words = ["ingest", str(_DEMO), "--run", f"demo-{turn}", "--no-load"]
                took = run_measured(["-m", "vizpub.cli", "--workspace", place, *words])
                if turn:
                    ingests[name].append({"seconds": took.seconds, "processor": took.processor})
        answers: dict[str, dict[str, list[Json]]] = {}
        for question in QUESTIONS:
            took_by_way = answers[question] = {"folder": [], "cold": [], "warm": []}
            for _ in range(ASKED):
                shutil.rmtree(folder_of(places["S3"]) / "runs")
                for way, took_all in took_by_way.items():
                    place = places["folder" if way == "folder" else "S3"]
                    took_all.append(_asked(place, question, "demo-0"))
    return {
        "demo": {name: _quickest(of) for name, of in ingests.items()},
        "questions": {
            question: {name: _quickest(of) for name, of in ways.items()}
            for question, ways in answers.items()
        },
    }


def _asked(workspace: str, *words: str) -> Json:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "vizpub.cli", "--workspace", workspace, *words]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(seconds, 3), "processor": round(processor, 3)}


def _quickest(of: list[Json]) -> Json:
    return {kind: min(one[kind] for one in of) for kind in ("seconds", "processor")}


def section(parts: Mapping[str, Json]) -> str:
    """The section of RESULTS.md; empty where nothing of it was measured."""
    rows = []
    if whole := parts.get("stored"):
        sums = {
            name: {
                kind: sum(step[key] for step in outcome["steps"].values())
                for kind, key in (("seconds", "mean"), ("processor", "cpu_mean"))
            }
            for name, outcome in whole.items()
            if name in ("folder", "S3")
        }
        rows.append(_row("ingest", sums["folder"], sums["S3"]))
    if demo := parts.get("stored-demo"):
        rows.append(_row("ingest of the demo", *demo["demo"].values()))
        for question, ways in demo["questions"].items():
            rows += [
                _row(f"`{question} RUN`, {way}", ways["folder"], ways[way])
                for way in ("warm", "cold")
            ]
    if not rows:
        return ""
    header = [
        "work",
        "in a folder, s",
        "in S3, s",
        "in a folder, processor s",
        "in S3, processor s",
    ]
    return (
        "### In S3\n\n"
        "Warm: copies of the files are here; cold: none are. The server runs on this machine.\n\n"
        + table(header, rows)
    )


def _row(name: str, here: Json, there: Json) -> list[str]:
    kinds = ("seconds", "processor")
    cells = [[number(here[kind]), against(there[kind], here[kind])] for kind in kinds]
    return [name, *(cell for both in cells for cell in both)]
