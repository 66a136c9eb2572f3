"""The request of an ingest: its input, the name of the run, and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from vizpub.ingest.inputs.files import ResolvedPath, find_files
from vizpub.ingest.inputs.inventory import check_source
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.model.errors import UseError
from vizpub.model.run import check_run_name
from vizpub.runstore.leftovers import SCRATCH

_OWN_FOLDERS = ("runs", "collected", "neo4j", SCRATCH)
"""Folders of a workspace that are no input of a folder around it."""
_TIGHTER = 10
"""A Parquet file is at least this many times smaller than compressed lines of the same content."""


@dataclass(frozen=True)
class IngestRequest:
    """The input, the name and the options of a run to make."""

    paths: tuple[str, ...]
    run: str
    workspace: Path
    source: str = "auto"
    options: SourceOptions = field(default_factory=SourceOptions)
    attributes: tuple[str, ...] = ()
    """Side files of attributes (vizpub.ingest.inputs.attributes)."""
    measuring: MeasurementOptions = field(default_factory=MeasurementOptions)
    replace: bool = False
    """Replace an existing run, whatever it was made from."""
    append: bool = False
    """Add files to an existing run that it was not made from yet."""
    settle: bool = True
    """If files cannot be added to the run as it is, rebuild it from all of them."""
    settles: tuple[int, int] | None = None
    """With `replace`: `paths` have all files of the run, which had that number and size."""
    keep: int | None = None
    """The intervals that the run keeps; null = all (vizpub.ingest.retention)."""
    collection: str = ""
    """The identity of the collection that makes the run; empty = none does."""
    keep_going: bool = False
    """Continue even if most records are refused."""
    master: str | None = None
    """Spark master; null = the environment's, or this machine."""
    profile: bool = False
    """Record processor time, memory, and what each step uses, too."""

    def __post_init__(self) -> None:
        """Raises: UseError for options that exclude each other, and an invalid run name."""
        check_run_name(self.run)
        if self.append and self.replace:
            raise UseError("--append adds to a run, --replace recreates it: give only one of them")

    @cached_property
    def resolved_paths(self) -> dict[str, ResolvedPath]:
        """Files to read, by path. Raises: UnknownName for an unknown source; InputError."""
        check_source(self.source, SOURCES)
        return find_files(self.paths, (str(self.workspace / folder) for folder in _OWN_FOLDERS))

    @property
    def size(self) -> int:
        """Bytes of input, with Parquet converted to the size of compressed lines."""
        files = dict(chain(*(resolved.files.items() for resolved in self.resolved_paths.values())))
        return sum(
            _TIGHTER * stamp.size if path.endswith(".parquet") else stamp.size
            for path, stamp in files.items()
        )
