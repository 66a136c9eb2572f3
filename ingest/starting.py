"""Where an ingest starts: from the beginning, with the interrupted stage, or not at all.

The manifest of an existing run decides: its inputs and options, the format number of each stage,
and whether the files of its stages exist. The version of the package does not matter.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources import source_named
from vizpub.model.clock import duration
from vizpub.model.errors import InputsDiffer, NeedsSettling, RunChanged, UseError
from vizpub.model.own import OwnMetric
from vizpub.model.wording import amount
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.integrity import files_of, stands
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.store import StoredRun
from vizpub.runstore.writer import RunWriter

ENDED = "its source marks its end"

_SHOWN = 5
_INSTEAD = "another --run NAME, or --replace to replace it"
"""What to give where an append was asked for."""
PUT_BACK = "restore them, or ingest all existing files with --replace"
"""What to do where a run lacks some of its files."""
_NAMES = {
    "interval_us": "--interval",
    "only": "--input-run",
    "betweenness": "--no-betweenness",
    "own": "--metric",
}
"""Options that are called otherwise in run.json."""
_SWITCHES = {"betweenness": False, "reporters_only": True, "undirected": True}
"""The value in run.json of an option that is given."""


@dataclass(frozen=True)
class Start:
    """Where an ingest begins."""

    files: Sequence[InputFile]
    """The files to read."""
    made: StoredRun | None
    """The run, if it is complete and the input has nothing new."""
    begin: Callable[[], None]
    """Starts or resumes the run."""


@dataclass(frozen=True)
class Wanted:
    """The run that the user asked for."""

    manifest: Manifest
    """The manifest before the first stage, with all files as input."""
    files: Sequence[InputFile]
    replace: bool = False
    """Replace an existing run, whatever its state."""
    append: bool = False
    """Add files to a complete run that it was not made from yet."""
    settle: tuple[int, int] | None = None
    """With `replace`: make it anew from all of its files, of that number and size, and more."""


def start(writer: RunWriter, wanted: Wanted) -> Start:
    """Decide where the ingest starts.

    Raises: InputsDiffer, NeedsSettling, RunChanged, UseError, and StoreBroken where an existing run
    is damaged and not to be replaced.
    """
    fresh, old = wanted.manifest, writer.stored
    if wanted.settle and old:
        if old.input_size != wanted.settle:  # an append came in between
            raise RunChanged(fresh.name)
        _check_whole(writer, old, fresh)
    if wanted.replace:
        return _anew(writer, wanted, writer.pending() or old)
    if writer.broken:
        raise writer.broken
    if old is None or not old.complete:
        if old and wanted.append and _contents(writer, old) - _contents(writer, fresh):
            raise InputsDiffer(fresh.name, _differences(writer, old, fresh), _INSTEAD)
        # An incomplete run of other inputs is not resumed.
        return _anew(writer, wanted, old)
    if wanted.append:
        return _append(writer, wanted, old)
    if differences := _differences(writer, old, fresh):
        raise InputsDiffer(fresh.name, differences)
    return _made(writer, old, wanted.files)


def _anew(writer: RunWriter, wanted: Wanted, half: Manifest | None) -> Start:
    """Start the run, or resume an incomplete one of the same inputs."""
    begun = wanted.manifest
    if half and not half.complete and not half.extends and not _differences(writer, half, begun):
        begun = _going_on(writer.directory, half, begun)
    return Start(wanted.files, None, partial(writer.begin, begun))


def _made(writer: RunWriter, old: Manifest, files: Sequence[InputFile]) -> Start:
    """Nothing to do. Raises: StoreBroken where files of the run are missing."""
    for name, entry in {**old.tables, **old.carry}.items():
        for part in entry.parts:
            files_of(writer.directory, part, name)
    return Start(files, StoredRun(writer.directory, old), lambda: None)


def _append(writer: RunWriter, wanted: Wanted, old: Manifest) -> Start:
    """Add the new files to the run."""
    fresh = wanted.manifest
    if old.source != fresh.source:
        raise InputsDiffer(old.name, _other_choices(old, fresh), _INSTEAD)
    known = _contents(writer, old)
    new = [file for file in wanted.files if (Path(file.path).name, file.sha256) not in known]
    if not new:
        return _made(writer, old, new)
    _check_appendable(old)
    check_own(old, fresh.own)
    if differences := _other_choices(old, fresh):
        raise NeedsSettling(old.name, "; ".join(differences))
    if other := [name for name, number in fresh.formats.items() if old.formats.get(name) != number]:
        why = f"it was made by another version, which differs in: {', '.join(other)}"
        raise NeedsSettling(old.name, why)
    grown = replace(
        fresh,
        inputs=(*old.inputs, *(file.manifest_entry for file in new)),
        skipped=tuple(dict.fromkeys([*old.skipped, *fresh.skipped])),
        earlier_bytes=old.earlier_bytes,
        extends=old.identity,
    )
    pending = writer.pending()
    if pending and not pending.extends:
        pending = None  # the run was to be replaced
    if pending and (left_out := _left_out(pending, grown, wanted.files)):
        raise UseError(
            f"an append to run '{old.name}' was interrupted; name its files too: "
            + ", ".join(left_out)
        )
    if pending and not _differences(writer, pending, grown):
        grown = _going_on(writer.directory, pending, grown)
    return Start(new, None, partial(writer.begin, grown))


def _left_out(pending: Manifest, grown: Manifest, given: Sequence[InputFile]) -> list[str]:
    """The names of the files of an interrupted append that another one leaves out. A file that has
    changed since, or is gone, cannot be given as it was.
    """
    taken = {(Path(file["path"]).name, file["sha256"]) for file in grown.inputs}
    paths = {file.path for file in given}
    return sorted(
        Path(path).name
        for path, sha256 in ((file["path"], file["sha256"]) for file in pending.inputs)
        if (Path(path).name, sha256) not in taken and path not in paths and _is_there(path)
    )


def _is_there(path: str) -> bool:
    return "://" in path or os.path.exists(path)


def _check_whole(writer: RunWriter, old: Manifest, fresh: Manifest) -> None:
    """Raises: UseError where the input lacks files that the run was made from."""
    if lost := _contents(writer, old) - _contents(writer, fresh):
        raise UseError(
            f"run '{old.name}' cannot be rebuilt: some of its input files have changed or "
            f"are gone: {_few(sorted(name for name, _ in lost))}; {PUT_BACK}"
        )


def check_own(run: Manifest, own: Iterable[OwnMetric]) -> None:
    """Raises: UseError where they are not the run's own metrics, whose columns it would lose."""
    if {*own} != {*run.own}:
        names = ", ".join(metric.name for metric in run.own) or "none"
        raise UseError(
            f"run '{run.name}' has other own metrics: {names}; name the same ones again, unchanged "
            "(--metric FILE.py:NAME), or ingest all files of the run again with --replace"
        )


