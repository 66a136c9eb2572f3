"""A run as one file: to back it up, and to move it to another workspace.

An archive is a tar of regular files. The first, `archive.json`, lists all others in their order,
with their sizes and CRC-32; the second is the run's `run.json`. So an import knows which files come
and how large they are before it writes anything, and accepts no others.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from io import BufferedReader, BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, BinaryIO
from zlib import crc32

import msgspec
import pyarrow as pa

from vizpub.machine.files import as_errors_of_ours, replacing
from vizpub.machine.private import make_private, new_file
from vizpub.model.errors import RunChanged, StoreBroken, UseError, cause_of
from vizpub.model.run import check_run_name
from vizpub.runstore import durable
from vizpub.runstore.collection import IDENTITY, Collected, finish_import
from vizpub.runstore.integrity import OTHER_BYTES, damages
from vizpub.runstore.journal import FILE as JOURNAL
from vizpub.runstore.leftovers import DATA, IMPORTING
from vizpub.runstore.manifest import FILE, Manifest, read_manifest, write_manifest
from vizpub.runstore.rewriting import moved_run
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import RunWriter, writing

FORMAT = "vizpub.archive/1"
COMPRESSIONS = {".tar": None, ".gz": "gzip", ".zst": "zstd"}
"""The compression of an archive, by the last suffix of its name."""
LIST = "archive.json"
_LOG = "collection"
_OF_LOG = re.compile(rf"{_LOG}/({IDENTITY}|options\.json|(log|batches|tokens)/[^./\0][^/\0]*)")
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}
_MOST_TEXT, _CHUNK = 2**28, 2**20
"""Most bytes of archive.json, and of run.json; bytes that are read at once."""
_DAMAGED = "it is damaged, or no archive of a run"
_ADVICE = "take another copy of it, or export the run again: vizpub runs export RUN -o FILE"


class _List(msgspec.Struct, frozen=True):
    """The content of archive.json."""

    format: str
    run: str
    files: dict[str, tuple[Annotated[int, msgspec.Meta(ge=0)], int]]
    """Size and CRC-32 of each file, in the order of the archive."""

    @property
    def has_log(self) -> bool:
        """True if the collection of the run is in the archive, too."""
        return any(name.startswith(f"{_LOG}/") for name in self.files)


@dataclass
class _Summed:
    """A stream with the CRC-32 of what was read of it."""

    stream: BinaryIO
    crc: int = 0

    def read(self, size: int) -> bytes:
        """Read so many bytes, fewer at the end."""
        content = self.stream.read(size)
        self.crc = crc32(content, self.crc)
        return content


@dataclass(frozen=True)
class _Source:
    """A file to archive: its first `size` bytes."""

    path: Path
    size: int
    crc: int | None = None
    """Null = it is computed."""
    file: BinaryIO | None = None
    """Null = it is opened when its turn comes."""

    @classmethod
    def of(cls, path: Path, file: BinaryIO | None = None) -> _Source:
        """Return a file with its present size."""
        status = os.fstat(file.fileno()) if file else path.stat()
        return cls(path, status.st_size, file=file)

    @contextmanager
    def open(self) -> Iterator[_Summed]:
        """Open the file at its beginning."""
        with ExitStack() as stack:
            file = self.file or stack.enter_context(self.path.open("rb"))
            file.seek(0)
            yield _Summed(file)

    def checksum(self) -> int:
        """Return the CRC-32 that the file must have."""
        if self.crc is not None:
            return self.crc
        with self.open() as file:
            for start in range(0, self.size, _CHUNK):
                file.read(min(_CHUNK, self.size - start))
            return file.crc


def export_run(run: StoredRun, to: Path, *, with_log: bool = False) -> None:
    """Write a complete run to a file for its owner alone, which appears complete or not at all;
    with the log of its collection, so that a collector can resume it.

    Raises: UseError, DiskFull, StoreBroken for a damaged run, RunChanged.
    """
    if to.suffix not in COMPRESSIONS:
        raise UseError(f"{to} has no suffix of an archive: {', '.join(COMPRESSIONS)}")
    with ExitStack() as stack:
        stack.enter_context(as_errors_of_ours(to.absolute().parent))
        sources = _sources(run, stack, with_log=with_log)
        files = {name: (source.size, source.checksum()) for name, source in sources.items()}
        text = msgspec.json.encode(_List(FORMAT, run.name, files))
        new, packing = stack.enter_context(replacing(to.absolute())), COMPRESSIONS[to.suffix]
        with (
            os.fdopen(new_file(new), "wb") as out,
            pa.CompressedOutputStream(out, packing) if packing else nullcontext(out) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
        ):
            tar.addfile(_entry(LIST, len(text)), BytesIO(text))
            for name, source in sources.items():
                _add(tar, run, name, source, files[name][1])
        durable.sync_file(new)
    durable.sync_directory(to.absolute().parent)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def _add(tar: tarfile.TarFile, run: StoredRun, name: str, source: _Source, crc: int) -> None:
    """Add a file. Raises: RunChanged if the run no longer has it, StoreBroken if it is damaged."""
    try:
        with source.open() as file:
            tar.addfile(_entry(name, source.size), file)  # type: ignore[arg-type]
            if file.crc == crc:
                return
            why = OTHER_BYTES
    except FileNotFoundError:
        why = "the file is missing"
    if not run.is_current():
        raise RunChanged(run.name)
    raise StoreBroken(str(source.path), why)


def _sources(run: StoredRun, stack: ExitStack, *, with_log: bool) -> dict[str, _Source]:
    """The files to archive, by name. Raises: UseError if the run has no log."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    write_manifest(folder, run.manifest)
    sources = {FILE: _Source.of(folder / FILE)}
    for part in run.manifest.parts:
        for file in part.files or ():
            name = f"{part.directory}/{file.name}"
            sources[name] = _Source(run.directory / name, file.size, file.crc)
    if (run.directory / JOURNAL).is_file():
        sources[JOURNAL] = _Source.of(run.directory / JOURNAL)
    of = Collected(run.directory.parents[1], run.name)
    if with_log and not of.owns(run.manifest):
        raise UseError(f"run '{run.name}' has no log in this workspace; leave out --with-log")
    for path, opened in of.open_files(stack).items() if with_log else ():
        sources[f"{_LOG}/{path.relative_to(of.folder)}"] = _Source.of(path, opened)
    return sources


