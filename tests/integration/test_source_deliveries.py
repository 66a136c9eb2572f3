"""Deliveries of real gossipsub networks, against figures published with them and brute force."""

from __future__ import annotations

import csv
import gzip
import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.staged import Staged, Taken, staged
from tests.support.words import naming
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.deliveries import NO_DELIVERY, Deliveries
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError

SOURCE = Deliveries()
HEADER = ("msg", "node", "prev_node", "t_us")
ENCODING = f"csv({','.join(HEADER)})"
CONFLICT = "another publication of the message came first"
SEED = 9


def stage(*paths: Path) -> Staged:
    files = [InputFile(str(path), ENCODING, path.stat().st_size, "") for path in paths]
    return staged(SOURCE, files, SourceOptions())


def take(path: Path, interval_us: int | None = None) -> Taken:
    options = SourceOptions(interval_us)
    found = staged(SOURCE, [InputFile(str(path), ENCODING, 0, "")], options)
    return Taken(SOURCE, found, options)


def depths(found: Taken) -> dict[str, list[int]]:
    """How deep every first arrival lies in the tree of its message."""
    parents: dict[str, dict[str, str]] = defaultdict(dict)
    for row in found.records("receptions", "tick", "arrival"):
        parents[row["message"]].setdefault(row["peer"], row["previous_hop"])
    publisher = {row["message"]: row["publisher"] for row in found.records("publications")}

    def depth(message: str, peer: str) -> int:
        return 0 if peer == publisher[message] else 1 + depth(message, parents[message][peer])

    return {message: [depth(message, peer) for peer in tree] for message, tree in parents.items()}


@pytest.mark.parametrize(
    ("name", "peers", "messages", "mean", "most", "mean_of_most"),
    [
        pytest.param(
            *("gossipsub_whiteblock_fc96_deliveries.csv.gz", 96, 900, 2.691, 6, 4.169),
            marks=pytest.mark.long,
        ),
        ("gossipsub_whiteblock_ba20_deliveries.csv.gz", 20, 3600, 1.945, 4, 3.045),
    ],
)
def test_deliveries_of_a_real_network_equal_published_values(
    outside_data: Callable[[str], Path],
    name: str,
    peers: int,
    messages: int,
    mean: float,
    most: int,
    mean_of_most: float,
) -> None:
    found = take(outside_data(name))
    told, seen = found.told, found.seen
    assert not found.staged.quarantine
    assert told.clock.tick_us == 1
    assert told.clock.interval_us == 1_000_000
    assert len(found.rows("peers")) == peers
    trees = depths(found)
    assert len(trees) == messages
    assert {len(tree) for tree in trees.values()} == {peers - 1}
    every = [depth for tree in trees.values() for depth in tree]
    assert len(every) + messages == peers * messages
    assert statistics.mean(every) == pytest.approx(mean, abs=5e-4)
    assert max(every) == most
    assert statistics.mean(map(max, trees.values())) == pytest.approx(mean_of_most, abs=5e-4)
    for table in ("presence", "links", "subscriptions", "roles", "traffic"):
        assert getattr(seen, table) is None


def test_deliveries_joined_with_links_have_both(outside_data: Callable[[str], Path]) -> None:
    names = ("deliveries", "dialled_edges")
    paths = [str(outside_data(f"gossipsub_whiteblock_ba20_{name}.csv.gz")) for name in names]
    told = take_inventory(None, find_files(paths), SOURCES)
    assert told.source == "deliveries"
    options = SourceOptions()
    found = Taken(SOURCE, staged(SOURCE, told.files, options), options)
    with gzip.open(paths[1], "rt") as stream:
        dialled = {tuple(row) for row in list(csv.reader(stream))[1:]}
    peers = {str(number) for number in range(20)}
    assert found.rows("links") == {(*pair, "overlay", None, 0, OPEN) for pair in dialled}
    assert found.rows("peers") == {(peer,) for peer in peers}
    assert found.rows("presence") == {(peer, 0, OPEN) for peer in peers}
    pairs = {frozenset(pair) for pair in dialled}
    used = {frozenset(pair) for pair in found.rows("receptions", "peer", "previous_hop")}
    assert (len(used & pairs), len(pairs)) == (48, 51)
    alone = take(Path(paths[0]))
    for table in ("publications", "receptions"):
        assert found.staged.tables[table].equals(alone.staged.tables[table])
    assert found.told.clock == alone.told.clock
    assert set(alone.told.unknown) - set(found.told.unknown) == {"presence", "links"}
    assert SOURCE.layers(told.files) == {"overlay"}
    assert SOURCE.layers(told.files[:1]) == frozenset()


