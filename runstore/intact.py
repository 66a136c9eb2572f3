"""Whether the files of a run are as run.json describes them.

Three looks, each dearer than the one before:

    at open      the size; of a small file the CRC of all of it, of a large one that of its end,
                 which says where everything lies and how it is to be read
    in reading   the checksum of every page that is read (Parquet's own)
    runs check   the CRC of all bytes, and the rows
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from model.errors import StoreBroken
from runstore.manifest import Manifest, Part, StoredFile

if TYPE_CHECKING:
    import pyarrow.dataset as ds

SMALL_FILE = 8 * 2**20
"""Bytes up to which a file is read whole when it is opened: some milliseconds."""
_CHUNK = 2**20


@dataclass(frozen=True)
class Damage:
    """A file that is not what run.json says of it."""

    file: str
    """Below the run's directory."""
    table: str
    why: str


def dataset(files: Sequence[Path], schema: pa.Schema | None = None) -> ds.Dataset:
    """Stored files as one dataset, whose pages are looked at as they are read."""
    import pyarrow.dataset as ds  # with pandas, which takes as long as all else an ingest imports

    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    pages = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    return ds.dataset([str(path) for path in files], schema=schema, format=pages)


def described(path: Path) -> StoredFile:
    """What run.json is to say of a Parquet file that was just written.

    Raises: pyarrow.ArrowException for what is none.
    """
    meta, size = pq.read_metadata(path), path.stat().st_size
    if size <= SMALL_FILE:
        return StoredFile(path.name, meta.num_rows, size, _crc(path))
    end = _end_of_pages(meta)
    return StoredFile(path.name, meta.num_rows, size, _crc(path), end, _crc(path, end))


def files_of(run: Path, part: Part, name: str) -> list[Path]:
    """The files of a part of table `name`, looked at as at open, in a stable order.

    Raises: StoreBroken where one is gone or is another, or lies outside the run's directory.
    """
    directory = run / part.directory
    if Path(os.path.realpath(directory)) != Path(os.path.realpath(run)) / part.directory:
        raise StoreBroken(str(directory), f"files of table {name} lie outside the run's directory")
    if part.files is None:
        if not directory.is_dir():
            raise StoreBroken(str(directory), f"the files of table {name} are missing")
        return sorted(directory.glob("*.parquet"))
    for file in part.files:
        _check_open(directory / file.name, file, name)
    return [directory / file.name for file in part.files]


def stands(run: Path, part: Part) -> bool:
    """Whether the files of a part are there, as far as is seen at open."""
    try:
        files_of(run, part, part.directory)
    except StoreBroken:
        return False
    return True


def damages(run: Path, manifest: Manifest) -> Iterator[Damage | None]:
    """What is wrong with each file that the manifest names, null where it is whole; all are read.

    Of a run whose manifest is older than checksums, only sizes and rows can be told.
    """
    for name, entry in (*manifest.tables.items(), *manifest.carry.items()):
        for part in entry.parts:
            if part.files is None:
                yield from _unlisted(run, part, name)
            for file in part.files or ():
                path = run / part.directory / file.name
                why = _wrong(run, part, file, name)
                yield Damage(str(path.relative_to(run)), name, why) if why else None


def _unlisted(run: Path, part: Part, name: str) -> Iterator[Damage | None]:
    """As `damages`, of a part whose files are not listed: they can be read, or not."""
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


def _wrong(run: Path, part: Part, file: StoredFile, name: str) -> str:
    """What is wrong with a file, empty if nothing is."""
    path = run / part.directory / file.name
    try:
        files_of(run, Part(part.directory, file.rows, files=(file,)), name)
        if file.crc is not None and _crc(path) != file.crc:
            return "its bytes are not those that were written"
        if (rows := pq.read_metadata(path).num_rows) != file.rows:
            return f"it has {rows:,} rows, and run.json says {file.rows:,}"
    except StoreBroken as error:
        return error.why
    except (pa.ArrowException, OSError) as error:
        return f"not readable as Parquet ({error})"
    return ""


def _check_open(path: Path, file: StoredFile, name: str) -> None:
    try:
        found = path.lstat()
    except OSError as error:
        raise StoreBroken(str(path), f"a file of table {name} is missing") from error
    if not S_ISREG(found.st_mode):
        raise StoreBroken(str(path), f"a file of table {name} is a link or not a file")
    if found.st_size != file.size:
        size = f"it has {found.st_size:,} bytes, and run.json says {file.size:,}"
        raise StoreBroken(str(path), size)
    start, crc = (file.pages_end, file.end_crc) if file.pages_end else (0, file.crc)
    try:
        other = crc is not None and _crc(path, start) != crc
    except OSError as error:
        raise StoreBroken(str(path), f"cannot be read: {error.strerror}") from error
    if other:
        raise StoreBroken(str(path), "its bytes are not those that were written")


def _crc(path: Path, start: int = 0) -> int:
    """CRC-32 of a file from a byte on."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while chunk := file.read(_CHUNK):
            crc = crc32(chunk, crc)
    return crc


def _end_of_pages(meta: pq.FileMetaData) -> int:
    """Where the last page ends: behind it are the indexes and the footer."""
    groups = (meta.row_group(i) for i in range(meta.num_row_groups))
    columns = (group.column(j) for group in groups for j in range(group.num_columns))
    ends = [
        (c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset)
        + c.total_compressed_size
        for c in columns
    ]
    return max(ends, default=0)
