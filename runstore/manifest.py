"""run.json: the content of a run directory, and the state of its ingest.

The manifest is the commit point. It names the directories of every table; readers ignore
other directories, and the next writer removes them.

A table has one directory per ingest that added to it, and all rows of the files in the manifest are
valid. Where an append replaces rows, the files that had them are written again without.

Paths in a manifest are checked: they must lie below its own directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any
from zlib import crc32

import msgspec

from vizpub.model.clock import Clock
from vizpub.model.columns import Table
from vizpub.model.errors import OtherFormat, StoreBroken, UseError
from vizpub.model.own import OwnMetric, with_own
from vizpub.model.run import (
    AFTERWARDS,
    CAPABILITIES,
    DUPLICATES,
    Boundary,
    RunFacts,
    check_run_name,
)
from vizpub.model.tables import table
from vizpub.runstore import durable

NO_INPUT_YET = "its ingest stopped before the input was read"
NOT_IN_ITS_DIRECTORY = "it names files outside its directory"

FORMAT = "vizpub.store/5"
"""The number changes when readers need to handle run.json or the files differently."""
FILE = "run.json"
_COMMIT = "commit"
_NOT_YOURS = "ask its owner to let you read it, or use another workspace"
INPUTS = "inputs"
MESSAGE_WINDOW = 64
"""Intervals after its publication in which appends add to a message, unless the user says so."""
LATE = "late_records"
LATE_MESSAGES = "late_messages"
"""Notes that count records, and messages, of which something came after they were final."""
REACH = ("interval", "valid_to", "message")
"""Columns by which files are left out that cannot have the wanted rows."""


@dataclass(frozen=True)
class Cut:
    """The rows that an append leaves: those whose `column` is less than `below`."""

    column: str
    below: int


@dataclass(frozen=True)
class Since:
    """The rows whose `column` is at least `least`."""

    column: str
    least: int


@dataclass(frozen=True)
class StoredFile:
    """A Parquet file: name, number of rows, size in bytes, checksums."""

    name: str
    rows: int
    size: int
    crc: int | None = None
    """CRC-32 of the file; null in old manifests."""
    pages_end: int | None = None
    """In a large file, the offset where the pages end and the indexes and the footer begin."""
    end_crc: int | None = None
    """CRC-32 from `pages_end` on."""
    reach: dict[str, int] | None = None
    least: dict[str, int] | None = None
    """The greatest and the least value of each of the columns REACH; null in old manifests."""

    def greatest(self, column: str) -> float:
        """The greatest value of a column; infinite where it is not known."""
        if not self.rows:
            return -inf
        return inf if self.reach is None else self.reach.get(column, inf)


Files = tuple[StoredFile, ...] | None
"""The files of a directory; null in old manifests."""


@dataclass(frozen=True)
class Part:
    """A directory of a table, relative to the run's, and the number of its rows."""

    directory: str
    rows: int
    files: Files = None

    def reaching(self, since: Since) -> Part:
        """The part with those of its files that may have such rows."""
        if self.files is None:
            return self
        reaching = (file for file in self.files if file.greatest(since.column) >= since.least)
        return replace(self, files=tuple(reaching))


