"""The input: every file inspected once, and the source that reads it.

Files are hashed and sniffed in threads or, where there is a cluster, in Spark tasks; only their
names and what was found come back to the driver.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from vizpub.ingest.inputs.files import Found, InputFile, Stamp, check_readable, check_unchanged
from vizpub.ingest.inputs.recognition import LookedAt, look_at
from vizpub.ingest.sources.base import Source, SourceOptions
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
_LOOKED_AT = (
    "path string, size bigint, sha256 string, damage string, unfit string, recognised array<string>"
)


@dataclass(frozen=True)
class Inventory:
    """The files to ingest, by path, what was left out and why, and the source."""

    files: list[InputFile]
    skipped: list[tuple[str, str]]
    source: str


def inventory(
    spark: SparkSession | None,
    given: Mapping[str, Found],
    sources: Sequence[Source],
    source_name: str = AUTO,
    progress: Progress = silent,
    max_line: int | None = None,
) -> Inventory:
    """Inspect every file that was found, in Spark tasks or, without a session, in threads of this
    process, which report `progress`. A line is looked at up to `max_line` bytes.

    Raises: UnknownName for an unknown source; InputError for a named file or a whole input that
    cannot be read or no source recognises, an input that several sources recognise, a trace in two
    encodings in one folder, and a file that changes meanwhile.
    """
    check_source(source_name, sources)
    stamps = dict(chain(*(found.files.items() for found in given.values())))
    if spark is None:
        looked_at = _look_here(sorted(stamps), sources, max_line or MAX_LINE, progress)
    else:
        looked_at = _look_in_tasks(spark, sorted(stamps), sources, max_line or MAX_LINE)
    named = {file for found in given.values() if found.named for file in found.files}
    check_readable({row.path: row.unfit for row in looked_at if row.path in named})
    looked_at = _without_vague(looked_at, named, sources)
    source = _tell_source(looked_at, source_name, sources)
    chosen = next(one for one in sources if one.name == source)
    files, skipped = _sort_out(looked_at, (source, *sorted(chosen.joins)), named, stamps)
    skipped += chain(*(found.skipped.items() for found in given.values()))
    _check_taken(list(given), named, files, skipped)
    if not chosen.appendable:  # in the others a record counts once, however often it comes
        files, copies = _without_copies(files)
        skipped += copies
    check_unchanged({file.path: stamps[file.path] for file in files})
    own = {row.path for row in looked_at if _encoding(row, source)}
    by_path = {file.path: file for file in files}
    for path, found in given.items():
        inside = [by_path[file] for file in found.files if file in by_path]
        _check_encodings(path, [file for file in inside if file.path in own])
        _check_encodings(path, [file for file in inside if file.path not in own])
    return Inventory(files, sorted(set(skipped)), source)


def check_source(name: str, sources: Sequence[Source]) -> None:
    """Raises: UnknownName for an unknown source."""
    known = [AUTO, *(source.name for source in sources)]
    if name not in known:
        raise UnknownName("source", name, known)


def check_options(source: Source, options: SourceOptions) -> None:
    """Raises: UseError for an option that the source does not support."""
    given = (f.name for f in fields(options) if getattr(options, f.name) != f.default)
    for name in given:
        if name not in source.options:
            option = "--" + name.removesuffix("_us").replace("_", "-")
            raise UseError(f"{option} does not apply to source '{source.name}': leave it out")


def check_layers(asked: Sequence[str] | None, known: Collection[str]) -> None:
    """Raises: UnknownName for a layer without links."""
    for layer in asked or ():
        if layer not in known:
            raise UnknownName("layer", layer, sorted(known), "--layers")


def _look_here(
    paths: Sequence[str], sources: Sequence[Source], limit: int, progress: Progress
) -> list[LookedAt]:
    found = []
    with ThreadPoolExecutor() as pool:
        for one in pool.map(partial(look_at, sources=sources, limit=limit), paths):
            found.append(one)
            progress(STEP, len(found), len(paths))
    return found


def _look_in_tasks(
    spark: SparkSession, paths: Sequence[str], sources: Sequence[Source], limit: int
) -> list[LookedAt]:
    tasks = min(len(paths), 8 * spark.sparkContext.defaultParallelism)
    rows = spark.createDataFrame([(path,) for path in paths], "path string").repartition(tasks)
    look = partial(_look_at_batches, sources=tuple(sources), limit=limit)
    found = rows.mapInArrow(look, _LOOKED_AT)
    return sorted((LookedAt(*row) for row in found.collect()), key=lambda file: file.path)


def _look_at_batches(
    batches: Iterable[pa.RecordBatch], sources: Sequence[Source], limit: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [asdict(look_at(path, sources, limit)) for path in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=_look_at_schema())


def _look_at_schema() -> pa.Schema:
    words = ("sha256", "damage", "unfit")
    return pa.schema(
        [
            ("path", pa.string()),
            ("size", pa.int64()),
            *((name, pa.string()) for name in words),
            ("recognised", pa.list_(pa.string())),
        ]
    )


def _without_vague(
    looked_at: Sequence[LookedAt], named: set[str], sources: Sequence[Source]
) -> list[LookedAt]:
    """The files, not recognised by vague answers unless they are named or there are no others."""
    vague = {f"{source.name}:{kind}" for source in sources for kind in source.vague}

    def sure(row: LookedAt) -> list[str]:
        is_named = row.path in named
        return [a for a in row.recognised if is_named or a.partition("(")[0] not in vague]

    if not any(map(sure, looked_at)):
        return list(looked_at)
    return [replace(row, recognised=sure(row)) for row in looked_at]


def _tell_source(looked_at: Sequence[LookedAt], name: str, sources: Sequence[Source]) -> str:
    """The one source that recognises files. Raises: InputError for none or several."""
    if name != AUTO:
        return name
    examples: dict[str, str] = {
        answer.split(":")[0]: row.path for row in reversed(looked_at) for answer in row.recognised
    }
    for source in sources:
        if source.name in examples and examples.keys() <= {source.name, *source.joins}:
            return source.name
    names = ", ".join(source.name for source in sources)
    if not examples:
        check_readable({row.path: row.unfit for row in looked_at})
        raise InputError(
            f"{NO_SOURCE} {_listed([_with_reason(row) for row in looked_at])}",
            f"known formats: {names}; docs/sources.md describes them",
        )
    listing = "; ".join(f"{source}, as {path}" for source, path in sorted(examples.items()))
    raise InputError(
        f"{SEVERAL_SOURCES}: {listing}",
        f"name one, for example: --source {min(examples)}",
    )


def _with_reason(row: LookedAt) -> str:
    """The path, with the reason for which no source was asked, or saw only a part."""
    return row.path + (f" ({why})" if (why := row.unfit or row.damage) else "")


def _encoding(row: LookedAt, source: str) -> str | None:
    """What the source recognised the file as."""
    answers = (answer.split(":") for answer in row.recognised)
    return next((encoding for name, encoding in answers if name == source), None)


def _sort_out(
    looked_at: Sequence[LookedAt],
    sources: Sequence[str],
    named: set[str],
    stamps: Mapping[str, Stamp],
) -> tuple[list[InputFile], list[tuple[str, str]]]:
    """The files of the sources, and the others; `sources` = the source, and those that it joins."""
    files, skipped = [], []
    for row in looked_at:
        encoding = next(filter(None, (_encoding(row, name) for name in sources)), None)
        # Unfinished files of a killed writer begin with a dot.
        hidden = os.path.basename(row.path).startswith(".") and row.path not in named
        if encoding and not hidden:
            entry = row.path, encoding, row.size, row.sha256
            files.append(InputFile(*entry, stamps[row.path]))
        else:
            unknown = f"not recognised as {sources[0]}" + (f" ({row.damage})" if row.damage else "")
            skipped.append((row.path, "hidden" if hidden else row.unfit or unknown))
    return files, skipped


def _without_copies(
    files: Sequence[InputFile],
) -> tuple[list[InputFile], list[tuple[str, str]]]:
    """The files, and those of equal content, which would count again; a copy has a longer path."""
    first: dict[tuple[str, str], str] = {}
    for file in sorted(files, key=lambda file: (len(file.path), file.path)):
        first.setdefault((file.encoding, file.sha256), file.path)
    originals = [(file, first[file.encoding, file.sha256]) for file in files]
    kept = [file for file, original in originals if file.path == original]
    copies = [(f.path, f"a copy of {one}") for f, one in originals if f.path != one]
    return kept, copies


def _check_taken(
    paths: Sequence[str],
    named: set[str],
    files: Sequence[InputFile],
    skipped: Sequence[tuple[str, str]],
) -> None:
    """Raises: InputError where a named file is skipped, or where there is no file to ingest."""
    for path, why in skipped:
        if path in named:
            raise InputError(f"{path}: {why}", "docs/sources.md describes the formats")
    if not files:
        check_readable(dict(skipped))
        raise InputError(
            f"{NOTHING} {_listed(paths)}",
            "; ".join(f"{path}: {why}" for path, why in skipped[:_SHOWN]),
        )


def _check_encodings(path: str, files: Sequence[InputFile]) -> None:
    """Raises: InputError where a path holds several encodings: a trace would count twice."""
    groups: dict[str, list[str]] = {}
    for file in sorted(files, key=lambda file: file.path):
        # Tables of more and of fewer columns are of one kind.
        groups.setdefault(file.encoding.partition("(")[0], []).append(file.path)
    if len(groups) > 1:
        top = os.path.commonpath([os.path.dirname(file.path) for file in files])
        short = {kind: [os.path.relpath(p, top) for p in paths] for kind, paths in groups.items()}
        listing = "; ".join(f"{kind}: {_listed(paths)}" for kind, paths in sorted(short.items()))
        raise InputError(
            f"{path} holds {' and '.join(sorted(groups))}, perhaps the same trace twice: {listing}",
            f"name the files of one, for example: vizpub ingest {_of_one_kind(groups)}",
        )


def _of_one_kind(groups: Mapping[str, Sequence[str]]) -> str:
    """A path that holds files of one kind only: the folder with most of them, otherwise a file."""
    kinds: dict[str, set[str]] = {}
    files: Counter[str] = Counter()
    for kind, paths in groups.items():
        for folder in chain.from_iterable(map(_above, paths)):
            kinds.setdefault(folder, set()).add(kind)
            files[folder] += 1
    pure = sorted(folder for folder, found in kinds.items() if len(found) == 1)
    deepest = max(pure, key=lambda folder: (files[folder], len(folder)), default="")
    return _shorter(deepest or groups[min(groups)][0])


def _above(path: str) -> Iterator[str]:
    """The folders that hold the file, the nearest first."""
    while (folder := os.path.dirname(path)) not in ("", path):
        yield folder
        path = folder


def _shorter(path: str) -> str:
    """The path relative to the working directory, if that is shorter."""
    return min(path, os.path.relpath(path), key=len)


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
