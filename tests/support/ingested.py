"""Runs that several tests read, each ingested once, in the session of the tests.

They are kept from one run of the tests to the next, by their input and by the code that makes them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from tests.support.record import Notes
from vizpub.ingest.pipeline import IngestOutcome, ingest_in
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources.base import SourceOptions
from vizpub.runstore.manifest import write_manifest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests/data/libp2p_small"
GEPHI = ROOT / "tests/data/gephi_small"
TINY = ROOT / "tests/data/tiny.csv"
_NODES = tuple(sorted((ROOT / "examples/gossipsub").glob("*.ndjson.gz")))
TRACES = {
    "gossipsub": _NODES,
    "gossipsub-4": _NODES[:4],
    "old": (SMALL / "trace2json_v0.4_spelling.ndjson.gz",),
    "one": tuple(SMALL.glob("one_node.*.pb")),
    "gephi": (GEPHI / "versions.csv.gz",),
    "tiny": (TINY,),
}
"""The input of the runs of these names."""
Row = dict[str, Any]

_MAKERS = ("ingest", "analytics", "machine", "model", "reports")
_ENGINES = ("vizpub", "pyspark", "pyarrow", "numba")
_KEPT = 3
"""Runs of one name that are kept: enough for a change of the code and its reversal."""


def ingested(spark: SparkSession, request: IngestRequest) -> IngestOutcome:
    """`vizpub.ingest.pipeline.ingest`, in the session of the tests."""
    with writing(request.workspace, request.run) as writer:
        return ingest_in(spark, writer, request)


def ingest(
    spark: SparkSession,
    workspace: Path,
    run: str,
    *paths: Path,
    append: bool = False,
    settle: bool = True,
    **options: Any,
) -> IngestOutcome:
    """One more ingest, in the session of the tests: quicker than a `vizpub` process."""
    request = IngestRequest(
        tuple(map(str, paths)),
        run,
        workspace,
        options=SourceOptions(**options),
        append=append,
        settle=settle,
    )
    return ingested(spark, request)


@dataclass(frozen=True)
class Store:
    """Runs to read, in a folder that outlives the tests; use `copied` for a run to change."""

    folder: Path
    spark: Callable[[], SparkSession]
    """Called when a run does not exist yet."""

    def __call__(self, run: str, *paths: Path, **options: Any) -> StoredRun:
        """The run of these files and SourceOptions; without files, one of TRACES.

        A name is for one input: only few runs of other inputs or code are kept.
        """
        inputs = paths or TRACES[run]
        short = run[:40]
        place = self.folder / f"{short}-{_digest(inputs, SourceOptions(**options))}"
        key = f"the stored run {place.name}"
        making = Notes.current.within(key) if Notes.current else nullcontext()
        with FileLock(self.folder / f"{short}.lock"), making:
            if not place.is_dir():
                self._make(place, run, inputs, options)
                self._clear(short)
            os.utime(place)
        return open_run(place, run)

    def below(self, name: str) -> Store:
        """A store in a folder of that name, for tests where the path matters."""
        (self.folder / name).mkdir(exist_ok=True)
        return replace(self, folder=self.folder / name)

    def _make(self, place: Path, run: str, inputs: Iterable[Path], options: Row) -> None:
        making = place.with_name(f"{place.name}.making")  # what is killed here is no run
        shutil.rmtree(making, ignore_errors=True)
        outcome = ingest(self.spark(), making, run, *inputs, append=False, **options)
        assert not outcome.already_complete
        assert outcome.run.manifest.complete
        making.rename(place)

    def _clear(self, run: str) -> None:
        found = list(self.folder.glob(f"{run}-{'?' * 16}"))
        oldest_first = sorted(found, key=lambda path: path.stat().st_mtime)
        for old in [*oldest_first[:-_KEPT], *self.folder.glob(f"{run}-{'?' * 16}.making")]:
            shutil.rmtree(old)


def workspace_of(run: StoredRun) -> Path:
    """The workspace of the run, which has no other."""
    return run.directory.parents[1]


def copied(run: StoredRun, workspace: Path, name: str | None = None) -> StoredRun:
    """A copy to change, under another name if one is given."""
    name = name or run.name
    there = workspace / "runs" / name
    shutil.copytree(run.directory, there, symlinks=True)
    write_manifest(there, replace(run.manifest, name=name))
    return open_run(workspace, name)


def _digest(inputs: Iterable[Path], options: SourceOptions) -> str:
    """Digest of a run's input and of the code that makes it."""
    found = hashlib.blake2b(_code().encode(), digest_size=8)
    found.update(repr(sorted(asdict(options).items())).encode())
    for path in inputs:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                content = hashlib.blake2b(file.read_bytes()).hexdigest()
                found.update(f"{file.name} {content} ".encode())
    return found.hexdigest()


@cache
def _code() -> str:
    """Digest of the code that makes runs, and versions of its dependencies."""
    found = hashlib.blake2b()
    sources = (path for name in _MAKERS for path in (ROOT / name).rglob("*"))
    for path in sorted(path for path in sources if path.suffix in (".py", ".sql")):
        found.update(str(path.relative_to(ROOT)).encode())
        found.update(path.read_bytes())
    return f"{found.hexdigest()} {sys.version_info[:2]} {[*map(version, _ENGINES)]}"


@cache
def truth() -> Any:
    """The truth that the driver of the gossipsub network recorded."""
    return json.loads(gzip.decompress((SMALL / "truth.json.gz").read_bytes()))
