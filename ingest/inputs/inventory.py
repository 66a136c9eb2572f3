"""The input: every file inspected once, and the source that reads it.

Files are hashed and recognised in threads or, on a cluster, in Spark tasks; only the results come
back to the driver.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from vizpub.ingest.inputs.files import (
    FileStamp,
    InputFile,
    ResolvedPath,
    check_readable,
    check_unchanged,
)
from vizpub.ingest.inputs.reader import BELOW_HEADER
from vizpub.ingest.inputs.recognition import InspectedFile, inspect_file
from vizpub.ingest.sources.base import SEE_FORMATS, Source, SourceOptions
from vizpub.ingest.tasks.items import map_items
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.progress import Progress, silent
from vizpub.reports.compressed import MAX_LINE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SOURCE = "no source recognises"
SEVERAL_SOURCES = "several sources recognise the input"
NOTHING = "nothing to ingest in"

AUTO = "auto"
STEP = "look at the input"
_SHOWN = 5


@dataclass(frozen=True)
class Inventory:
    """The files to ingest by path, the skipped ones with reasons, and the source."""

    files: list[InputFile]
    skipped: list[tuple[str, str]]
    source: str


def take_inventory(
    spark: SparkSession | None,
    resolved_paths: Mapping[str, ResolvedPath],
    sources: Sequence[Source],
    source_name: str = AUTO,
    progress: Progress = silent,
    max_line: int | None = None,
) -> Inventory:
    """Inspect every file, in Spark tasks or, without a session, in threads of this process, which
    report `progress`. Lines are read up to `max_line` bytes.

    Raises: UnknownName for an unknown source; InputError for a named file or a whole input that
    cannot be read or that no source recognises, an input that several sources recognise, a trace in
    two encodings in one folder, and a file that changes meanwhile.
    """
    check_source(source_name, sources)
    stamps = dict(chain(*(resolved.files.items() for resolved in resolved_paths.values())))
    inspect = partial(inspect_file, sources=tuple(sources), limit=max_line or MAX_LINE)
    paths = sorted(stamps)
    inspected = (
        map_items(spark, inspect, paths) if spark else _inspect_here(inspect, paths, progress)
    )
    named_files = {
        file
        for resolved in resolved_paths.values()
        if resolved.names_file
        for file in resolved.files
    }
    check_readable({row.path: row.unfit for row in inspected if row.path in named_files})
    inspected = _drop_vague_answers(inspected, named_files, sources)
    source = _choose_source(inspected, source_name, sources)
    chosen = next(one for one in sources if one.name == source)
    files, skipped = _sort_out(inspected, (source, *sorted(chosen.joins)), named_files, stamps)
    skipped += chain(*(resolved.skipped.items() for resolved in resolved_paths.values()))
    _check_named_files(list(resolved_paths), named_files, files, skipped)
    if not chosen.appendable:  # in the others a record counts once, however often it comes
        files, copies = _drop_copies(files, chosen)
        skipped += copies
    check_unchanged({file.path: stamps[file.path] for file in files})
    own_paths = {row.path for row in inspected if _encoding(row, source)}
    by_path = {file.path: file for file in files}
    for path, resolved in resolved_paths.items():
        inside = [by_path[file] for file in resolved.files if file in by_path]
        _check_encodings(path, [file for file in inside if file.path in own_paths])
        _check_encodings(path, [file for file in inside if file.path not in own_paths])
    return Inventory(files, sorted(set(skipped)), source)


def check_source(name: str, sources: Sequence[Source]) -> None:
    """Check the name of a source. Raises: UnknownName."""
    names = [AUTO, *(source.name for source in sources)]
    if name not in names:
        raise UnknownName("source", name, names)


def check_options(source: Source, options: SourceOptions) -> None:
    """Check that the source supports the options that are set. Raises: UseError."""
    set_options = (f.name for f in fields(options) if getattr(options, f.name) != f.default)
    for name in set_options:
        if name not in source.options:
            spelled = {"only": "input-run", "interval_us": "interval"}.get(name, name)
            option = "--" + spelled.replace("_", "-")
            raise UseError(f"{option} does not apply to source '{source.name}': leave it out")


def check_layers(requested: Sequence[str] | None, available: Collection[str]) -> None:
    """Check that each requested layer has links. Raises: UnknownName."""
    for layer in requested or ():
        if layer not in available:
            raise UnknownName("layer", layer, sorted(available), "--layers")


def _inspect_here(
    inspect: Callable[[str], InspectedFile], paths: Sequence[str], progress: Progress
) -> list[InspectedFile]:
    inspected = []
    with ThreadPoolExecutor() as pool:
        for result in pool.map(inspect, paths):
            inspected.append(result)
            progress(STEP, len(inspected), len(paths))
    return inspected


def _drop_vague_answers(
    inspected: Sequence[InspectedFile], named_files: set[str], sources: Sequence[Source]
) -> list[InspectedFile]:
    """Drop vague answers of sources, except for named files and if there are no other answers."""
    vague = {f"{source.name}:{kind}" for source in sources for kind in source.vague}

    def sure(row: InspectedFile) -> list[str]:
        is_named = row.path in named_files
        return [a for a in row.recognised if is_named or a.partition("(")[0] not in vague]

    if not any(map(sure, inspected)):
        return list(inspected)
    return [replace(row, recognised=sure(row)) for row in inspected]


def _choose_source(inspected: Sequence[InspectedFile], name: str, sources: Sequence[Source]) -> str:
    """Return the name of the one source that recognises files. Raises: InputError."""
    if name != AUTO:
        return name
    companions = {f"{source.name}:{kind}" for source in sources for kind in source.companions}
    examples: dict[str, str] = {
        answer.split(":")[0]: row.path
        for row in reversed(inspected)
        for answer in row.recognised
        if answer not in companions
    }
    for source in sources:
        if source.name in examples and examples.keys() <= {source.name, *source.joins}:
            return source.name
    names = ", ".join(source.name for source in sources)
    if not examples:
        check_readable({row.path: row.unfit for row in inspected})
        reasons = [(row.path, row.unfit or row.damage) for row in inspected]
        listing = _list_paths([f"{path} ({why})" if why else path for path, why in reasons])
        raise InputError(
            f"{NO_SOURCE} {listing}",
            f"known formats: {names}; the page Sources describes them: vizpub docs",
        )
    listing = "; ".join(f"{source}, as {path}" for source, path in sorted(examples.items()))
    raise InputError(
        f"{SEVERAL_SOURCES}: {listing}",
        f"name one, for example: --source {min(examples)}",
    )


def _encoding(row: InspectedFile, source: str) -> str | None:
    """Return the encoding that the source recognised; null if it did not recognise the file."""
    answers = (answer.split(":") for answer in row.recognised)
    return next((encoding for name, encoding in answers if name == source), None)


def _sort_out(
    inspected: Sequence[InspectedFile],
    sources: Sequence[str],
    named_files: set[str],
    stamps: Mapping[str, FileStamp],
) -> tuple[list[InputFile], list[tuple[str, str]]]:
    """Return the files to ingest, and the skipped ones with reasons; `sources` has the source and
    those that it joins.
    """
    files, skipped = [], []
    for row in inspected:
        encoding = next(filter(None, (_encoding(row, name) for name in sources)), None)
        # Unfinished files of a killed writer begin with a dot.
        hidden = os.path.basename(row.path).startswith(".") and row.path not in named_files
        if encoding and not hidden:
            entry = row.path, encoding, row.size, row.sha256
            files.append(InputFile(*entry, stamps[row.path]))
        else:
            unknown = f"not recognised as {sources[0]}" + (f" ({row.damage})" if row.damage else "")
            skipped.append((row.path, "hidden" if hidden else row.unfit or unknown))
    return files, skipped


def _drop_copies(
    files: Sequence[InputFile], source: Source
) -> tuple[list[InputFile], list[tuple[str, str]]]:
    """Return the files without copies, which would count again, and the copies with reasons.

    Of files with equal content, of whose names the source learns the same, the one with the
    shortest path is no copy.
    """
    keys = {f.path: (f.encoding, f.sha256, source.read_name(f.path)) for f in files}
    first: dict[tuple[str, str, str | None], str] = {}
    for file in sorted(files, key=lambda file: (len(file.path), file.path)):
        first.setdefault(keys[file.path], file.path)
    pairs = [(file, first[keys[file.path]]) for file in files]
    originals = [file for file, original in pairs if file.path == original]
    copies = [(f.path, f"a copy of {one}") for f, one in pairs if f.path != one]
    return originals, copies


def _check_named_files(
    paths: Sequence[str],
    named_files: set[str],
    files: Sequence[InputFile],
    skipped: Sequence[tuple[str, str]],
) -> None:
    """Check that no named file is skipped, and that there is a file to ingest. Raises:
    InputError.
    """
    for path, why in skipped:
        if path in named_files:
            raise InputError(f"{path}: {why}", SEE_FORMATS)
    if not files:
        check_readable(dict(skipped))
        raise InputError(
            f"{NOTHING} {_list_paths(paths)}",
            "; ".join(f"{path}: {why}" for path, why in skipped[:_SHOWN]),
        )


def _check_encodings(path: str, files: Sequence[InputFile]) -> None:
    """Check that a path holds one encoding: otherwise a trace would count twice.

    Raises: InputError.
    """
    groups: dict[str, list[str]] = {}
    for file in sorted(files, key=lambda file: file.path):
        # Tables of more and of fewer columns, and parts of one below its header, are of one kind.
        kind = file.encoding.partition("(")[0].removesuffix(BELOW_HEADER)
        groups.setdefault(kind, []).append(file.path)
    if len(groups) > 1:
        top = os.path.commonpath([os.path.dirname(file.path) for file in files])
        short = {kind: [os.path.relpath(p, top) for p in paths] for kind, paths in groups.items()}
        listing = "; ".join(
            f"{kind}: {_list_paths(paths)}" for kind, paths in sorted(short.items())
        )
        raise InputError(
            f"{path} holds {' and '.join(sorted(groups))}, perhaps the same trace twice: {listing}",
            f"name the files of one, for example: vizpub ingest {_path_of_one_kind(groups)}",
        )


def _path_of_one_kind(groups: Mapping[str, Sequence[str]]) -> str:
    """Return a path with files of one kind only: the folder with most of them, otherwise a file."""
    kinds: dict[str, set[str]] = {}
    files: Counter[str] = Counter()
    for kind, paths in groups.items():
        for folder in chain.from_iterable(map(_folders_above, paths)):
            kinds.setdefault(folder, set()).add(kind)
            files[folder] += 1
    pure = sorted(folder for folder, folder_kinds in kinds.items() if len(folder_kinds) == 1)
    deepest = max(pure, key=lambda folder: (files[folder], len(folder)), default="")
    path = deepest or groups[min(groups)][0]
    return min(path, os.path.relpath(path), key=len)


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders that hold the file, the nearest first."""
    while (folder := os.path.dirname(path)) not in ("", path):
        yield folder
        path = folder


def _list_paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