def test_links_named_like_messages_are_kept_apart(tmp_path: Path) -> None:
    deliveries, links = tmp_path / "deliveries.csv", tmp_path / "links.txt"
    deliveries.write_text("msg,node,prev_node,t_us\n1,1,1,0\n1,2,1,5\n3,2,2,5\n")
    links.write_text("1 2\n1 4\n5 1\n")
    told = take_inventory(None, find_files([str(deliveries), str(links)]), SOURCES)
    options = SourceOptions()
    found = Taken(SOURCE, staged(SOURCE, told.files, options), options)
    assert {row[:2] for row in found.rows("links")} == {("1", "2"), ("1", "4"), ("5", "1")}
    assert found.rows("publications", "message", "publisher") == {("1", "1"), ("3", "2")}
    assert found.rows("receptions", "message", "peer", "previous_hop") == {("1", "2", "1")}
    assert found.rows("peers", "name") == {(peer,) for peer in "1245"}
    assert found.rows("presence", "peer") == {(peer,) for peer in "1245"}


def test_links_with_times_are_not_joined(tmp_path: Path) -> None:
    deliveries, links = tmp_path / "deliveries.csv", tmp_path / "links.csv"
    deliveries.write_text("msg,node,prev_node,t_us\n1,1,1,0\n")
    links.write_text("interval,src,dst\n0,1,2\n")
    told = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    with pytest.raises(InputError, match=naming(links, "by interval", "src,dst")):
        SOURCE.splits(told.files)


def test_deliveries_become_publications_receptions_and_quarantine(tmp_path: Path) -> None:
    path = tmp_path / "deliveries.csv"
    path.write_text(
        "msg,node,prev_node,t_us\n"
        "m,a,a,0\n"
        "m,b,a,400\n"
        "m,b,c,400\n"
        "n,c,b,1500\n"
        "n,c,b,-1\n"
        "n,c,,1\n"
        "n,c,b\n"
        "n,c,b,9999999999999999999\n"
    )
    taken = take(path, interval_us=1000)
    told = taken.told
    assert told.clock == Clock(1000, 1, 0, 1)
    assert told.epoch is None
    columns = ("message", "publisher", "interval", "tick")
    assert taken.rows("publications", *columns) == {("m", "a", 0, 0)}
    found = taken.records("receptions", "tick", "arrival")
    columns = ("message", "peer", "previous_hop", "time_us", "interval", "tick")
    assert [tuple(row[name] for name in columns) for row in found] == [
        ("m", "b", "a", 400, 0, 400),
        ("m", "b", "c", 400, 0, 400),
        ("n", "c", "b", 1500, 1, 1500),
    ]
    assert taken.rows("receptions", "topic", "publisher", "first", "hop") == {(None,) * 4}
    assert [(line, reason) for _, line, reason, _ in taken.staged.quarantine] == [
        (6, "'t_us' is negative"),
        (7, "no 'prev_node'"),
        (8, "not 4 fields"),
        (9, "'t_us' is too large"),
    ]