class _Archive:
    """An archive, read from its beginning. Each method raises StoreBroken for a damaged one."""

    def __init__(self, path: Path, file: BufferedReader) -> None:
        self._path = path
        compression = _MAGIC.get(file.peek(2)[:2])
        self._stream = pa.CompressedInputStream(file, compression) if compression else file
        try:
            self.list = msgspec.json.decode(self._text(LIST), type=_List)
        except (msgspec.DecodeError, RecursionError):  # or it is not the list of an archive
            raise self.broken(_DAMAGED) from None
        if self.list.format != FORMAT:
            raise self.broken(f"it has the format {self.list.format}, and this version {FORMAT}")

    def broken(self, why: str) -> StoreBroken:
        """Return the error for this archive."""
        return StoreBroken(str(self._path), why, _ADVICE)

    def manifest(self) -> Manifest:
        """Read run.json, and check that the list has its files and no foreign ones."""
        text = self._text(FILE)
        try:
            run = read_manifest(self._path, text=text)
        except StoreBroken as error:
            raise self.broken(f"{FILE}: {error.why}") from error
        named = {
            f"{part.directory}/{file.name}": (file.size, file.crc)
            for part in run.parts
            for file in part.files or ()
        }
        others = self.list.files.keys() - named.keys() - {FILE, JOURNAL}
        if not (
            run.complete
            and [*self.list.files][:1] == [FILE]
            and all(self.list.files.get(name) == facts for name, facts in named.items())
            and all(map(_OF_LOG.fullmatch, others))
        ):
            raise self.broken(f"its list does not agree with {FILE}")
        return run

    def extract(self, name: str, to: Path) -> None:
        """Write the next file, which must have this name in the list. Raises: OSError."""
        with os.fdopen(new_file(to), "wb") as file:
            file.writelines(self._content(name, *self.list.files[name]))

    def check_end(self) -> None:
        """Check that no other file follows."""
        if self._read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise self.broken("it has files that its list has not")

    def _text(self, name: str) -> bytes:
        facts = self.list.files.get(name) if name != LIST else None
        if facts and facts[0] > _MOST_TEXT:
            raise self.broken(f"its {name} is too large")
        return b"".join(self._content(name, *(facts or ())))

    def _content(self, name: str, size: int = -1, crc: int = -1) -> Iterator[bytes]:
        """Yield the next file in chunks; a text (-1: of any checksum) has a bounded size."""
        try:
            entry = tarfile.TarInfo.frombuf(self._read(tarfile.BLOCKSIZE), "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError):
            raise self.broken(_DAMAGED) from None
        is_expected = entry.size == size if size >= 0 else entry.size <= _MOST_TEXT
        if not (entry.isreg() and entry.name == name and is_expected):
            raise self.broken(f"it has {entry.name!r}, where its list has {name}")
        actual = 0
        for start in range(0, entry.size, _CHUNK):
            content = self._read(min(_CHUNK, entry.size - start))
            actual = crc32(content, actual)
            yield content
        if actual != crc >= 0:
            raise self.broken(f"{name}: {OTHER_BYTES}")
        self._read(-entry.size % tarfile.BLOCKSIZE)

    def _read(self, size: int) -> bytes:
        try:
            content: bytes = self._stream.read(size)
        except (OSError, pa.ArrowException) as error:
            raise self.broken(f"{_DAMAGED} ({error})") from error
        if len(content) < size:
            raise self.broken("it ends too early")
        return content


def import_run(
    file: Path, workspace: Path, name: str | None = None, *, replaces: bool = False
) -> StoredRun:
    """Make a run from an archive, under the run's own name or another. Until all files of it are
    there and whole, the workspace is as it was.

    Raises: StoreBroken for a damaged archive; UseError if there is a run or a collection of that
    name; RunLocked, RunCollected, DiskFull, OSError.
    """
    with _open_archive(file) as stream:
        archive = _Archive(file, stream)
        has_log = archive.list.has_log
        if has_log and name not in (None, archive.list.run):
            raise UseError(
                f"{file} has the log of run '{archive.list.run}', and a collection keeps its name: "
                "leave out --as, or export the run without --with-log"
            )
        name = check_run_name(name or archive.list.run)
        with writing(workspace, name) as writer:
            of = Collected(workspace, name)
            _check_place(writer, of, archive, replaces=replaces)
            with _discarding_on_failure(writer, of):
                _extract_run(archive, writer, of)
            finish_import(of)
    return open_run(workspace, name)


def _open_archive(file: Path) -> BufferedReader:
    try:
        return file.open("rb")
    except OSError as error:
        raise UseError(f"{file} cannot be read: {cause_of(error)}") from error


def _check_place(writer: RunWriter, of: Collected, archive: _Archive, *, replaces: bool) -> None:
    """Raises: UseError if the archive may not become this run, or does not fit on the disk."""
    if (writer.stored or writer.broken) and not replaces:
        raise UseError(f"run '{of.run}' exists already; give another name (--as), or --replace")
    writer.check_owner("")
    if archive.list.has_log and of.folder.exists():
        raise UseError(
            f"{of.folder} has another log of run '{of.run}'; delete it first: "
            f"vizpub runs remove {of.run} --with-log"
        )
    size = sum(size for size, _ in archive.list.files.values())
    place = writer.directory.parent
    if size > (free := shutil.disk_usage(place).free):
        raise UseError(
            f"the run has {size:,} bytes, and {place} has {free:,} left: free some, or give "
            "another --workspace"
        )


@contextmanager
def _discarding_on_failure(writer: RunWriter, of: Collected) -> Iterator[None]:
    """Remove all new files if the block fails, unless the run was committed by then."""
    try:
        with as_errors_of_ours(writer.directory):
            yield
    except BaseException:
        named: set[Path] = set()
        with suppress(FileNotFoundError, StoreBroken):
            named = {
                writer.directory / name for name in read_manifest(writer.directory).directories
            }
        for folder in writer.handed_out - named:
            shutil.rmtree(folder, ignore_errors=True)
        finish_import(of)
        if not (named or writer.stored or writer.broken):
            shutil.rmtree(writer.directory, ignore_errors=True)
        raise


def _extract_run(archive: _Archive, writer: RunWriter, of: Collected) -> None:
    """Extract and check all files, then commit the run."""
    run, directory, has_log = archive.manifest(), writer.directory, archive.list.has_log
    tables = {name: str(Path(name).parent).removeprefix(f"{DATA}/") for name in run.directories}
    folders = {name: writer.fresh_directory(table) for name, table in tables.items()}
    durable.make_directory(directory)
    if not (writer.stored or writer.broken):
        (directory / IMPORTING).touch()
    for path in folders.values():
        path.mkdir(parents=True)
    journal, identity = directory / f"{JOURNAL}.json.new", of.imported / f"{IDENTITY}.new"
    places = {JOURNAL: journal, f"{_LOG}/{IDENTITY}": identity}
    parts_of_log = [of.imported, *(of.imported / name for name in ("log", "batches", "tokens"))]
    if has_log:
        shutil.rmtree(of.imported, ignore_errors=True)
        durable.make_directory(of.folder.parent)
        for path in parts_of_log:
            make_private(path)
    for name in [*archive.list.files][1:]:
        top, _, base = name.rpartition("/")
        place = folders[top] / base if top in folders else of.imported / name[len(_LOG) + 1 :]
        archive.extract(name, places.get(name, place))
    archive.check_end()
    run = moved_run(run, {name: str(to.relative_to(directory)) for name, to in folders.items()})
    run = replace(run, name=of.run, collection=run.collection if has_log else "")
    if damage := next(filter(None, damages(directory, run)), None):
        raise archive.broken(f"{damage.file}: {damage.why}")
    if has_log:
        if not (identity.is_file() and identity.read_bytes() == run.collection.encode()):
            raise archive.broken("its log is of another run")
        # Only a collection with an identity appears after a kill.
        files = (path for path in of.imported.rglob("*") if path.is_file())
        durable.sync(files, of.imported.parent, parts_of_log)
        durable.rename(identity, of.imported / IDENTITY)
        durable.sync_directory(of.imported)
    (directory / IMPORTING).unlink(missing_ok=True)
    log = journal.read_bytes() if journal.exists() else None
    writer.commit(run)  # which removes what a kill leaves, so the journal that was extracted, too
    if log is not None:
        with suppress(OSError):  # the run is whole without it
            (directory / JOURNAL).write_bytes(log)
