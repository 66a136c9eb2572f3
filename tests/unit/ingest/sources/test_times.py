"""Outliers among the times of an input: what one wrong clock gives, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.events import at
from tests.support.staged import staged
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.sources.deliveries import Deliveries
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.libp2p.events import EventType
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.sources.times import ALONE, GAP, MOST_INTERVALS, TOO_FAR, RecordTimes, TimePart

Record = tuple[int, str | None]


def seen(records: Iterable[Record], gap: int = GAP) -> RecordTimes:
    times = RecordTimes(gap)
    for line, (time, peer) in enumerate(records, 1):
        times.see(time, peer, "f", line)
    return times


def refused(records: list[Record]) -> dict[int, str]:
    """The lines that are outliers, and why."""
    outliers = seen(records).outliers(1)
    whys = {line: outliers.why(time) for line, (time, _) in enumerate(records, 1)}
    return {line: why for line, why in whys.items() if why}


def crowd(begin: int, length: int = 100) -> list[Record]:
    """Three peers log one after another."""
    return [(begin + time, "abc"[time % 3]) for time in range(length)]


def naive_parts(records: list[Record], gap: int) -> list[TimePart]:
    told = sorted((time, line, peer) for line, (time, peer) in enumerate(records, 1))
    groups = [[told[0]]]
    for one in told[1:]:
        if one[0] - groups[-1][-1][0] <= gap:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [
        TimePart(
            *(group[0][0], group[-1][0], "f", group[0][1]),
            group[0][2] if len({peer for *_, peer in group}) == 1 else None,
            len(group),
        )
        for group in groups
    ]


@pytest.mark.parametrize("seed", range(30))
def test_parts_are_those_of_sorted_times_however_they_are_read(seed: int) -> None:
    draw = random.Random(seed)
    records = [(draw.randrange(400) * draw.choice((1, 10)), draw.choice("ab")) for _ in range(60)]
    gap = draw.choice((3, 20, 50))
    wanted = naive_parts(records, gap)
    assert seen(records, gap).parts == wanted
    tasks = [RecordTimes(gap) for _ in range(3)]
    for line, (time, peer) in enumerate(records, 1):
        draw.choice(tasks).see(time, peer, "f", line)
    together = RecordTimes.of(RecordTimes.together(task.plain for task in tasks))
    assert together.parts == wanted


def test_more_parts_than_are_kept_are_joined_and_none_is_lost() -> None:
    records = [(GAP * number**2, None) for number in range(2500)]
    random.Random(1).shuffle(records)
    parts = seen(records).parts
    assert 1 < len(parts) <= 1000
    assert sum(part.records for part in parts) == 2500
    assert (parts[0].first, parts[-1].last) == (0, GAP * 2499**2)


def test_peer_alone_in_time_is_refused_where_others_agree() -> None:
    late = [(5 * GAP, "a"), (5 * GAP + 1, "a")]
    assert refused(crowd(0) + late) == {101: ALONE, 102: ALONE}
    assert not refused([*crowd(0), (GAP + 99, "a")])
    assert refused([*crowd(0), (GAP + 100, "a")]) == {101: ALONE}


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(crowd(0) + crowd(5 * GAP, 4), id="several peers are late together"),
        pytest.param([(t * 2 * GAP, "abc"[t % 3]) for t in range(100)], id="sparse"),
        pytest.param(crowd(0) + [(5 * GAP + t, "a") for t in range(12)], id="a tenth or more"),
        pytest.param([(t, "a") for t in range(50)] + [(5 * GAP, "a")], id="one clock"),
        pytest.param([(t, None) for t in range(50)] + [(5 * GAP, None)], id="no peer's clock"),
        pytest.param(crowd(0, 60) + crowd(2 * MOST_INTERVALS, 40), id="two campaigns"),
        pytest.param([(0, "a"), (2 * MOST_INTERVALS, "b")], id="one of two"),
    ],
)
def test_sound_times_are_not_refused(records: list[Record]) -> None:
    assert not refused(records)


def test_empty_stretches_are_counted_where_they_end() -> None:
    notes = seen(crowd(0) + crowd(5 * GAP, 40)).empty(1)
    assert notes == {"empty intervals before f, line 101": 5 * GAP - 100}
    many = seen([(t * 2 * GAP, "a") for t in range(10)]).empty(1)
    assert list(many.values()) == [2 * GAP - 1] * 3 + [6 * (2 * GAP - 1)]


def test_times_beyond_the_longest_run_are_refused() -> None:
    assert refused([(0, None), *((2 * MOST_INTERVALS, None) for _ in range(8))]) == {1: TOO_FAR}
    third = [(t, "d") for t in range(40)]
    assert refused(third + crowd(2 * MOST_INTERVALS)) == dict.fromkeys(range(1, 41), TOO_FAR)
    assert refused([(0, None)] * 9 + [(2 * MOST_INTERVALS, None)] * 100) == dict.fromkeys(
        range(1, 10), TOO_FAR
    )


FAR = 10**9


def found_file(path: Path, encoding: str) -> InputFile:
    return InputFile(str(path), encoding, path.stat().st_size, "")


TEXTS: dict[str, tuple[Source, str, list[str]]] = {
    "edges": (
        Edges(),
        "csv(interval,src,dst)",
        ["interval,src,dst", "0,a,b", f"{FAR},a,b", "1,a,b"],
    ),
    "edges without header": (
        Edges(),
        "columns(src,dst,interval)",
        [f"1 2 {FAR}", "1 3 0", f"1 2 {FAR + 1}"],
    ),
    "deliveries": (
        Deliveries(),
        "csv(msg,node,prev_node,t_us)",
        ["msg,node,prev_node,t_us", "m,a,a,0", f"m,b,a,{FAR}000000", "m,c,a,5"],
    ),
    "reports": (
        Reports(),
        "ndjson",
        [f'{{"format":"vizpub.report/1","peer":"a","interval":{at}}}' for at in (0, 1, FAR, 2)],
    ),
    "libp2p": (
        Libp2p(),
        "json",
        [at(us, EventType.JOIN, "a", topic="t").line for us in (FAR * 10**6, 0, FAR * 10**6 + 5)],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_wrong_time_refuses_its_record_and_no_other(tmp_path: Path, name: str) -> None:
    source, encoding, lines = TEXTS[name]
    (path := tmp_path / "f").write_text("\n".join(lines) + "\n")
    found = staged(source, [found_file(path, encoding)], SourceOptions())
    (row,) = found.quarantine
    wrong = 3 if lines[0].startswith(("interval", "msg", '{"format')) else 2
    assert row[:3] == ("f", wrong, TOO_FAR)
    assert source.describe(found.counted, SourceOptions()).clock.intervals <= 3


def test_edge_without_direction_is_refused_once(tmp_path: Path) -> None:
    (path := tmp_path / "f").write_text(f"1 2 {FAR}\n1 3 0\n1 2 {FAR + 1}\n")
    file = found_file(path, "undirected columns(src,dst,interval)")
    found = staged(Edges(), [file], SourceOptions())
    assert [row[1] for row in found.quarantine] == [2]
