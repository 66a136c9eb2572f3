"""run.json: the content of a run directory, and the state of its ingest.

The manifest is the commit point. It names the directories of every table; a directory that
it does not name does not exist for any reader and is removed by the next writer.

A table has one directory for each ingest that added to it. What an older one wrote is never
written again: it counts up to a cut, and what was to be changed behind that is in a newer one.

A manifest is not believed: what it names must lie below its own directory.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any
from zlib import crc32

import msgspec

from model.clock import Clock
from model.errors import StoreBroken, UseError
from model.run import CAPABILITIES, DUPLICATES, RunFacts, check_run_name
from runstore import durable

FORMAT = "vizpub.store/4"
"""Its number changes with what a reader must know of run.json or of the files."""
FILE = "run.json"


@dataclass(frozen=True)
class Cut:
    """Which rows of a directory count: those whose `column` is less than `below`."""

    column: str
    below: int


@dataclass(frozen=True)
class StoredFile:
    """A Parquet file: its name, how many rows it has, and its bytes."""

    name: str
    rows: int
    size: int
    crc: int | None = None
    """CRC-32 of all of it; null where the manifest is older."""
    pages_end: int | None = None
    """Of a large file: where its pages end, and what says how to read them begins."""
    end_crc: int | None = None
    """CRC-32 from there on."""


Files = tuple[StoredFile, ...] | None
"""The files of a directory; null where the manifest is older than their list."""


@dataclass(frozen=True)
class Part:
    """A directory of a table, below the run's, and how many of its rows count."""

    directory: str
    rows: int
    cut: Cut | None = None
    """Null = all rows count."""
    files: Files = None

    def up_to(self, cut: Cut | None) -> Cut | None:
        """What is left to count if it is cut here too."""
        if cut is None or self.cut is None:
            return cut or self.cut
        return min(cut, self.cut, key=lambda one: one.below)


