"""What every source does: recognise its files, parse them, say what was observed.

A source turns foreign records into the *observed* tables below. A folded one (FoldedSource)
reads records, folds them by peer and describes the run by what was counted; the others take
three steps of Spark's:

    recognises(head)          is this file mine, and in which encoding?
    parse(spark, files)       records → staged tables and quarantine; the only step that reads input
    describe(staged)          a few small aggregates: the clock, the protocol, what cannot be known
    observe(staged, facts)    lazily, staged tables → observed tables

Observed tables hold the source's own strings for peers, topics and messages, and spans
that may touch or overlap; the pipeline makes them dense, maximal and clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ingest.files import Stamp
from model.clock import Clock

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


DUPLICATES_OF_MESSAGE = "duplicates of a message"
"""What a source cannot tell that lists first arrivals alone; see Description.unknown."""


@dataclass(frozen=True)
class InputFile:
    """A file to ingest, as the inventory found it."""

    path: str
    encoding: str
    """What the source recognised it as: 'json', 'protobuf', 'csv', …"""
    size: int
    sha256: str
    damage: str | None = None
    """Why only a part of it can be read (a truncated gzip); null = whole."""
    stamp: Stamp | None = field(default=None, compare=False, repr=False)
    """How it stood before it was looked at."""

    @property
    def told(self) -> dict[str, Any]:
        """What run.json says of it."""
        return {name: value for name, value in asdict(self).items() if name != "stamp"}


@dataclass(frozen=True)
class SourceOptions:
    """What the user may tell a source."""

    interval_us: int | None = None
    """Length of a reporting interval; null = the source's own, or its default."""
    gap_tolerance: int = 0
    """Missing reports of a peer that are bridged."""
    only: str | None = None
    """The run to take where the input holds several."""
    reporters_only: bool = False
    """Leave out peers that only others name."""
    max_line: int | None = None
    """Bytes of a line that is taken; null = ingest.compressed.MAX_LINE."""


@dataclass(frozen=True)
class Description:
    """What a source knows of the run as a whole."""

    clock: Clock
    protocol: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    epoch: str | None = None
    ended: bool = False
    """The source marks its end: what is alive in the last interval closes after it."""
    unknown: tuple[str, ...] = ()
    """What the source cannot tell, in words for people."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Counts for the summary: repeated records, unknown fields, …"""
    totals: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What was counted, as JSON has it: what an append adds to."""


@dataclass(frozen=True)
class Observed:
    """What was observed, by the source's own names. A table that is null is *unknown*.

    peers          key, reports, interval              (peers that report, and since when; others
                                                        are added)
    presence       peer, vf, vt
    links          src, dst, layer, topic?, vf, vt
    subscriptions  peer, topic, vf, vt
    roles          peer, role, topic?, vf, vt
    traffic        peer, interval, and the columns of model.tables.TRAFFIC
    publications   message, topic, publisher, interval, time_us?, tick       (as reported)
    receptions     message, topic?, publisher?, peer, previous_hop?, time_us?, interval, tick,
                   arrival (orders the arrivals at one peer), first?, hop?
    rejections     message, topic?, peer, previous_hop?, time_us?, interval, tick, reason?
    untold         peer, interval, receptions, subscriptions     (true = left open by its report)

    Where publications are known so are rejections (an empty table where there were none).
    All names are strings; vf, vt, tick, time_us and arrival
    int64, interval and hop int32, first bool. `?` marks what may be null in a row.
    """

    peers: DataFrame
    presence: DataFrame | None = None
    links: DataFrame | None = None
    subscriptions: DataFrame | None = None
    roles: DataFrame | None = None
    traffic: DataFrame | None = None
    publications: DataFrame | None = None
    receptions: DataFrame | None = None
    rejections: DataFrame | None = None
    untold: DataFrame | None = None


class Source(ABC):
    """An adapter. One module of ingest.sources each; stateless.

    It is a ParsedSource or, better, a FoldedSource (ingest.sources.folded).
    """

    name: str
    """The word for `--source`."""
    options: frozenset[str]
    """Names of the SourceOptions that it understands."""
    appendable: bool = False
    """What comes later changes nothing of what was, but what was open."""
    carried: tuple[str, ...] = ()
    """Tables that an append is to find, beside those of the run."""

    def peer_key(self, peer: Column) -> Column:
        """A peer's name in the observed tables → its key. The two differ where the names are
        an encoding that is dear to undo for every row.
        """
        return peer

    @abstractmethod
    def recognises(self, path: str, head: bytes) -> str | None:
        """The encoding, if a file of that name whose content begins with `head` is ours.

        `head` is the first 64 KiB after decompression. Called once per file, before
        anything is read.
        """


class ParsedSource(Source):
    """A source in three steps of Spark's."""

    @abstractmethod
    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """Staged tables by name, one of them `quarantine` (see model.tables).

        Raises: InputError, UseError where the input as a whole cannot be taken.
        """

    @abstractmethod
    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """The run as a whole. May run small jobs. Raises: InputError, UseError."""

    @abstractmethod
    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """The observed tables, lazily: no job is run here."""
