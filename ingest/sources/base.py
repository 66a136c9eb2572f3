"""What every source does: recognise its files, read and fold them, say what was observed.

A source turns foreign records into the *observed* tables below, in one job:

    recognises(head)           is this file mine, and in which encoding?
    reader(files)(split)       what a split of a file holds, as rows (ingest.reader)
    fold(files)(rows)          the rows of each peer in order of time → tables (ingest.sink)
    describe(counted)          by what was counted on the way: the clock, what cannot be known
    observe(tables, run)       lazily, those tables → observed tables

Observed tables hold the source's own strings for peers, topics and messages, and spans
that may touch or overlap; the pipeline makes them dense, maximal and clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ingest.files import InputFile
from ingest.fold import Counted
from model.clock import Clock

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ingest.reader import Read, Split
    from ingest.sink import Fold


Tallies = Sequence[Counted]
"""What single tasks have counted."""
_LOOK_AT = 50
"""Records at the beginning of a file that are looked at to recognise it."""


def most_are(records: Iterable[bytes], is_ours: Callable[[bytes], bool]) -> bool:
    """Whether most of the first records of a file are a source's. One is not enough: a text may
    quote it. Not all need to be: a log that was rotated may begin in the middle of one.
    """
    answers = [is_ours(record) for record in islice(records, _LOOK_AT)]
    return 2 * sum(answers) > len(answers)


def first_lines(head: bytes) -> list[bytes]:
    """Those of a file that begins so, but for blank ones. The last may be cut off by the end of
    the head, and is left out unless it is the only one.
    """
    *whole, last = head.split(b"\n")
    return [line for line in whole if line.strip()] or [last]


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
    """Leave out peers that do not report themselves."""
    max_line: int | None = None
    """Bytes of a line that is taken; null = ingest.reports.compressed.MAX_LINE."""


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
    """What the source cannot tell, in words for people; model.run.DUPLICATES, where it lists
    first arrivals alone.
    """
    notes: Mapping[str, int] = field(default_factory=dict)
    """Counts for the summary: repeated records, unknown fields, …"""
    totals: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What was counted, as JSON has it: what an append adds to."""


@dataclass(frozen=True)
class Observed:
    """What was observed, by the source's own names. A table that is null is *unknown*.

    peers          name, is_reporter, interval         (peers that report, and since when; others
                                                        are added)
    names          as ingest.fold.NAMES: every name that stands in those tables that are known
    presence       peer, valid_from, valid_to
    links          src, dst, layer, topic?, valid_from, valid_to
    subscriptions  peer, topic, valid_from, valid_to
    roles          peer, role, topic?, valid_from, valid_to
    traffic        peer, interval, and the columns of model.tables.TRAFFIC
    publications   message, topic, publisher, interval, time_us?, tick       (as reported)
    receptions     message, topic?, publisher?, peer, previous_hop?, time_us?, interval, tick,
                   arrival (orders those of a message, peer and tick), first?, hop?,
                   subscribed? (the peer to the topic then, where it says so itself)
    rejections     message, topic?, peer, previous_hop?, time_us?, interval, tick, reason?
    untold         peer, interval, receptions, subscriptions     (true = left open by its report)

    Where publications are known so are rejections (an empty table where there were none).
    All names are strings; valid_from, valid_to, tick, time_us and arrival
    int64, interval and hop int32, first and subscribed bool. `?` marks what may be null in a row.
    """

    peers: DataFrame
    names: DataFrame
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
    """An adapter. One module or package of ingest.sources each; stateless."""

    name: str
    """The word for `--source`."""
    options: frozenset[str]
    """Names of the SourceOptions that it understands."""
    appendable: bool = False
    """What comes later changes nothing of what was, but what was open."""
    carried: tuple[str, ...] = ()
    """Tables that an append is to find, beside those of the run."""
    tables: Mapping[str, pa.Schema]
    """What the fold makes, by name; `quarantine` and, where more can be appended, CARRIED are
    among them.
    """

    settled: bool = False
    """The spans of the observed tables are maximal, and within the presence of whoever tells."""

    @abstractmethod
    def recognises(self, path: str, head: bytes) -> str | None:
        """The encoding, if a file of that name whose content begins with `head` is ours: of one
        that is a sequence of records, if most of the first ones are.

        `head` is the first 64 KiB after decompression. Called once per file, before
        anything is read.
        """

    def layers(self, files: Sequence[InputFile]) -> frozenset[str] | None:
        """The layers that links of the files may have; null where only their records say."""
        del files
        return None

    @abstractmethod
    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """What is read by one task each."""

    @abstractmethod
    def reader(
        self, files: Sequence[InputFile], options: SourceOptions, tallies: Callable[[Read], Tallies]
    ) -> Read:
        """What reads a split. `tallies` reads all of the input for what its reader counts, where
        that must be known before.
        """

    @abstractmethod
    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> Fold:
        """What makes `tables` of rows, and then tells what it counted. By what was `counted` of the
        run before; where nothing was, it may assume what `is_refuted` looks at.
        """

    def is_refuted(self, fold: Fold, counted: Counted, options: SourceOptions) -> bool:
        """Whether the fold assumed what is not so: the input is folded again."""
        del fold, counted, options
        return False

    @abstractmethod
    def tallied(self, told: Tallies) -> Counted:
        """What was counted by all tasks."""

    @abstractmethod
    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """The run as a whole; `before` was counted of the run that is appended to.

        Raises: InputError, UseError.
        """

    @abstractmethod
    def observe(
        self, tables: Mapping[str, DataFrame], run: Description, options: SourceOptions
    ) -> Observed:
        """The observed tables, lazily: no job is run here."""
