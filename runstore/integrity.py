"""Checks that the files of a run are as run.json describes them.

Three checks, each more expensive than the one before:

    on open      the size; the CRC of a small file, or of the footer and indexes of a large one
    on read      the checksum of every page that is read (Parquet's own)
    runs check   the CRC of all bytes, and the number of rows
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vizpub.model.errors import StoreBroken
from vizpub.model.wording import amount
from vizpub.runstore.manifest import REACH, Manifest, Part, StoredFile
from vizpub.runstore.stores.copies import bring, crc_of
from vizpub.runstore.stores.place import store_of_run

if TYPE_CHECKING:
    import pyarrow.dataset as ds

OTHER_PAGE = "CRC checksum verification failed"
"""What Parquet says of a page; only stored files are read so that it looks."""

OTHER_BYTES = "its bytes are not those that were written"

OUTSIDE = "lie outside the run's directory"

SMALL_FILE = 8 * 2**20
"""Bytes up to which a file is read whole when it is opened: some milliseconds."""
PARQUET = {
    "write_page_checksum": True,
    # Else statistics stand in the headers of pages, which no checksum covers.
    "write_page_index": True,
}
"""How stored files are written."""


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a table's files, the same in all of them. Which columns can be null, no file
    says: a large run and a small one would say it each in their own way.
    """
    return pa.schema([field.with_nullable(True) for field in schema])


@dataclass(frozen=True)
class Damage:
    """A file that differs from its entry in run.json."""

    file: str
    """Path relative to the run's directory."""
    table: str
    why: str


def dataset(files: Sequence[Path], schema: pa.Schema | None = None) -> ds.Dataset:
    """Stored files as one dataset that verifies page checksums."""
    import pyarrow.dataset as ds  # imports pandas, and that takes long

    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    pages = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    return ds.dataset([str(path) for path in files], schema=schema, format=pages)