def test_conflicting_publication_is_refused_and_repeated_row_counted(tmp_path: Path) -> None:
    rows = [
        "m,b,a,400",
        "m,a,a,0",  # 3
        "m,c,c,0",  # another publisher
        "m,a,a,9000000",  # another time, and beyond the last interval
        "m,a,a,0",
        "m,b,a,400",
        "m,b,a,500",  # another arrival
        "m,b,a,400",
        "n,lonely,lonely,1",
        "n,later,later,1",  # 11
    ]
    path = tmp_path / "deliveries.csv"
    path.write_text("\n".join(["msg,node,prev_node,t_us", *rows]))
    taken = take(path)
    told = taken.told
    assert [refused[1:] for refused in taken.staged.quarantine] == [
        (4, CONFLICT, "m,c,c,0"),
        (5, CONFLICT, "m,a,a,9000000"),
        (11, CONFLICT, "n,later,later,1"),
    ]
    assert told.notes == {"repeated_records": 3}
    assert told.clock.last == 0
    published = taken.rows("publications", "message", "publisher", "tick")
    assert published == {("m", "a", 0), ("n", "lonely", 1)}
    arrived = [(row["peer"], row["tick"]) for row in taken.records("receptions", "arrival")]
    assert arrived == [("b", 400), ("b", 500)]
    assert taken.rows("peers", "name") == {("a",), ("b",), ("lonely",)}


def random_rows(rng: random.Random) -> list[tuple[str, str, str, str]]:
    """Deliveries of few messages and times, many of them twice; messages with many publishers."""
    return [
        (f"m{rng.randrange(9)}", peer, rng.choice([peer, *"abcd"]), str(rng.randrange(6)))
        for peer in rng.choices("abcd", k=150)
    ]


def test_rows_that_repeat_or_conflict_are_told_by_their_place(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print("seed", SEED)
    files = {f"{n}.csv": random_rows(rng) for n in range(3)}
    for name, rows in files.items():
        (tmp_path / name).write_text("\n".join(map(",".join, [HEADER, *rows])))
    found = stage(*(tmp_path / name for name in files))
    counted: set[tuple[str, ...]] = set()
    conflicts, repeated = [], 0
    seen: set[tuple[str, ...]] = set()
    published: set[str] = set()
    for name, rows in files.items():
        for line, row in enumerate(rows, 2):
            message, peer, previous, _ = row
            if row in seen:
                repeated += 1
            elif peer == previous and message in published:
                conflicts.append((name, line, CONFLICT, ",".join(row)))
            else:
                counted.add(row)
                published |= {message} if peer == previous else set()
            seen.add(row)
    told = found.tables["receptions"].to_pylist()
    columns = ("message", "peer", "previous_hop", "time_us")
    taken = [tuple(str(row[column]) for column in columns) for row in told]
    taken += [
        (row["message"], row["publisher"], row["publisher"], str(row["time_us"]))
        for row in found.tables["publications"].to_pylist()
    ]
    assert sorted(taken) == sorted(counted)
    assert found.quarantine == conflicts
    assert found.counted["repeated"] == repeated
    assert min(len(counted), len(conflicts), repeated) > 50
    in_time = sorted(told, key=lambda row: (row["message"], row["arrival"]))
    assert in_time == sorted(told, key=lambda row: (row["message"], row["time_us"]))


def test_unusable_deliveries_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deliveries.csv"
    path.write_text("msg,node,prev_node,t_us\nm,a,a,x\n")
    with pytest.raises(InputError, match=NO_DELIVERY):
        take(path)
    path.write_text("msg,node,prev_node,t_us\nm,a,a,999999999000000\n")
    with pytest.raises(
        InputError, match=naming("1,000,000,000", f"{path}, line 2", "--interval 1h")
    ):
        take(path)


def test_intervals_that_no_number_has_are_refused(tmp_path: Path) -> None:
    """Counted from 1970 in tenths of a second, these are at 17,000,000,000."""
    path = tmp_path / "deliveries.csv"
    path.write_text("msg,node,prev_node,t_us\nm,a,a,1700000000000000\nm,b,a,1700000000050000\n")
    assert take(path).told.clock.first == 1_700_000_000
    with pytest.raises(InputError, match="17,000,000,000") as refused:
        take(path, interval_us=100_000)
    assert "from the start of the run" in str(refused.value.hint)


def test_deliveries_file_is_recognised_by_its_header() -> None:
    assert SOURCE.recognises("x", b"msg,node,prev_node,t_us\n0,11,11,0\n") == ENCODING
    assert SOURCE.recognises("x", b"interval,src,dst\n") is None