@dataclass(frozen=True)
class TableEntry:
    """The directories of a table, relative to the run's, and its number of rows."""

    directory: str
    """Written by the last ingest."""
    rows: int
    """Rows of all parts."""
    older: tuple[Part, ...] = ()
    """Parts of earlier ingests, the oldest first."""
    files: Files = None
    schema: str | None = None
    """The schema of a staged table, as Spark's JSON."""
    stage: str | None = None
    """The stage that wrote it last."""

    @property
    def newest(self) -> Part:
        """The part of the last ingest."""
        rows = self.rows - sum(part.rows for part in self.older)
        return Part(self.directory, rows, files=self.files)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, the oldest first."""
        return (*self.older, self.newest)


@dataclass(frozen=True)
class Change:
    """What a generation of a run changed."""

    of: str
    """The identity of the tables before."""
    boundary: Boundary


MOST_BOUNDARIES = 64
"""Boundaries that run.json keeps; a copy of an older generation is recreated."""


@dataclass(frozen=True)
class Manifest:
    """The content of run.json. Frozen: a stage makes a new one and commits it."""

    name: str
    source: str
    inputs: tuple[dict[str, Any], ...]
    """path, size, sha256, encoding, damage of each file that `carry` does not list; see
    vizpub.runstore.inputs."""
    options: dict[str, Any]
    """The user's options that change the tables."""
    attribute_files: tuple[dict[str, str], ...] = ()
    """path and sha256 of each side file of attributes."""
    own: tuple[OwnMetric, ...] = ()
    """The user's own metrics: further columns of the metrics tables."""
    collection: str = ""
    """The identity of the collection that makes it (vizpub.runstore.collection); empty = none
    does."""
    state: str = "ingesting"
    """'collecting' before the first input, 'ingesting' until every stage is done, 'complete'."""
    clock: Clock | None = None
    protocol: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    epoch: str | None = None
    ended: bool = False
    unknown: tuple[str, ...] = ()
    arrival_capabilities: tuple[str, ...] | None = None
    """Those of vizpub.model.run.CAPABILITIES that some arrival has; null = no arrivals."""
    notes: dict[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)
    """Which engine computed each metrics table, and whether exactly."""
    stages: tuple[str, ...] = ()
    """Stages done, in order."""
    tables: dict[str, TableEntry] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the packages that made it, for users."""
    formats: dict[str, int] = field(default_factory=dict)
    """The format number of each stage, which decides what can be resumed or appended to."""
    carry: dict[str, TableEntry] = field(default_factory=dict)
    """What is kept for appends: folded tables, and INPUTS, the files that came earlier."""
    totals: dict[str, Any] = field(default_factory=dict)
    """Counts to which an append adds; see Description.totals."""
    extends: str = ""
    """The identity of the run that this one appends to; empty = none."""
    replaces: str = ""
    """The identity of the run that it will replace, see identity_to_replace; empty = none."""
    boundary: Boundary | None = None
    """Known once the messages of an append are numbered."""
    generation: int = 0
    """How many appends the run has had."""
    open_from: int | None = None
    """The first interval of an open message; null = none is."""
    boundaries: tuple[Change, ...] = ()
    """The changes of the last generations, the newest last."""

    def definition(self, name: str) -> Table:
        """A table with the columns that it has in this run. Raises: UnknownName."""
        return with_own(table(name), self.own)

    let_go: dict[str, float] = field(default_factory=dict)
    """What an earlier run.json named and this one does not (vizpub.runstore.leftovers), and when
    the last one that did was replaced, in seconds since 1970; who reads that one may open it."""
    earlier_bytes: int = 0
    """Bytes of the files in INPUTS."""
    view: str = ""
    """The directory of what other programs see of it; empty = none. See vizpub.runstore.views."""

    @property
    def complete(self) -> bool:
        """Every stage is done."""
        return self.state == "complete"

    @property
    def is_grown(self) -> bool:
        """True if something was appended to it."""
        return self.generation > 0

    @property
    def final(self) -> int:
        """The last interval in which appends change only messages; if none, before the first."""
        assert self.clock is not None
        last = self.clock.last - int(self.options.get("gap_tolerance") or 0)
        return max(last, self.clock.first - 1)

    @property
    def settled(self) -> int:
        """The last interval whose messages appends do not change; before the first one likewise."""
        last = self.last_outside_window
        return last if self.open_from is None else min(last, self.open_from - 1)

    @property
    def last_outside_window(self) -> int:
        """The last interval whose messages are older than the window."""
        assert self.clock is not None
        window = self.options.get("message_window")
        last = self.final - (MESSAGE_WINDOW if window is None else int(window))
        return max(last, self.clock.first - 1)

    @property
    def input_size(self) -> tuple[int, int]:
        """The number of files that the run was made from, and their bytes."""
        earlier = self.carry[INPUTS].rows if INPUTS in self.carry else 0
        return earlier + len(self.inputs), self.earlier_bytes + sum(f["size"] for f in self.inputs)

    @property
    def facts(self) -> RunFacts:
        """The facts for readers. Raises: StoreBroken while the clock is unknown."""
        if self.clock is None:
            raise StoreBroken(self.name, NO_INPUT_YET, "the same vizpub ingest command resumes it")
        layers, reported = self.options.get("layers"), self.arrival_capabilities
        capabilities = {*(CAPABILITIES if reported is None else (DUPLICATES, *reported))}
        if "receptions" not in self.tables:
            capabilities = set()
        reports = {*self._directories_by_table(), *(capabilities - {*self.unknown})}
        return RunFacts(
            self.name,
            self.source,
            self.clock,
            self.protocol,
            self.parameters,
            self.seed,
            self.epoch,
            self.unknown,
            tuple(layers) if layers else None,
            self.identity,
            tuple(sorted(reports)),
            self.generation,
            self.own,
            self.final if self.is_grown else None,
            self.settled if self.is_grown else None,
        )

    @property
    def parts(self) -> Iterator[Part]:
        """The parts of all tables, and of what the next append needs."""
        return (p for entry in (*self.tables.values(), *self.carry.values()) for p in entry.parts)

    @property
    def directories(self) -> set[str]:
        """All directories in the manifest."""
        return {part.directory for part in self.parts}

    @property
    def identity(self) -> str:
        """A digest of the tables' directories, which are different for each ingest."""
        directories = {n: d for n, d in self._directories_by_table().items() if n not in AFTERWARDS}
        text = json.dumps(directories, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def _directories_by_table(self) -> dict[str, str]:
        """The directories of tables that are not staged, by name."""
        return {n: t.directory for n, t in self.tables.items() if not n.startswith("staged/")}

    def with_stage(self, stage: str, tables: dict[str, TableEntry], **changes: Any) -> Manifest:
        """The manifest after a stage: its tables named, the stage done."""
        entries = {name: replace(entry, stage=stage) for name, entry in tables.items()}
        return replace(
            self, stages=(*self.stages, stage), tables={**self.tables, **entries}, **changes
        )


# Threads read manifests. msgspec (0.22) crashes where two of them are the first to use a class.
msgspec.json.Decoder(Manifest)


def read_manifest(directory: Path, file: str = FILE, text: bytes | None = None) -> Manifest:
    """The manifest of a run directory; of that text, if it is given. Raises: StoreBroken,
    FileNotFoundError.
    """
    path = directory / file
    try:
        if text is None and path.exists() and not path.is_file():  # a pipe would hang, a device
            raise StoreBroken(str(path), "it is not a file")  # give text for ever
        raw = json.loads(path.read_bytes() if text is None else text)
        if (version := raw.pop("format")) != FORMAT:
            raise OtherFormat(
                str(path),
                f"written by another version of vizpub (format {version}; this one reads {FORMAT})",
                "ingest the run again, with --replace",
            )
        raw.pop(_COMMIT, None)
        if raw.pop("crc") != _crc(raw):
            raise StoreBroken(str(path), "its checksum does not match its text")
        if surprises := raw.keys() - {of.name for of in fields(Manifest)}:
            raise ValueError(f"unknown: {', '.join(sorted(surprises))}")
        return _check_paths(msgspec.convert(raw, Manifest))
    except FileNotFoundError:
        raise
    except OSError as error:
        advice = [_NOT_YOURS] if isinstance(error, PermissionError) else []
        raise StoreBroken(str(path), f"cannot be read: {error.strerror}", *advice) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UseError) as error:
        raise StoreBroken(str(path), f"not a manifest ({error})") from error


