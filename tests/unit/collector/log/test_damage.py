"""Damage of the log is told from what a power cut leaves, and no byte of either is removed."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.collecting import collector_in, header, serving
from tests.support.few import few
from tests.support.words import naming
from vizpub.collector.closing import ClosingRules
from vizpub.collector.collect import Collector, collect
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import damage
from vizpub.collector.log import log as log_module
from vizpub.collector.log import records as log
from vizpub.collector.log.log import ReportLog
from vizpub.collector.log.records import LogDamaged, proof
from vizpub.collector.place import CollectionPlace
from vizpub.collector.request import CollectRequest
from vizpub.collector.reservation import reserve
from vizpub.model.errors import StoreBroken
from vizpub.runstore import durable


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of logs are opened, and no power is cut here."""
    monkeypatch.setattr(durable, "_sync", lambda _: None)
    monkeypatch.setattr(log_module, "sync", lambda _: None)


@dataclass
class Sample:
    """A log, and what was acknowledged, as its writer was told."""

    directory: Path
    files: dict[str, bytes] = field(default_factory=dict)
    acknowledged: list[tuple[int, bytes]] = field(default_factory=list)
    """The position behind each line."""

    def restore(self) -> None:
        for path in self.directory.iterdir():
            path.unlink()
        for name, content in self.files.items():
            (self.directory / name).write_bytes(content)

    @property
    def lines(self) -> list[bytes]:
        return [line for _, line in self.acknowledged]


def sample(directory: Path, puts: int, segment: int) -> Sample:
    """Some lines at once, as many reporters send them, and messages."""
    found, rng = Sample(directory), random.Random(7)
    directory.mkdir()

    async def work() -> None:
        writer = ReportLog(directory, lambda: b'{"state": 1}', segment)

        async def put(number: int) -> None:
            line = b'{"report": %d}' % number
            one = log.report(number, line)
            packed = log.message(b"{}", one) if number % 5 == 4 else one
            await writer.put(packed, lambda end: found.acknowledged.append((end, line)))

        number = 0
        while number < puts:
            some = rng.choice((1, 1, 2, 3))
            await asyncio.gather(*map(put, range(number, number + some)))
            number += some
        await writer.aclose()

    asyncio.run(work())
    found.files = {path.name: path.read_bytes() for path in directory.iterdir()}
    return found


def flips(content: bytes, step: int) -> Iterator[tuple[int, bytes]]:
    """Copies with one bit changed."""
    for bit in range(0, 8 * len(content), step):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(changed)


def lines(directory: Path) -> list[bytes]:
    return [r.line for r in log.read_records(directory) if r.kind == log.REPORT]


def put(directory: Path, line: bytes) -> None:
    """As a collector that goes on."""

    async def work() -> None:
        writer = ReportLog(directory, lambda: b"{}")
        await writer.put(log.report(0, line), lambda _: None)
        await writer.aclose()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("segment", "step", "least"),
    few(
        [(10**6, 3, 500), (220, 11, 500), (10**6, 43, 35), (220, 111, 50)],
        [(10**6, 43, 35), (220, 111, 50)],
    ),
    ids=["one", "several", "some of one", "some of several"],
)
def test_changed_bit_loses_nothing_in_silence(
    tmp_path: Path, segment: int, step: int, least: int
) -> None:
    """Wherever it is: either all that was acknowledged is there, or the log is refused, and then
    every byte is still there, and what is undamaged is read past it.
    """
    made = sample(tmp_path / "log", 24, segment)
    assert (len(made.files) > 3) == (segment == 220)
    refused = 0
    for name, content in made.files.items():
        for bit, changed in flips(content, step):
            made.restore()
            path = made.directory / name
            path.write_bytes(changed)
            try:
                ReportLog(made.directory, lambda: b"{}")
            except LogDamaged:
                refused += 1
                assert path.read_bytes() == changed, (name, bit)
                gaps = damage.leave_out_damage(made.directory)
                assert {gap.path for gap in gaps} == {path}
                assert len(gaps) == 1
                left = lines(made.directory)
                assert set(left) <= set(made.lines), (name, bit)
                if path.suffix != ".gz":
                    assert left == [line for line in made.lines if line in left], (name, bit)
                assert path.suffix == ".gz" or len(left) >= len(made.lines) - 1, (name, bit)
                if bit % 64 == 0:
                    put(made.directory, b"after")
                    assert lines(made.directory) == [*left, b"after"]
                assert path.read_bytes() == changed, (name, bit)
                assert not damage.leave_out_damage(made.directory)
            else:
                assert lines(made.directory) == made.lines, (name, bit)
    print(refused, "refused")
    assert refused > least


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    made = sample(tmp_path / "log", 12, 10**6)
    ((name, content),) = made.files.items()
    at = content.index(b'{"report": 5}')
    changed = bytearray(content)
    changed[at] ^= 4
    (made.directory / name).write_bytes(changed)
    with pytest.raises(LogDamaged) as caught:
        ReportLog(made.directory, lambda: b"{}")
    begin = at - len(log.report(5, b""))
    assert f"{name} is damaged from byte {begin:,} of its content on" in str(caught.value)
    assert "--past-damage" in str(caught.value)