def select_files(part: Part, schema: pa.Schema, where: pc.Expression | None) -> Part:
    """Return the part with those of its files that may have rows for which a condition holds. Arrow
    decides by the ranges in run.json, as it does about row groups, and opens no file.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    if where is None or part.files is None:
        return part
    known = [
        reduce(
            and_,
            (
                *(pc.field(name) <= most for name, most in (file.reach or {}).items()),
                *(pc.field(name) >= least for name, least in (file.least or {}).items()),
            ),
            pc.scalar(True),
        )
        for file in part.files
    ]
    names = [file.name for file in part.files]
    files = ds.FileSystemDataset.from_paths(
        names, schema, ds.ParquetFileFormat(), LocalFileSystem(), known
    )
    selected = {fragment.path for fragment in files.get_fragments(where)}
    return replace(part, files=tuple(file for file in part.files if file.name in selected))


def describe_file(path: Path) -> StoredFile:
    """The entry in run.json for a Parquet file that was just written.

    Raises: pyarrow.ArrowException for another file.
    """
    meta, size = pq.read_metadata(path), path.stat().st_size
    end = _end_of_pages(meta) if size > SMALL_FILE else None
    end_crc = None if end is None else crc_of(path, end)
    ranges = _ranges(meta)
    least, reach = ({name: of[place] for name, of in ranges.items()} for place in (0, 1))
    return StoredFile(path.name, meta.num_rows, size, crc_of(path), end, end_crc, reach, least)


def files_of(run: Path, part: Part, name: str) -> list[Path]:
    """The files of a part of table `name`, checked as on open, in a stable order.

    Raises: StoreBroken where a file is missing, has changed, or lies outside the run's directory.
    """
    directory = run / part.directory
    if Path(os.path.realpath(directory)) != Path(os.path.realpath(run)) / part.directory:
        raise StoreBroken(str(directory), f"files of table {name} {OUTSIDE}")
    if part.files is None:
        if not directory.is_dir():
            raise StoreBroken(str(directory), f"the files of table {name} are missing")
        return sorted(directory.glob("*.parquet"))
    check, paths = partial(_check_open, name=name), [directory / file.name for file in part.files]
    if store := store_of_run(run):
        bring(store, run, [*zip(paths, part.files, strict=True)], check)
    else:
        for path, file in zip(paths, part.files, strict=True):
            check(path, file)
    return paths


def is_intact(run: Path, part: Part) -> bool:
    """Return True if the files of a part pass the check on open."""
    try:
        files_of(run, part, part.directory)
    except StoreBroken:
        return False
    return True


def damages(run: Path, manifest: Manifest, *, compared: bool = False) -> Iterator[Damage | None]:
    """The damage of each file in the manifest, null where there is none.

    All files are read, except those with a checksum that the caller has `compared` already. Without
    checksums in an old manifest, only sizes and row counts are checked.
    """
    for name, entry in (*manifest.tables.items(), *manifest.carry.items()):
        for part in entry.parts:
            if part.files is None:
                yield from _damages_of_unlisted(run, part, name)
            for file in part.files or ():
                path = run / part.directory / file.name
                why = _wrong(run, part, file, name, compared=compared)
                yield Damage(str(path.relative_to(run)), name, why) if why else None


def _damages_of_unlisted(run: Path, part: Part, name: str) -> Iterator[Damage | None]:
    """The damage of each file of a part that lists none: only checks that it can be read."""
    try:
        files = files_of(run, part, name)
    except StoreBroken as error:
        yield Damage(part.directory, name, error.why)
        return
    for path in files:
        try:
            pq.ParquetFile(path).read()
        except (pa.ArrowException, OSError) as error:
            yield Damage(str(path.relative_to(run)), name, f"not readable as Parquet ({error})")
        else:
            yield None


def _wrong(run: Path, part: Part, file: StoredFile, name: str, *, compared: bool) -> str:
    """The damage of a file as text; empty if there is none."""
    path = run / part.directory / file.name
    try:
        # The checksum of all bytes is enough: that of the end would read them once more.
        unread = file if file.crc is None else replace(file, crc=None, pages_end=None)
        files_of(run, Part(part.directory, file.rows, files=(unread,)), name)
        if file.crc is not None and not compared and crc_of(path) != file.crc:
            return OTHER_BYTES
        if (rows := pq.read_metadata(path).num_rows) != file.rows:
            return f"it has {amount(rows, 'row')}, and run.json says {file.rows:,}"
    except StoreBroken as error:
        return error.why
    except (pa.ArrowException, OSError) as error:
        return f"not readable as Parquet ({error})"
    return ""


def _check_open(path: Path, file: StoredFile, name: str) -> None:
    try:
        status = path.lstat()
    except OSError as error:
        raise StoreBroken(str(path), f"a file of table {name} is missing") from error
    if not S_ISREG(status.st_mode):
        raise StoreBroken(str(path), f"a file of table {name} is a link or not a file")
    if status.st_size != file.size:
        size = f"it has {status.st_size:,} bytes, and run.json says {file.size:,}"
        raise StoreBroken(str(path), size)
    start, crc = (file.pages_end, file.end_crc) if file.pages_end else (0, file.crc)
    try:
        is_changed = crc is not None and crc_of(path, start) != crc
    except OSError as error:
        raise StoreBroken(str(path), f"cannot be read: {error.strerror}") from error
    if is_changed:
        raise StoreBroken(str(path), OTHER_BYTES)


def _ranges(meta: pq.FileMetaData) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of each column of REACH, by the file's statistics."""
    groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(meta.num_columns)]
    ranges: dict[str, tuple[int, int]] = {}
    unclear = set()
    for column in (column for column in columns if column.path_in_schema in REACH):
        name, statistics = column.path_in_schema, column.statistics
        is_known = statistics and statistics.has_min_max and not statistics.null_count
        if is_known and isinstance(statistics.max, int):  # staged tables have messages by name
            least, most = ranges.get(name, (statistics.min, statistics.max))
            ranges[name] = min(statistics.min, least), max(statistics.max, most)
        else:
            unclear.add(name)
    return {name: of for name, of in ranges.items() if name not in unclear}


def _end_of_pages(meta: pq.FileMetaData) -> int:
    """The end of the last page; after it come the indexes and the footer."""
    groups = (meta.row_group(i) for i in range(meta.num_row_groups))
    columns = (group.column(j) for group in groups for j in range(group.num_columns))
    ends = [
        (c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset)
        + c.total_compressed_size
        for c in columns
    ]
    return max(ends, default=0)
