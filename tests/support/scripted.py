"""Ingests without Spark: they begin and commit as the pipeline's do, with made-up tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.tables import links, write
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.starting import RequestedRun, StartingPoint, find_start
from vizpub.runstore.manifest import Cut, Manifest, Part, TableEntry
from vizpub.runstore.writer import RunWriter, writing

RUN = "monday"
FORMATS = {"parse": 1, "versions": 4, "finish": 2}
TABLES = {
    "parse": ("staged/parsed.links", "dangling_links"),
    "versions": ("links",),
    "finish": (),
}
"""The tables of each stage."""
FIRST, SECOND, THIRD = (
    InputFile(f"/a/{name}.ndjson", "ndjson", 10, name) for name in ("first", "second", "third")
)
LATE = Cut("valid_to", 40)


def wanted(
    *files: InputFile, formats: dict[str, int] = FORMATS, run: str = RUN, **how: Any
) -> RequestedRun:
    """The request of an ingest of the files."""
    inputs = tuple(file.manifest_entry for file in files)
    fresh = Manifest(run, "reports", inputs, {"gap_tolerance": 0}, formats=formats)
    return RequestedRun(fresh, files, IngestRequest((), run, Path(), **how))


def ingest(
    workspace: Path,
    asked: RequestedRun,
    stages: Sequence[str] = tuple(TABLES),
    *,
    small: bool = False,
) -> StartingPoint:
    """An ingest that is stopped after the last of the stages, if there is another one.

    A small one commits at the end.
    """
    with writing(workspace, asked.manifest.name) as writer:
        found = find_start(writer, asked)
        if found.complete_run:
            return found
        found.begin()
        for stage in stages:
            assert writer.manifest is not None
            if stage not in writer.manifest.stages:
                entries = {name: _written(writer, name, asked) for name in TABLES[stage]}
                done = writer.manifest.with_stage(stage, entries)
                if stage == "finish":
                    writer.commit(_finished(done))
                elif small:
                    writer.manifest = done
                else:
                    writer.commit(done)
    return found


def begun(workspace: Path, asked: RequestedRun) -> Manifest:
    """The run at the beginning of its ingest."""
    with writing(workspace, asked.manifest.name) as writer:
        find_start(writer, asked).begin()
        assert writer.manifest is not None
        return writer.manifest


def _written(writer: RunWriter, name: str, asked: RequestedRun) -> TableEntry:
    seed = sum(file.sha256.encode()[0] for file in asked.files) + len(name)
    older: tuple[Part, ...] = ()
    if writer.base is not None and name in writer.base.tables:
        parts = writer.base.tables[name].parts
        parts = writer.cut(name, parts, LATE if name == "links" else None)
        older = writer.merge(name, parts)
    return writer.entry(write(writer, name, links(30, seed), files=2), older)


def _finished(done: Manifest) -> Manifest:
    """The run after the pipeline's last stage: staged tables are dropped but for what it carries
    on."""
    kept = {name: entry for name, entry in done.tables.items() if not name.startswith("staged/")}
    carry = {"last": done.tables["staged/parsed.links"]}
    return replace(
        done, state="complete", tables=kept, carry=carry, extends="", replaces="", boundary=None
    )