def test_power_cut_at_any_byte_is_a_torn_tail(tmp_path: Path) -> None:
    """Of what was written behind the last sync, each block is there or not."""
    made = sample(tmp_path / "log", 24, 10**6)
    ((name, content),) = made.files.items()
    ends = sorted({end for end, _ in made.acknowledged})
    path = made.directory / name
    for size in range(len(content) + 1):
        made.restore()
        path.write_bytes(content[:size])
        there = [line for end, line in made.acknowledged if end <= size]
        writer = ReportLog(made.directory, lambda: b"{}")
        assert lines(made.directory) == there, size
        assert writer.end <= size
    opening = len(log.encode_record(log.STATE, b'{"state": 1}'))
    for before, end in zip([opening, *ends], ends, strict=False):
        behind = before + len(proof(0))
        for hole in range(behind, end):
            made.restore()
            rest = bytes(hole - behind) + content[hole:end]
            path.write_bytes(content[:behind] + rest)
            ReportLog(made.directory, lambda: b"{}")
            left = lines(made.directory)
            assert left[: len(there := [x for e, x in made.acknowledged if e <= before])] == there


def test_hole_in_a_log_without_proofs_is_a_torn_tail(tmp_path: Path) -> None:
    """Blocks of its last write are missing, and whole records are behind them."""
    first = b"".join(log.report(n, b'{"report": %d}' % n) for n in range(200))
    whole = log.encode_record(log.STATE, b"{}") + first
    for begin in range(0, 4096, 512):
        path = tmp_path / f"{0:020}.log"
        path.write_bytes(whole[:begin] + bytes(512) + whole[begin + 512 :])
        found = damage.inspect_log(tmp_path)
        assert not found.damages, begin
        assert found.end <= begin
        assert found.torn


def test_log_without_proofs_is_read_and_its_damage_told(tmp_path: Path) -> None:
    """As collectors before these wrote it."""
    whole = log.encode_record(log.STATE, b"{}") + b"".join(log.report(n, b"line") for n in range(9))
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(whole)
    assert len(lines(tmp_path)) == 9
    assert ReportLog(tmp_path, lambda: b"{}").end == len(whole)
    path.write_bytes(whole[:-3])
    assert ReportLog(tmp_path, lambda: b"{}").torn
    changed = bytearray(whole)
    changed[60] ^= 1
    path.write_bytes(changed)
    with pytest.raises(LogDamaged):
        ReportLog(tmp_path, lambda: b"{}")


def test_sealed_segment_that_cannot_be_read_back_leaves_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(whole := log.report(0, b"line"))
    really = log_module.gzip.compress
    monkeypatch.setattr(log_module.gzip, "compress", lambda *a, **k: really(*a, **k)[:-9])
    with pytest.raises(OSError, match="does not contain what was written"):
        log_module.seal(path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [whole]
    path.with_name(f"{path.name}.gz").write_bytes(really(whole)[:-9])  # a kill, and then damage
    damage.prepare_log(tmp_path)
    assert path.read_bytes() == whole
    assert lines(tmp_path) == [b"line"]


def test_forged_proof_in_a_report_proves_nothing(tmp_path: Path) -> None:
    """A peer names any bytes in its line; a proof names its own place."""
    line = b'{"peer": "' + proof(10) + b'"}'
    path = tmp_path / f"{0:020}.log"
    whole = log.encode_record(log.STATE, b"{}") + proof(len(log.encode_record(log.STATE, b"{}")))
    path.write_bytes(whole + log.report(0, line)[:-1])
    assert damage.inspect_log(tmp_path).torn == (path, len(log.report(0, line)) - 1)


def collected(tmp_path: Path, count: int) -> tuple[Path, Intake]:
    """The log of an intake, which closes one interval."""

    async def work() -> Intake:
        place = CollectionPlace(tmp_path, "lab")
        place.make()
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        for interval in range(count):
            told = {"format": "vizpub.report/1", "peer": "a", "interval": interval}
            await intake.take([json.dumps(told).encode()])
        await intake._close(0)
        await intake.log.aclose()
        return intake

    intake = asyncio.run(work())
    return log.segments(intake.place.log)[0][1], intake


def test_collector_starts_past_damage_only_when_told_to(tmp_path: Path) -> None:
    """Here the state itself is damaged, with which its only segment begins."""
    path, before = collected(tmp_path, 3)
    changed = bytearray(path.read_bytes())
    changed[20] ^= 1
    path.write_bytes(changed)
    what, said = (
        CollectRequest(CollectionPlace(tmp_path, "lab"), limits=IntakeLimits(reserve=1)),
        list[str](),
    )
    with pytest.raises(LogDamaged):
        Collector(what, said.append)
    assert not said
    collector = Collector(
        CollectRequest(what.place, limits=what.limits, past_damage=True), said.append
    )
    assert "left out of the run" in said[0]
    assert "byte 0 of its content" in said[0]
    again = collector._intake
    assert again.header == before.header
    assert again.closing.newest == {"a": 2}
    assert again.closing.closed == 0
    assert Collector(what, said.append)._intake.closing.newest == {"a": 2}
    assert len(said) == 1


def test_log_that_is_damaged_meanwhile_takes_nothing(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        served.web.progress.damaged = "it cannot be read"
        code, told, answer = served.post(b"{}")
        assert (code, "damaged" in told["error"]) == (503, True)
        assert answer.headers["retry-after"]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000999999.log.gz"])
def test_segment_that_is_no_file_is_told(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    reserve(place)
    make(place.log / name)
    with pytest.raises(StoreBroken, match=naming(place.log / name)):
        collect(CollectRequest(place, limits=IntakeLimits(reserve=1)), print)
