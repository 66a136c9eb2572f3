"""The start of an ingest: from the beginning, with the interrupted stage, or not at all.

The manifest of an existing run decides: its inputs and options, the format number of each stage,
and whether the files of its stages exist. The version of the package does not matter.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from vizpub.ingest.inputs.attributes import NEW_ATTRIBUTES
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources import find_source
from vizpub.model.clock import duration
from vizpub.model.errors import InputsDiffer, NeedsSettling, RunChanged, UseError
from vizpub.model.own import OwnMetric
from vizpub.model.wording import amount
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.integrity import files_of, is_intact
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.store import StoredRun
from vizpub.runstore.writer import RunWriter

ENDED = "its source marks its end"

_SHOWN = 5
_INSTEAD = "another --run NAME, or --replace to replace it"
"""Advice after a refused append."""
PUT_BACK = "restore them, or ingest all existing files with --replace"
"""Advice for a run some of whose files are gone."""
_NAMES = {
    "interval_us": "--interval",
    "only": "--input-run",
    "betweenness": "--no-betweenness",
    "own": "--metric",
}
"""Options whose names in run.json differ, by that name."""
_SWITCHES = {"betweenness": False, "reporters_only": True, "undirected": True}
"""Value in run.json of a switch that is given."""


@dataclass(frozen=True)
class StartingPoint:
    """The files that an ingest reads, and how it begins."""

    files: Sequence[InputFile]
    """Files to read."""
    complete_run: StoredRun | None
    """The run, if it is complete and the input has no new file; otherwise null."""
    begin: Callable[[], None]
    """Start or resume the run."""


@dataclass(frozen=True)
class RequestedRun:
    """The run that the user asked for."""

    manifest: Manifest
    """Manifest before the first stage, with all files as input."""
    files: Sequence[InputFile]
    request: IngestRequest


def find_start(writer: RunWriter, wanted: RequestedRun) -> StartingPoint:
    """Decide where the ingest starts.

    Raises: InputsDiffer, NeedsSettling, RunChanged, UseError, and StoreBroken where an existing run
    is damaged and not to be replaced.
    """
    fresh, old, request = wanted.manifest, writer.stored, wanted.request
    if request.settles and old:
        if old.input_size != request.settles:  # an append came in between
            raise RunChanged(fresh.name)
        if lost := _contents_of(writer, old) - _contents_of(writer, fresh):
            more = [f"and {len(lost) - _SHOWN} more"] if len(lost) > _SHOWN else []
            names = ", ".join([*sorted(name for name, _ in lost)[:_SHOWN], *more])
            raise UseError(
                f"run '{old.name}' cannot be rebuilt: some of its input files have changed or "
                f"are gone: {names}; {PUT_BACK}"
            )
    if request.replace:
        return _start_over(writer, wanted, writer.pending() or old)
    if writer.broken:
        raise writer.broken
    if old is None or not old.complete:
        if old and request.append and _contents_of(writer, old) - _contents_of(writer, fresh):
            raise InputsDiffer(fresh.name, _differences(writer, old, fresh), _INSTEAD)
        # An incomplete run of other inputs is not resumed.
        return _start_over(writer, wanted, old)
    if request.append:
        return _start_append(writer, wanted, old)
    if differences := _differences(writer, old, fresh):
        raise InputsDiffer(fresh.name, differences)
    return _keep_complete(writer, old, wanted.files)


def _start_over(writer: RunWriter, wanted: RequestedRun, half: Manifest | None) -> StartingPoint:
    """Start the run, or resume an incomplete one of the same inputs."""
    manifest = wanted.manifest
    if half and not half.complete and not half.extends and not _differences(writer, half, manifest):
        manifest = _resumable(writer.directory, half, manifest)
    return StartingPoint(wanted.files, None, partial(writer.begin, manifest))


def _keep_complete(writer: RunWriter, old: Manifest, files: Sequence[InputFile]) -> StartingPoint:
    """Return the start for a complete run. Raises: StoreBroken if some of its files are missing."""
    for name, entry in {**old.tables, **old.carry}.items():
        for part in entry.parts:
            files_of(writer.directory, part, name)
    return StartingPoint(files, StoredRun(writer.directory, old), lambda: None)


def _start_append(writer: RunWriter, wanted: RequestedRun, old: Manifest) -> StartingPoint:
    """Return the start of an append: begin one, or resume one that was interrupted."""
    fresh = wanted.manifest
    old_side_files = {file["path"]: file for file in old.attribute_files}
    side_files = old_side_files | {file["path"]: file for file in fresh.attribute_files}
    if old.source != fresh.source:
        raise InputsDiffer(old.name, _option_differences(old, fresh), _INSTEAD)
    contents = _contents_of(writer, old)
    new_files = [
        file for file in wanted.files if (Path(file.path).name, file.sha256) not in contents
    ]
    if not new_files and [*side_files.values()] == [*old.attribute_files]:
        return _keep_complete(writer, old, new_files)
    _check_appendable(old)
    if not new_files or any(side_files[path] != file for path, file in old_side_files.items()):
        raise NeedsSettling(old.name, NEW_ATTRIBUTES)
    check_own_metrics(old, fresh.own)
    if differences := _option_differences(old, fresh):
        raise NeedsSettling(old.name, "; ".join(differences))
    if differing := [
        name for name, number in fresh.formats.items() if old.formats.get(name) != number
    ]:
        why = f"it was made by another version, which differs in: {', '.join(differing)}"
        raise NeedsSettling(old.name, why)
    grown = replace(
        fresh,
        inputs=(*old.inputs, *(file.manifest_entry for file in new_files)),
        skipped=tuple(dict.fromkeys([*old.skipped, *fresh.skipped])),
        earlier_bytes=old.earlier_bytes,
        attribute_files=tuple(side_files.values()),
        extends=old.identity,
    )
    pending = writer.pending()
    if pending and not pending.extends:
        pending = None  # the run was to be replaced
    if pending and (left_out := _omitted_files(pending, grown, wanted.files)):
        raise UseError(
            f"an append to run '{old.name}' was interrupted; name its files too: "
            + ", ".join(left_out)
        )
    if pending and not _differences(writer, pending, grown):
        grown = _resumable(writer.directory, pending, grown)
    return StartingPoint(new_files, None, partial(writer.begin, grown))


def _omitted_files(pending: Manifest, grown: Manifest, files: Sequence[InputFile]) -> list[str]:
    """Return the names of files of an interrupted append that the new one leaves out.

    A file that has changed since, or is gone, cannot be given as it was, so it does not count.
    """
    current = {(Path(file["path"]).name, file["sha256"]) for file in grown.inputs}
    paths = {file.path for file in files}
    return sorted(
        Path(path).name
        for path, sha256 in ((file["path"], file["sha256"]) for file in pending.inputs)
        if (Path(path).name, sha256) not in current
        and path not in paths
        and ("://" in path or os.path.exists(path))
    )


def check_own_metrics(run: Manifest, own_metrics: Iterable[OwnMetric]) -> None:
    """Check that the own metrics are those of the run, which would lose columns otherwise.

    Raises: UseError.
    """
    if {*own_metrics} != {*run.own}:
        names = ", ".join(metric.name for metric in run.own) or "none"
        raise UseError(
            f"run '{run.name}' has other own metrics: {names}; name the same ones again, unchanged "
            "(--metric FILE.py:NAME), or ingest all files of the run again with --replace"
        )


def _resumable(directory: Path, half: Manifest, fresh: Manifest) -> Manifest:
    """Return the manifest from which an incomplete run resumes: the stages before the first one
    whose format changed or whose files are missing, and their tables. Later stages run again.
    """
    lost = {
        entry.stage
        for entry in half.tables.values()
        if entry.stage and not is_intact(directory, entry.newest)
    }
    stages = tuple(
        takewhile(
            lambda stage: stage not in lost and half.formats.get(stage) == fresh.formats.get(stage),
            half.stages,
        )
    )
    tables = {name: entry for name, entry in half.tables.items() if entry.stage in stages}
    return replace(
        half,
        stages=stages,
        tables=tables,
        formats=fresh.formats,
        versions=fresh.versions,
        collection=fresh.collection,
    )


def _check_appendable(run: Manifest) -> None:
    """Check that input can be added to the run. Raises: UseError."""
    why = None
    if not find_source(run.source).appendable:
        why = f"in source '{run.source}' later input changes earlier intervals"
    elif run.ended:
        why = ENDED
    elif run.options.get("reporters_only"):
        why = "--reporters-only left out links to peers that may report later"
    elif not run.carry:
        why = "it kept nothing to resume from"
    if why:
        raise UseError(
            f"run '{run.name}' cannot be appended to: {why}; "
            "ingest all files of the run again with --replace"
        )


def _differences(writer: RunWriter, old: Manifest, new: Manifest) -> list[str]:
    """Describe the differences between the inputs and options of two manifests."""
    differences = _option_differences(old, new)
    old_contents, new_contents = _contents_of(writer, old), _contents_of(writer, new)
    if old_contents != new_contents:
        added, gone = (new_contents - old_contents).total(), (old_contents - new_contents).total()
        differences.append(f"{amount(added, 'file')} new or changed, {gone} gone")
    old_digests, new_digests = (
        [file["sha256"] for file in run.attribute_files] for run in (old, new)
    )
    if old_digests != new_digests:
        differences.append(
            f"--attributes: {amount(len(old_digests), 'file')} then, {len(new_digests)} now"
            + (" with other content" if len(new_digests) == len(old_digests) else "")
        )
    return differences


def _option_text(key: str, value: object) -> str:
    """Return the value of an option in run.json as the user gives it."""
    if key in _SWITCHES:
        return "given" if value is _SWITCHES[key] else "not given"
    if value is None:
        return "the default"
    if isinstance(value, int) and key == "interval_us":
        return duration(value)
    if key == "pattern":
        return f"a file with SHA-256 {sha256(str(value).encode()).hexdigest()[:8]}…"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _option_differences(old: Manifest, new: Manifest) -> list[str]:
    """Describe the options that differ, and the source."""
    differences = [
        f"{_NAMES.get(key) or '--' + key.replace('_', '-')}: "
        f"{_option_text(key, old.options.get(key))} then, {_option_text(key, value)} now"
        for key, value in new.options.items()
        if old.options.get(key) != value
    ]
    if old.source != new.source:
        differences.append(f"source: {old.source} then, {new.source} now")
    return differences


def _contents_of(writer: RunWriter, run: Manifest) -> Counter[tuple[str, str]]:
    """Count the input files of a run by name and checksum, regardless of their folders."""
    files = all_inputs(writer.directory, run)
    return Counter((Path(file["path"]).name, file["sha256"]) for file in files)