@dataclass(frozen=True)
class TableEntry:
    """Where a table lies, below the run's directory, and how many rows it has."""

    directory: str
    """What the last ingest wrote; all of its rows count."""
    rows: int
    """Of all parts."""
    older: tuple[Part, ...] = ()
    """What earlier ingests wrote, the oldest first."""
    files: Files = None
    schema: str | None = None
    """Of a staged table: its columns, as Spark writes them in JSON."""
    stage: str | None = None
    """Which stage wrote it last."""

    @property
    def newest(self) -> Part:
        """What the last ingest wrote."""
        rows = self.rows - sum(part.rows for part in self.older)
        return Part(self.directory, rows, files=self.files)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All of the table, the oldest first."""
        return (*self.older, self.newest)


@dataclass(frozen=True)
class Boundary:
    """Where what an append makes anew begins: all before stays as it is."""

    version: int
    """Versions that end at this tick or later."""
    interval: int
    """Measures of this interval or a later one."""
    message: int
    """What is known of this message or a later one."""


@dataclass(frozen=True)
class Manifest:
    """The content of run.json. Frozen: a stage makes a new one and commits it."""

    name: str
    source: str
    inputs: tuple[dict[str, Any], ...]
    """path, size, sha256, encoding, damage of every file."""
    options: dict[str, Any]
    """What the user chose that changes the tables."""
    state: str = "ingesting"
    """'ingesting' until every stage is done, then 'complete'."""
    clock: Clock | None = None
    protocol: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    epoch: str | None = None
    ended: bool = False
    unknown: tuple[str, ...] = ()
    arrivals_tell: tuple[str, ...] | None = None
    """Those of model.run.CAPABILITIES that some arrival has; null = nothing has arrived."""
    notes: dict[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)
    """Which engine computed each metrics table, and whether exactly."""
    stages: tuple[str, ...] = ()
    """Stages done, in order."""
    tables: dict[str, TableEntry] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the code that made it, for people."""
    formats: dict[str, int] = field(default_factory=dict)
    """The number of each stage's format: what may be gone on with or appended to."""
    carry: dict[str, TableEntry] = field(default_factory=dict)
    """What an append needs to know beside the tables."""
    totals: dict[str, Any] = field(default_factory=dict)
    """What an append adds to; see Description.totals."""
    extends: str = ""
    """The identity of the run that this one adds to; empty = of none."""
    replaces: str = ""
    """The digest of the run.json whose place this is to take; empty = of none."""
    boundary: Boundary | None = None
    """Known once the messages of an append are numbered."""

    @property
    def complete(self) -> bool:
        """Every stage is done."""
        return self.state == "complete"

    @property
    def facts(self) -> RunFacts:
        """The facts for readers. Raises: StoreBroken while the clock is not yet known."""
        if self.clock is None:
            raise StoreBroken(
                self.name,
                "its ingest stopped before the input was read",
                "the same vizpub ingest command resumes it",
            )
        layers = self.options.get("layers")
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
            tuple(sorted({*self._kept(), *self._capabilities})),
        )

    @property
    def _capabilities(self) -> set[str]:
        if "receptions" not in self.tables:
            return set()
        told = CAPABILITIES if self.arrivals_tell is None else (DUPLICATES, *self.arrivals_tell)
        return {*told} - {*self.unknown}

    @property
    def directories(self) -> set[str]:
        """Every directory that the manifest names."""
        entries = (*self.tables.values(), *self.carry.values())
        return {part.directory for entry in entries for part in entry.parts}

    @property
    def identity(self) -> str:
        """A digest of where the tables lie: no two ingests write into the same directories."""
        text = json.dumps(self._kept(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def _kept(self) -> dict[str, str]:
        """The directories of the tables that are there for readers."""
        return {n: t.directory for n, t in self.tables.items() if not n.startswith("staged/")}

    def with_stage(self, stage: str, tables: dict[str, TableEntry], **changes: Any) -> Manifest:
        """The manifest after a stage: its tables named, the stage done."""
        made = {name: replace(entry, stage=stage) for name, entry in tables.items()}
        return replace(
            self, stages=(*self.stages, stage), tables={**self.tables, **made}, **changes
        )


def read_manifest(directory: Path, file: str = FILE) -> Manifest:
    """The manifest of a run directory. Raises: StoreBroken, FileNotFoundError."""
    path = directory / file
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        found = raw.pop("format")
        if found != FORMAT:
            raise StoreBroken(
                str(path),
                f"written by another version of vizpub (format {found}; this one reads {FORMAT})",
                "ingest the run again, with --replace",
            )
        if raw.pop("crc") != _crc(raw):
            raise StoreBroken(str(path), "other text than what was written")
        if surprises := raw.keys() - {of.name for of in fields(Manifest)}:
            raise ValueError(f"unknown: {', '.join(sorted(surprises))}")
        return _checked(msgspec.convert(raw, Manifest))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreBroken(str(path), f"cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UseError) as error:
        raise StoreBroken(str(path), f"not a manifest ({error})") from error


def write_manifest(directory: Path, manifest: Manifest, file: str = FILE) -> None:
    """Replace run.json at once and for good: a reader sees the old one or the new one, whole."""
    told = asdict(manifest)
    told = json.loads(json.dumps(told))  # as it will be read
    told = {"format": FORMAT, **told, "crc": _crc(told)}
    durable.write(directory / file, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _crc(told: dict[str, Any]) -> int:
    """Of what a manifest says: a file that lists checksums needs one, too."""
    return crc32(json.dumps(told, sort_keys=True).encode())


def _checked(manifest: Manifest) -> Manifest:
    """Raises: ValueError, UseError where it names what is not below its directory."""
    check_run_name(manifest.name)
    entries = (*manifest.tables.values(), *manifest.carry.values())
    for part in (part for entry in entries for part in entry.parts):
        names = [file.name for file in part.files or ()]
        if not all(map(_is_below, [part.directory, *names])) or any("/" in n for n in names):
            raise ValueError(f"it names what is not in its directory: {part.directory} {names}")
    return manifest


def _is_below(path: str) -> bool:
    """Whether a path leads down, and is written in the one way there is."""
    parts = path.split("/")
    return str(PurePosixPath(path)) == path and "\0" not in path and not {"", ".", ".."} & {*parts}
