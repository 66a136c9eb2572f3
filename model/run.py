"""The facts of a run, in run.json and on its Neo4j node."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.model.wording import join_names

if TYPE_CHECKING:
    from vizpub.model.own import OwnMetric  # which imports Arrow

NO_DATA = "has no data on"

NO_NAME_OF_A_RUN = "cannot name a run"

DUPLICATES, PREVIOUS_HOPS, HOPS, TIMES, PUBLICATION_TIMES, AUDIENCE = CAPABILITIES = (
    "duplicates of a message",
    "previous hops",
    "hops",
    "times of receptions",
    "times of publications",
    "eligible peers of a message",
)
"""All that may be known about the messages of a run in addition to its tables. Without the first,
only first arrivals are reported; without another one, no arrival has it. `RunFacts.known` has
those of a run.
"""
SAMPLED = "messages and topics outside the sample that the source keeps"
"""What a source does not know that lists a sample of all messages: counts over messages are unknown
then, and those of one message are not."""
AFTERWARDS = frozenset({"metrics/percolation"})
"""Tables that are computed from the others on request. They are not part of the run's identity, and
its copy in Neo4j does not have them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+")
"""A path that was a URI: pathlib turns its two slashes into one."""


def check_workspace(workspace: Path) -> None:
    """Check that a folder's name is no URI: as a path it would be another folder than the user
    means.

    Raises: UseError.
    """
    if match := _URI.match(str(workspace)):
        kind, rest = match[1], str(workspace)[match.end() :]
        advice = (
            f"give its path: /{rest}"
            if kind.lower() == "file"
            else f"write s3://{rest}"
            if kind.lower() in ("s3", "s3a", "s3n")
            else "runs in other stores are not supported; mount it, or copy the runs"
        )
        wanted = "a workspace is a folder, s3://BUCKET/PREFIX or hdfs://HOST:PORT/PATH"
        raise UseError(f"{wanted}, and {address_of(workspace)} is none of them: {advice}")


def address_of(workspace: Path | str) -> str:
    """Return a workspace as users write it: with both slashes of a URI, of which pathlib drops
    one.
    """
    return _URI.sub(r"\1://", str(workspace), count=1)


def check_run_name(name: str) -> str:
    """Return the name itself. Raises: UseError if it is not valid for a run."""
    if not _NAME.fullmatch(name):
        raise UseError(
            f"'{name[:120]}' {NO_NAME_OF_A_RUN}; use letters, digits, '.', '_' and '-', "
            "a letter or digit first, at most 100"
        )
    return name


@dataclass(frozen=True)
class Boundary:
    """The beginning of the rows that an append replaces; all rows before it remain."""

    period: int
    """Validity periods that end at this tick or later."""
    interval: int
    """Metrics of this interval or a later one."""
    message: int
    """Rows of this message or a later one."""
    least_message: int = 0
    """The least message in rows of `interval` or later."""

    def least(self, other: Boundary) -> Boundary:
        """Return the boundary of two appends together: the earlier one of each kind."""
        return Boundary(
            min(self.period, other.period),
            min(self.interval, other.interval),
            min(self.message, other.message),
            min(self.least_message, other.least_message),
        )


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run. `unknown` lists what its source does not report, as text for users."""

    name: str
    source: str
    clock: Clock
    protocol: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    epoch: str | None = None
    """Wall time of tick 0, ISO 8601 in UTC; null where unknown."""
    unknown: tuple[str, ...] = ()
    layers: tuple[str, ...] | None = None
    """Layers that the overlay metrics count; null = all."""
    tables: str = ""
    """The identity of its tables, which changes with them; empty = unknown."""
    known: tuple[str, ...] | None = None
    """The tables it has, even if empty, and those of CAPABILITIES; null = unknown."""
    generation: int = 0
    """The number of appends."""
    own: tuple[OwnMetric, ...] = ()
    """The user's own metrics, as run.json lists them."""
    final: int | None = None
    """The last interval in which appends change nothing but messages; null = without appends."""
    settled: int | None = None
    """The last interval whose messages no append changes; null = without appends."""

    def provisional(self, interval: int | None = None) -> str:
        """Describe an answer about messages that were published up to an interval (null = to the
        end) if it is provisional; empty if no append changes it.
        """
        last = self.clock.last if interval is None else min(interval, self.clock.last)
        if self.settled is None or last <= self.settled:
            return ""
        which = f"messages published after interval {self.settled}"
        if self.settled < self.clock.first:
            which = "all messages"
        return f"{which} are provisional: input that is appended may add to them"

    @property
    def is_sample(self) -> bool:
        """True if its source lists a sample of messages and topics."""
        return SAMPLED in self.unknown

    def knows(self, name: str) -> bool:
        """Return True if its source reports a table, or one of CAPABILITIES."""
        return self.known is None or name in self.known

    def check_known(self, *names: str) -> None:
        """Check that the run's source reports these: without them an answer would be empty or 0, as
        if there were none. Raises: UseError.
        """
        if reason := self.explain_missing(*names):
            raise UseError(reason)

    def explain_missing(self, *names: str) -> str | None:
        """Say why an answer that needs these is unknown; null if the run's source reports them."""
        missing = [name for name in names if not self.knows(name)]
        if later := sorted(AFTERWARDS.intersection(missing)):
            command = f"vizpub metrics {self.name} {later[0].removeprefix('metrics/')}"
            return f"run '{self.name}' has no {later[0]} yet; make it with: {command}"
        if not missing:
            return None
        return f"run '{self.name}' {NO_DATA} {join_names(missing)}: its source does not report " + (
            "them" if len(missing) > 1 else "this"
        )