def manifest_in(directory: Path, text: bytes | None = None) -> Manifest:
    """The manifest of a run, which has the name of its directory, also where that was renamed or is
    a copy of another. Raises: as read_manifest; StoreBroken where no run can have that name.
    """
    manifest = read_manifest(directory, text=text)
    try:
        return replace(manifest, name=check_run_name(directory.name))
    except UseError as error:
        raise StoreBroken(str(directory), str(error), "rename the directory") from error


def write_manifest(directory: Path, manifest: Manifest, file: str = FILE) -> None:
    """Replace run.json atomically and durably: readers see the old or the new one."""
    durable.write(directory / file, manifest_text(manifest))


def manifest_text(manifest: Manifest, commit: str = "") -> str:
    """The text of run.json; with the identity of a commit, no other one has it."""
    content = json.loads(json.dumps(msgspec.to_builtins(manifest), allow_nan=False))
    content = {"format": FORMAT, **content, "crc": _crc(content)}
    content |= {_COMMIT: commit} if commit else {}
    return msgspec.json.format(json.dumps(content, ensure_ascii=False), indent=1) + "\n"


def _crc(content: dict[str, Any]) -> int:
    """The checksum of the manifest itself."""
    return crc32(json.dumps(content, sort_keys=True).encode())


def _check_paths(manifest: Manifest) -> Manifest:
    """Raises: ValueError, UseError where it names paths outside its directory."""
    check_run_name(manifest.name)
    for part in manifest.parts:
        names = [file.name for file in part.files or ()]
        if not all(map(_is_below, [part.directory, *names])) or any("/" in n for n in names):
            raise ValueError(f"{NOT_IN_ITS_DIRECTORY}: {part.directory} {names}")
    if manifest.view and not _is_below(manifest.view):
        raise ValueError(f"{NOT_IN_ITS_DIRECTORY}: {manifest.view}")
    return manifest


def _is_below(path: str) -> bool:
    """Return True if a path is relative, normalised and without `..`."""
    parts = path.split("/")
    return str(PurePosixPath(path)) == path and "\0" not in path and not {"", ".", ".."} & {*parts}