def _few(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])


def _going_on(directory: Path, half: Manifest, fresh: Manifest) -> Manifest:
    """The part of an incomplete run to keep: the stages before the first one whose format changed
    or whose files are missing, and their tables. Later stages run again.
    """
    lost = {
        entry.stage
        for entry in half.tables.values()
        if entry.stage and not stands(directory, entry.newest)
    }
    kept = tuple(
        takewhile(
            lambda stage: stage not in lost and half.formats.get(stage) == fresh.formats.get(stage),
            half.stages,
        )
    )
    tables = {name: entry for name, entry in half.tables.items() if entry.stage in kept}
    return replace(
        half,
        stages=kept,
        tables=tables,
        formats=fresh.formats,
        versions=fresh.versions,
        collection=fresh.collection,
    )


def _check_appendable(run: Manifest) -> None:
    """Raises: UseError where more input cannot be added to the run."""
    why = None
    if not source_named(run.source).appendable:
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
    """The differences between the inputs and options of two manifests, as text."""
    found = _other_choices(old, new)
    before, now = _contents(writer, old), _contents(writer, new)
    if before != now:
        added, gone = (now - before).total(), (before - now).total()
        found.append(f"{amount(added, 'file')} new or changed, {gone} gone")
    return found


def _spelled(key: str, value: object) -> str:
    """The value of an option in run.json, as it is given."""
    if key in _SWITCHES:
        return "given" if value is _SWITCHES[key] else "not given"
    if value is None:
        return "the default"
    if isinstance(value, int) and key == "interval_us":
        return duration(value)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _other_choices(old: Manifest, new: Manifest) -> list[str]:
    """The options and the source that differ, as text."""
    found = [
        f"{_NAMES.get(key) or '--' + key.replace('_', '-')}: {_spelled(key, old.options.get(key))} "
        f"then, {_spelled(key, value)} now"
        for key, value in new.options.items()
        if old.options.get(key) != value
    ]
    if old.source != new.source:
        found.append(f"source: {old.source} then, {new.source} now")
    return found


def _contents(writer: RunWriter, run: Manifest) -> Counter[tuple[str, str]]:
    """The files by name and content; where they lie does not matter."""
    files = all_inputs(writer.directory, run)
    return Counter((Path(file["path"]).name, file["sha256"]) for file in files)
