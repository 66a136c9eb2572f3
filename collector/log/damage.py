"""The end of a log, and damage of what was acknowledged.

A kill or a power cut leaves a torn tail: bytes that were never acknowledged, perhaps with whole
records, as blocks reach the disk in any order. It stays where it is, and the next segment begins
before it. A changed bit looks the same, but all before a proof was synced, and so was all before
the last segment: unreadable bytes there are damage. Then the collector accepts nothing, unless the
damage is passed.

Logs of older versions have no proofs. There a hole of zeros is what a power cut leaves; other
unreadable bytes before whole records are damage.
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
    proven_position,
    segments,
    whole_records,
)
from vizpub.runstore import durable

_HOLE = bytes(128)
"""More zeros than any record has, and fewer than a block that a power cut left out."""


@dataclass(frozen=True)
class DamagedRange:
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
class LogExamination:
    """A log as it is on disk."""

    end: int = 0
    """The position behind the last record."""
    damages: list[DamagedRange] = field(default_factory=list)
    torn: tuple[Path, int] | None = None
    """The segment whose tail was never acknowledged, and the bytes of the tail."""


def inspect_log(directory: Path) -> LogExamination:
    """Read a whole log, and return where it ends and what of it is damaged."""
    gaps, listed = records.gaps_in(directory), segments(directory)
    result = LogExamination(listed[0][0] if listed else 0)
    behind = [*(start for start, _ in listed[1:]), None]
    for (start, path), following in zip(listed, behind, strict=False):
        if result.end < start:
            if gaps.get(result.end) != start:
                result.damages.append(DamagedRange(path, result.end, start, 0))
            result.end = start
        result.damages += _damages_of_segment(path, start, following, gaps, result)
    return result


def _damages_of_segment(
    path: Path, start: int, following: int | None, gaps: dict[int, int], result: LogExamination
) -> Iterator[DamagedRange]:
    """Yield the damage of a segment, and move `result.end` to its end or to the next segment."""
    stored = content_of(path)
    content, most = stored.plain, start + stored.size if following is None else following
    while result.end < most:
        for record in whole_records(content, start, result.end - start):
            if record.end > most:
                break
            result.end = record.end
        if not stored.is_whole:  # even if all records look good, one of them is damaged
            result.end = start if result.end >= most else result.end
            if gaps.get(result.end) != most:
                yield DamagedRange(path, result.end, most, result.end - start)
            result.end = most
        if result.end >= most:
            return
        if (end := gaps.get(result.end)) is None:
            behind = next_whole(content, result.end - start + 1)
            end = most if behind is None or start + behind > most else start + behind
            is_open = following is None and path.suffix != ".gz"
            if is_open and not _was_synced(content, start, result.end):
                result.torn = path, len(content) - (result.end - start)
                return
            yield DamagedRange(path, result.end, end, result.end - start)
        result.end = end


def _was_synced(content: bytes, start: int, at: int) -> bool:
    """Return True if the bytes from here on, in the last segment, were perhaps acknowledged."""
    if (proof_end := proven_position(content, start, at - start)) is not None:
        return proof_end > at
    if any(record.kind == PROOF for record in whole_records(content, start, 0)):
        return False
    behind = next_whole(content, at - start)
    return behind is not None and _HOLE not in content[at - start : behind]


def prepare_log(directory: Path) -> LogExamination:
    """Prepare a log for further writing. Raises: LogDamaged if it is damaged."""
    segments(directory)  # all of them are files
    _finish_seals(directory)
    result = inspect_log(directory)
    if result.damages:
        more = f", and in {len(result.damages) - 1:,} more places" if result.damages[1:] else ""
        why = f"acknowledged reports cannot be read: {result.damages[0]}{more}"
        raise LogDamaged(str(directory), why, ADVICE)
    listed = segments(directory)
    if listed and result.end == listed[-1][0]:  # the next segment has the same name
        path = listed[-1][1]
        unused = (path.with_name(f"{path.name}.torn{number}") for number in count(1))
        durable.rename(path, next(one for one in unused if not one.exists()))
    elif listed and listed[-1][1].suffix != ".gz":
        durable.sync_file(listed[-1][1])  # a kill may leave whole records that are not synced
    durable.sync_directory(directory)
    return result


def leave_out_damage(directory: Path) -> list[DamagedRange]:
    """Leave damage out from now on; every byte stays. Returns the damaged ranges."""
    _finish_seals(directory)
    damages = inspect_log(directory).damages
    if damages:
        gaps = records.gaps_in(directory)
        records.keep_gaps(directory, gaps | {one.start: one.end for one in damages})
    return damages


def _finish_seals(directory: Path) -> None:
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
    """Return True if a sealed segment decompresses to this content."""
    stored = content_of(sealed)
    return stored.is_whole and stored.plain == content
