"""What the intake keeps on a full disk, and how a run ends."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.collecting import Options, Served, collector_in, header, serving
from tests.support.words import tells
from vizpub.collector.closing import ClosingRules
from vizpub.collector.inputs.kafka_message import KafkaMessage
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.making.batch import NONE, BatchBuilder
from vizpub.collector.place import CollectionPlace
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report, RunEnd

SIZE = 8 * 2**20
RESERVE = 2**20


@pytest.fixture
def disk() -> Iterator[Path]:
    with TemporaryDirectory(prefix="vizpub-disk-") as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "vizpub-disk", folder]
        if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
            pytest.skip("to mount a small disk takes root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, leave: int) -> Path:
    filler = disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk).free - leave))
    return filler


def post(served: Served, interval: int) -> int:
    """A report that is larger than what is left of a page of the disk."""
    told = {"format": "vizpub.report/1", "peer": "a", "interval": interval, "topics": ["t" * 5000]}
    return served.post(json.dumps(told).encode())[0]


def line(peer: str, interval: int) -> bytes:
    return json.dumps({"format": "vizpub.report/1", "peer": peer, "interval": interval}).encode()


def kept(served: Served) -> list[int]:
    return [json.loads(line)["interval"] for line in served.lines()]


def test_full_disk_refuses_reports_and_closes_in_the_reserve(disk: Path) -> None:
    options = Options(limits=IntakeLimits(reserve=RESERVE), rules=ClosingRules(lateness_s=0.0))
    with serving(collector_in(disk, options)) as served:
        assert post(served, 0) == 202
        filler = fill(disk, RESERVE // 2)
        assert post(served, 1) == 503
        served.run(served.web.intake.close_due())
        assert served.web.intake.closing.closed == 0
        filler.unlink()
        assert post(served, 1) == 202
        assert kept(served) == [0, 1]


def test_disk_without_a_byte_loses_nothing_acknowledged(disk: Path) -> None:
    """Somebody else fills it while reports come."""
    with serving(collector_in(disk, Options(limits=IntakeLimits(reserve=0)))) as served:
        assert post(served, 0) == 202
        filler = fill(disk, 0)
        codes = [post(served, interval) for interval in range(1, 9)]
        assert 503 in codes
        assert served.web.intake.log.failing == "No space left on device"
        filler.unlink()
        served.run(served.web.intake.probe())
        assert served.web.intake.log.failing is None
        codes += [post(served, 9)]
        taken = [n for n, code in enumerate(codes, 1) if code == 202]
        assert kept(served) == [0, *taken]
        assert taken[-1] == 9


def test_collection_at_its_size_asks_to_wait(tmp_path: Path) -> None:
    with serving(
        collector_in(tmp_path, Options(limits=IntakeLimits(disk=20_000, reserve=0)))
    ) as served:
        assert post(served, 0) == 202
        served.web.progress.disk = served.web.intake.place.size()
        assert post(served, 1) == 202
        for interval in range(2, 12):
            post(served, interval)
        served.web.progress.disk = served.web.intake.place.size()
        code, told, answer = served.post(b"{}")
        assert (code, "--max-disk" in told["error"]) == (503, True)
        assert answer.headers["retry-after"]


def test_end_that_comes_after_the_last_closing_ends_the_run(tmp_path: Path) -> None:
    """Reporters send it when all else is acknowledged, and then the interval may be closed."""
    with serving(collector_in(tmp_path, Options(rules=ClosingRules(lateness_s=0.0)))) as served:
        intake = served.web.intake
        assert post(served, 0) == 202
        served.run(intake.close_due())
        assert (intake.closing.closed, intake.ended) == (0, False)
        assert served.post(b'{"format": "vizpub.end/1", "last_interval": 0}')[0] == 202
        served.run(intake.close_due())
        assert intake.ended
        assert intake.ending.last == 0


@pytest.mark.parametrize("count", [1, 300, 2000])
def test_reports_taken_while_the_run_ends_are_in_it(tmp_path: Path, count: int) -> None:
    """In whatever turn of the event loop it comes; what comes later is refused."""

    async def work() -> None:
        place = CollectionPlace(tmp_path, "lab")
        place.make()
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        done = [await intake.take([line("a", 0)])]

        async def go_on() -> None:
            for interval in range(1, 12):
                some = (line(f"p{number}", interval) for number in range(count))
                done.append(await intake.take(some))

        async def end() -> None:
            await asyncio.sleep(0.01)
            await intake.end()

        await asyncio.gather(end(), *(go_on() for _ in range(3)))
        await intake.log.aclose()
        batch = BatchBuilder(place.log, NONE).next(intake.closed_at, tmp_path)
        assert batch
        found = [one.record for one in ReportReader(tmp_path / batch.name)]
        taken = sum(one.accepted for one in done)
        assert sum(isinstance(one, Report) for one in found) == taken
        assert found[-1] == RunEnd(batch.closed, "lab")
        late = await intake.take([line("a", 0)])
        assert (late.accepted, late.refusals[0]["reason"]) == (0, "the run has ended")

    asyncio.run(work())


def test_reports_behind_a_marked_end_are_in_the_run(tmp_path: Path) -> None:
    """Other reporters go on until the marked interval is closed."""

    async def work() -> None:
        place = CollectionPlace(tmp_path, "lab")
        place.make()
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        await intake.take([line("a", 3), b'{"format": "vizpub.end/1", "last_interval": 3}'])
        assert (await intake.take([line("b", 4)])).accepted == 1
        await intake.end()
        await intake.log.aclose()
        batch = BatchBuilder(place.log, NONE).next(intake.closed_at, tmp_path)
        assert batch
        found = [one.record for one in ReportReader(tmp_path / batch.name)]
        assert [one.interval for one in found if isinstance(one, Report)] == [3, 4]
        assert found[-1] == RunEnd(4, "lab")

    asyncio.run(work())


@pytest.mark.parametrize("last", [2, 20, 2**31 - 2])
def test_end_before_the_reports_or_far_behind_them_is_refused(tmp_path: Path, last: int) -> None:
    mark = f'{{"format": "vizpub.end/1", "last_interval": {last}}}'.encode()
    with serving(collector_in(tmp_path)) as served:
        _, told, _ = served.post(line("a", 3) + b"\n" + mark)
        assert (told["taken"], told["lines"][0]["line"]) == (1, 2)
        tells(told["lines"][0]["reason"], f"interval {last}")


def test_messages_are_taken_with_their_offsets_and_counted_alike_after_a_kill(
    tmp_path: Path,
) -> None:
    """A collector that goes on where another was killed knows what that one took and refused."""
    good = [json.dumps({"format": "vizpub.report/1", "peer": "a", "interval": i}) for i in range(3)]
    messages = [
        KafkaMessage.of(("reports", "id"), 0, 5, f"{good[0]}\nno report\n{good[1]}".encode()),
        KafkaMessage.of(("reports", "id"), 3, 0, b""),
        KafkaMessage.of(("reports", "id"), 0, 9, good[2].encode()),
    ]
    with serving(collector_in(tmp_path)) as served:
        intake = served.web.intake
        done = asyncio.run_coroutine_threadsafe(intake.take_messages(messages), served.loop)
        assert [one.to_json() for one in done.result(20)] == [
            {
                "taken": 2,
                "late": 0,
                "refused": 1,
                "lines": [{"line": 2, "reason": "not JSON"}],
            },
            {"taken": 0, "late": 0, "refused": 0, "lines": []},
            {"taken": 1, "late": 0, "refused": 0, "lines": []},
        ]
        assert [line.decode() for line in served.lines()] == good
        counts, read = dict(intake.counts), dict(intake.positions)
    assert read == {"kafka:reports/id/0": 10, "kafka:reports/id/3": 1}
    with serving(collector_in(tmp_path)) as served:
        assert served.web.intake.positions == read
        assert dict(served.web.intake.counts) == counts == {"reports": 3, "refused": 1}


def test_peer_with_a_name_of_any_length_is_refused(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        _, told, _ = served.post(line("é" * 512, 0) + b"\n" + line("é" * 512 + "x", 0))
        assert (told["taken"], told["refused"]) == (1, 1)
        tells(told["lines"][0]["reason"], "1,025 bytes", "1,024", "--max-name")


def test_folder_that_is_moved_for_a_moment_ends_nothing(tmp_path: Path) -> None:
    """Nor does a system that has no more files to open it with."""
    with serving(collector_in(tmp_path)) as served:
        place = served.web.intake.place
        size = place.size()
        moved = place.batches.rename(tmp_path / "elsewhere")
        assert place.size() == size
        moved.rename(place.batches)
        folder = place.folder.rename(tmp_path / "elsewhere")
        assert (place.size(), place.free()) == (0, 0)
        assert served.post(line("a", 0))[0] == 503
        folder.rename(place.folder)
        assert served.post(line("a", 0))[0] == 202


def test_refused_names_of_any_length_leave_the_progress_short(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        for letter in "abc":  # of a megabyte each
            assert served.post(line(letter * 900_000, 0))[1]["taken"] == 0
        told = served.ask("GET", "/v1/runs/lab")[1]
        assert len(json.dumps(told)) < 10_000
        assert sorted(name[0] for name in told["progress"]["refused_peers"]) == ["a", "b", "c"]
