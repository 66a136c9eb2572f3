"""A collection that has the name of its run, and a run that stands in for what it collects."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.tables import EMPTY, add, links
from vizpub.collector.place import CollectionPlace
from vizpub.runstore import durable
from vizpub.runstore.collection import Collected
from vizpub.runstore.manifest import Manifest, read_manifest
from vizpub.runstore.writer import RunWriter, writing

LAB = replace(EMPTY, name="lab", source="reports")


@dataclass
class Reserved:
    """A collection of run `lab` that somebody reported to."""

    workspace: Path

    def __post_init__(self) -> None:
        self.of = Collected(self.workspace, "lab")
        CollectionPlace(self.workspace, "lab").make()
        self.of.identify()
        with self.writer(collects=True) as writer:
            writer.reserve(self.of.identity)
        durable.write(self.of.batches / "1", "told")

    def writer(self, *, collects: bool = False) -> AbstractContextManager[RunWriter]:
        return writing(self.workspace, "lab", collects=collects)

    @property
    def made(self) -> Manifest:
        """The run of its collector, before the first stage."""
        return replace(LAB, collection=self.of.identity)

    def append(self, **changes: object) -> None:
        with self.writer(collects=True) as writer:
            writer.begin(self.made)
            add(writer, "versions", "links", links(9, seed=1), state="complete", **changes)

    @property
    def stored(self) -> Manifest:
        return read_manifest(self.workspace / "runs/lab")
