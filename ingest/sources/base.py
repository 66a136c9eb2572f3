"""The interface of sources: recognise files, read and fold them, and return observed tables.

A source turns foreign records into the *observed* tables below, in one job:

    recognises(head)           is this a file of the source, and in which encoding?
    reader(input)(split)       a split of a file → rows (vizpub.ingest.inputs.reader)
    make_fold(input)(rows)     the rows of each peer in order of time → tables
                               (vizpub.ingest.tasks.sink)
    describe(counted)          counts → the run's clock, and the facts that are unknown
    observe(run)               folded tables → observed tables, as texts of SQL

Observed tables hold the source's own strings for peers, topics and messages, and periods
that may touch or overlap; the pipeline assigns indices, and makes periods maximal and clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.clock import Clock

if TYPE_CHECKING:
    import pyarrow as pa

    from vizpub.analytics.steps import Step
    from vizpub.ingest.inputs.reader import InputSplit, SplitReader
    from vizpub.ingest.tasks.sink import Fold


Tallies = Sequence[RunCounts]
"""Counts of single tasks."""
_SHOWN = 80
Answer = TypeVar("Answer")
LOOK_AT = 50
"""Records at the beginning of a file that are inspected to recognise it."""
SEE_FORMATS = "the page Sources describes the formats: vizpub docs"
"""What to do about a file that cannot be read."""


def most_are(records: Iterable[bytes], is_ours: Callable[[bytes], bool]) -> bool:
    """Return True if most of the first records of a file belong to a source.

    One is not enough, as a text may quote a record. Not all are needed, as a rotated log may begin
    in the middle of a record.
    """
    answers = [bool(or_none(is_ours, record)) for record in islice(records, LOOK_AT)]
    return 2 * sum(answers) > len(answers)


def or_none(check: Callable[..., Answer], *arguments: Any) -> Answer | None:
    """Return the answer of a check of foreign bytes; null if it fails on them in any way, as bytes
    that it cannot decode are not its own.
    """
    with suppress(Exception):
        return check(*arguments)
    return None


def first_lines(head: bytes) -> list[bytes]:
    """Return the lines of the head of a file that are not blank, without byte order marks.

    The last line may be cut, and is left out unless it is the only one.
    """
    *complete, last = (line.removeprefix(BOM_UTF8) for line in head.split(b"\n"))
    return [line for line in complete if line.strip()] or [last]


@dataclass(frozen=True)
class SourceOptions:
    """Options of sources that a user may set."""

    interval_us: int | None = None
    """Length of a reporting interval; null = the source's own, or its default."""
    gap_tolerance: int = 0
    """Consecutive missing reports of a peer that are bridged."""
    only: str | None = None
    """The run, or the network, to read where the input holds several."""
    reporters_only: bool = False
    """Leave out peers that do not report themselves."""
    message_window: int | None = None
    """Intervals for which appends add to a message; null =
    vizpub.runstore.manifest.MESSAGE_WINDOW."""
    max_line: int | None = None
    """Most bytes of a line; null = vizpub.reports.compressed.MAX_LINE."""
    undirected: bool | None = None
    """Each row is a link either way; null = as the files say."""
    columns: str | None = None
    """The columns of delimited text, with commas between them; null = as the files say."""
    time_unit_us: int | None = None
    """Microseconds in the unit of times that are numbers; null = as the format says."""
    pattern: str | None = None
    """The content of a pattern file (vizpub.ingest.sources.lines.patterns)."""


