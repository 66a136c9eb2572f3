"""run.json: what a run directory holds, and how far its making has come.

The manifest is the commit point. It names the directories of every table; a directory that
it does not name does not exist for any reader and is removed by the next writer.

A table has one directory for each ingest that added to it. What an older one wrote is never
written again: it counts up to a cut, and what was to be changed behind that is in a newer one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from model.clock import Clock
from model.errors import StoreBroken
from model.run import RunFacts

FORMAT = "vizpub.store/1"
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
    notes: dict[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)
    """Which engine computed each metrics table, and whether exactly."""
    stages: tuple[str, ...] = ()
    """Stages done, in order."""
    tables: dict[str, TableEntry] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the code that made it."""
    carry: dict[str, TableEntry] = field(default_factory=dict)
    """What an append needs to know beside the tables."""
    totals: dict[str, Any] = field(default_factory=dict)
    """What an append adds to; see Description.totals."""
    extends: str = ""
    """The identity of the run that this one is to take the place of; empty = of none."""
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
            raise StoreBroken(self.name, "its ingest stopped before the input was read")
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
            tuple(sorted(self._kept())),
        )

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
        return replace(
            self, stages=(*self.stages, stage), tables={**self.tables, **tables}, **changes
        )


def read_manifest(directory: Path, file: str = FILE) -> Manifest:
    """The manifest of a run directory. Raises: StoreBroken, FileNotFoundError."""
    path = directory / file
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw.pop("format") != FORMAT:
            raise StoreBroken(str(path), f"not of format {FORMAT}; ingest the run again")
        return _from_json(raw)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreBroken(str(path), f"not a manifest ({error})") from error


def write_manifest(directory: Path, manifest: Manifest, file: str = FILE) -> None:
    """Replace run.json at once: a reader sees the old one or the new one, whole."""
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1, ensure_ascii=False)
    fresh = directory / f"{file}.new"
    with fresh.open("w", encoding="utf-8") as out:
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(directory / file)
    _sync_directory(directory)


def _sync_directory(directory: Path) -> None:
    # Without it a power failure may bring the old name back.
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _from_json(raw: dict[str, Any]) -> Manifest:
    clock, boundary = raw.pop("clock"), raw.pop("boundary", None)
    tables, carry = raw.pop("tables"), raw.pop("carry", {})
    for key in ("inputs", "unknown", "skipped", "stages"):
        raw[key] = tuple(raw[key])
    return Manifest(
        clock=Clock(**clock) if clock else None,
        boundary=Boundary(**boundary) if boundary else None,
        tables={name: _entry(**entry) for name, entry in tables.items()},
        carry={name: _entry(**entry) for name, entry in carry.items()},
        **raw,
    )


def _entry(
    directory: str,
    rows: int,
    older: Sequence[dict[str, Any]] = (),
    files: Sequence[dict[str, Any]] | None = None,
    schema: str | None = None,
) -> TableEntry:
    return TableEntry(
        directory, rows, tuple(_part(**part) for part in older), _files(files), schema
    )


def _part(
    directory: str,
    rows: int,
    cut: dict[str, Any] | None,
    files: Sequence[dict[str, Any]] | None = None,
) -> Part:
    return Part(directory, rows, Cut(**cut) if cut else None, _files(files))


def _files(raw: Sequence[dict[str, Any]] | None) -> Files:
    return None if raw is None else tuple(StoredFile(**file) for file in raw)
