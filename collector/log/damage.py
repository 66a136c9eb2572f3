"""Where a log ends, and whether what was acknowledged is damaged.

A kill or a power cut leaves a torn tail: what was never acknowledged, perhaps with whole records
in it, as blocks reach the disk in any order. It stays where it is, and the next segment begins
before it. A changed bit looks the same, but all before a proof was synced, and so was all before
the last segment: what cannot be read there is damage. Then nothing is taken, unless it is passed.

Logs from before there were proofs have none. There a hole of zeros is what a power cut leaves;
anything else that whole records follow is damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from vizpub.collector.log import records
from vizpub.collector.log.records import (
    ADVICE,
    PLAIN,
    PROOF,
    SEALED,
    LogDamaged,
    content_of,
    next_whole,
    proven,
    segments,
    whole,
)
from vizpub.runstore import durable

_HOLE = bytes(128)
"""Zeros that no record has. A block that a power cut left out has more."""


@dataclass(frozen=True)
class Damage:
    """A part of the log that cannot be read."""

    path: Path
    start: int
    end: int
    offset: int
    """Its first byte in the content of the segment."""

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged from byte {self.offset:,} of its content on "
            f"(positions {self.start:,} to {self.end:,} of the log)"
        )


@dataclass
class Examined:
    """A log as it is on disk."""

    end: int = 0
    """The position behind the last record."""
    damages: list[Damage] = field(default_factory=list)
    torn: tuple[Path, int] | None = None
    """The segment whose tail was never acknowledged, and the bytes of the tail."""


def examine(directory: Path) -> Examined:
    """Read all of a log."""
    gaps, known = records.gaps_in(directory), segments(directory)
    found = Examined(known[0][0] if known else 0)
    behind = [*(start for start, _ in known[1:]), None]
    for (start, path), following in zip(known, behind, strict=False):
        if found.end < start:
            if gaps.get(found.end) != start:
                found.damages.append(Damage(path, found.end, start, 0))
            found.end = start
        found.damages += _damages(path, start, following, gaps, found)
    return found


def _damages(
    path: Path, start: int, following: int | None, gaps: dict[int, int], found: Examined
) -> Iterator[Damage]:
    """Those of a segment; `found.end` is moved to where it ends, or to the next one."""
    found_in = content_of(path)
    content, most = found_in.plain, start + found_in.size if following is None else following
    while found.end < most:
        for record in whole(content, start, found.end - start):
            if record.end > most:
                break
            found.end = record.end
        if not found_in.is_whole:  # where each record looks good, one of them is not
            found.end = start if found.end >= most else found.end
            if gaps.get(found.end) != most:
                yield Damage(path, found.end, most, found.end - start)
            found.end = most
        if found.end >= most:
            return
        if (end := gaps.get(found.end)) is None:
            end = _end_of_damage(content, start, found.end, most)
            is_open = following is None and path.suffix != ".gz"
            if is_open and not _was_synced(content, start, found.end):
                found.torn = path, len(content) - (found.end - start)
                return
            yield Damage(path, found.end, end, found.end - start)
        found.end = end


def _end_of_damage(content: bytes, start: int, at: int, most: int) -> int:
    behind = next_whole(content, at - start + 1)
    return most if behind is None or start + behind > most else start + behind


def _was_synced(content: bytes, start: int, at: int) -> bool:
    """Whether what begins here, in the last segment, was perhaps acknowledged."""
    if (vouched := proven(content, start, at - start)) is not None:
        return vouched > at
    if any(record.kind == PROOF for record in whole(content, start, 0)):
        return False
    behind = next_whole(content, at - start)
    return behind is not None and _HOLE not in content[at - start : behind]


def check(directory: Path) -> Examined:
    """Make a log ready to be written on. Raises: LogDamaged where it is damaged."""
    segments(directory)  # all of them are files
    _end_seals(directory)
    found = examine(directory)
    if found.damages:
        more = f", and in {len(found.damages) - 1:,} more places" if found.damages[1:] else ""
        why = f"acknowledged reports cannot be read: {found.damages[0]}{more}"
        raise LogDamaged(str(directory), why, ADVICE)
    known = segments(directory)
    if known and found.end == known[-1][0]:  # the next segment has the same name
        _move_aside(known[-1][1])
    elif known and known[-1][1].suffix != ".gz":
        durable.sync_file(known[-1][1])  # a kill may leave whole records that are not synced
    durable.sync_directory(directory)
    return found


def go_past(directory: Path) -> list[Damage]:
    """Leave damage out from now on; every byte stays. Returns what is left out."""
    _end_seals(directory)
    found = examine(directory).damages
    if found:
        gaps = records.gaps_in(directory)
        records.keep_gaps(directory, gaps | {one.start: one.end for one in found})
    return found


def _move_aside(path: Path) -> None:
    """A segment of which nothing was acknowledged."""
    fresh = (path.with_name(f"{path.name}.torn{number}") for number in count(1))
    durable.rename(path, next(one for one in fresh if not one.exists()))


def _end_seals(directory: Path) -> None:
    """Remove what a kill left of a seal: half of a sealed segment, or the plain one beside it."""
    for half in directory.glob(f".*{SEALED}"):
        half.unlink()
    for plain in directory.glob(f"*{PLAIN}"):
        sealed = plain.with_name(f"{plain.name}.gz")
        with suppress(FileNotFoundError):
            if is_same(sealed, plain.read_bytes()):
                plain.unlink()
            else:
                durable.rename(sealed, sealed.with_name(f"{sealed.name}.damaged"))


def is_same(sealed: Path, content: bytes) -> bool:
    """Whether a sealed segment gives back this content."""
    found = content_of(sealed)
    return found.is_whole and found.plain == content