@dataclass(frozen=True)
class RunDescription:
    """Facts that a source knows about the run as a whole."""

    clock: Clock
    protocol: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    epoch: str | None = None
    ended: bool = False
    """The source marks its end: open periods end after the last interval."""
    unknown: tuple[str, ...] = ()
    """Facts that the source does not report, as text for users; includes
    vizpub.model.run.DUPLICATES where it lists first arrivals only, and SAMPLED where it leaves out
    messages and topics.
    """
    notes: Mapping[str, int] = field(default_factory=dict)
    """Counts for the summary: repeated records, unknown fields, …"""
    totals: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The counts, as JSON values; an append adds to them."""


@dataclass(frozen=True)
class ObservedTables:
    """Observed tables, with the source's own names: each a text of SQL. A table that is null is
    *unknown*.

    peers          name                     (peers that report; others are added; may be repeated)
    names          as vizpub.ingest.tasks.fold.NAMES: every name in the tables that are known
    presence       peer, valid_from, valid_to
    links          src, dst, layer, topic?, valid_from, valid_to
    subscriptions  peer, topic, valid_from, valid_to
    roles          peer, role, topic?, valid_from, valid_to
    attributes     peer, key, value?, valid_from    (it holds until the next one of its key begins)
    traffic        peer, interval, and the columns of vizpub.model.tables.TRAFFIC
    control        peer, interval, kind, topic?, and the columns of vizpub.model.tables.CONTROL
    gauges         peer, interval, gauge, value
    publications   message, topic, publisher, interval, time_us?, tick, bytes?   (as reported)
    receptions     message, topic?, publisher?, peer, previous_hop?, time_us?, interval, tick,
                   arrival (orders those of a message, peer and tick), first?, hop?,
                   subscribed? (the peer to the topic then, where it says so itself),
                   after_idontwant?, before_idontwant?, by_iwant?
                   (as in vizpub.model.tables.RECEPTIONS)
    sizes          message, interval, tick, bytes                  (as those who received it say)
    rejections     message, topic?, peer, previous_hop?, time_us?, interval, tick, reason?
    unreported     peer, interval, receptions, subscriptions     (true = its report leaves them out)

    A text reads the folded tables: of a task `folded.links`, and of all tasks `whole.links`. What
    is in the tables `peers`, `names` and `presence` may come from all tasks. A column that a text
    leaves out is unknown. `functions` make what no text can, for the texts.

    Where publications are known there are rejections (an empty table where there were none, or
    where the run's description names them unknown).
    All names are strings; valid_from, valid_to, tick, time_us and arrival int64, interval and hop
    int32, value double, first and subscribed bool. `?` marks what may be null in a row.
    """

    peers: str
    names: str = "FROM folded.names"
    presence: str | None = None
    links: str | None = None
    subscriptions: str | None = None
    roles: str | None = None
    attributes: str | None = None
    traffic: str | None = None
    control: str | None = None
    gauges: str | None = None
    publications: str | None = None
    receptions: str | None = None
    sizes: str | None = None
    rejections: str | None = None
    unreported: str | None = None
    functions: tuple[Step, ...] = ()

    @property
    def known_tables(self) -> frozenset[str]:
        """Names of the tables that are known."""
        return frozenset(name for name, text in vars(self).items() if isinstance(text, str))


@dataclass(frozen=True)
class SourceInput:
    """The input that a source reads and folds."""

    files: Sequence[InputFile]
    options: SourceOptions
    count_first: Callable[[SplitReader], Tallies]
    """Runs a reader over all input and returns its counts, for sources that need them first."""
    counted: RunCounts | None = None
    """Earlier counts of the run; null = none."""

    @property
    def paths(self) -> list[str]:
        """Paths of the files."""
        return [file.path for file in self.files]


class Source(ABC):
    """An adapter for one format: a module or package of vizpub.ingest.sources. Stateless."""

    name: str
    """Its name for `--source`."""
    options: frozenset[str]
    """The names of the SourceOptions that it supports."""
    appendable: bool = False
    """Later input changes nothing in earlier intervals, except open periods."""
    joins: frozenset[str] = frozenset()
    """Sources whose files it reads beside its own, into the same run."""
    vague: frozenset[str] = frozenset()
    """Kinds of encoding that other texts may look like: such files count if they are named, or if
    the input has no others.
    """
    companions: frozenset[str] = frozenset()
    """Encodings of files that count only beside others of the source, and do not choose it."""
    carried: tuple[str, ...] = ()
    """Folded tables that a run keeps for appends."""
    every_layer: frozenset[str] | None = None
    """The layers that links of any file may have; null if files differ."""
    tables: Mapping[str, pa.Schema]
    """The schemas of the tables that the fold makes, by name. They include `quarantine` and, if the
    source is appendable, CARRIED.
    """

    settled: bool = False
    """Observed periods are maximal, and within the presence of their reporter."""

    @abstractmethod
    def recognises(self, path: str, head: bytes) -> str | None:
        """Return the encoding if the file belongs to the source, otherwise null. A sequence of
        records belongs to it if most of the first ones do.

        `head` is the first 64 KiB after decompression or, where no source recognises these, the
        first 50 lines. Called before anything is read, through `or_none`.
        """

    def read_name(self, path: str) -> str | None:
        """Return what the name of a file says of its content, so that files of equal content are
        no copies if it differs; null by default.
        """
        del path
        return None

    def near_miss(self, path: str, head: bytes) -> str | None:
        """Return the difference, as text for users, if a file is almost one of the source;
        otherwise null. By default this is a prefix before the object of each line.
        """
        lines = first_lines(head)
        starts = [line.find(b"{") for line in lines]
        bare = b"".join(line[at:] + b"\n" for line, at in zip(lines, starts, strict=True))
        if min(starts) > 0 and self.recognises(path, bare):
            prefix = lines[0][: starts[0]].decode("utf-8", "replace")
            return f"'{prefix[:_SHOWN]}' stands before the object of JSON in its lines: remove it"
        return None

    def layers(self, files: Sequence[InputFile]) -> frozenset[str] | None:
        """Return the possible layers of links in the files; null if only the records show them."""
        del files
        return self.every_layer

    @abstractmethod
    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return the splits of the files; a task reads one or more."""

    @abstractmethod
    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return a function that reads a split."""

    @abstractmethod
    def make_fold(self, source_input: SourceInput) -> Fold:
        """Create the fold from rows to `tables`. Without earlier counts it may make assumptions,
        which `is_refuted` checks.
        """

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if an assumption of the fold was wrong; then the input is folded again."""
        del fold, counted, options
        return False

    def find_reversal(
        self, counted: RunCounts, earlier: RunCounts, options: SourceOptions
    ) -> str | None:
        """Return the first record of the run that all counts judge differently than `earlier` ones,
        as text for users; null if there is none.
        """
        del counted, earlier, options
        return None

    def needs_old_states(self, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if a report may go on from a state of its peer (CARRIED) of any age, and not
        only from one within the gap tolerance.
        """
        del counted, options
        return True

    @abstractmethod
    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the counts of all tasks together."""

    @abstractmethod
    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Return the description of the run from all of its counts. Raises: InputError,
        UseError.
        """

    @abstractmethod
    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the observed tables of the run."""
