"""Edge lists → links and presence, against the same lists read by Python."""

from __future__ import annotations

import csv
import gzip
import random
import zlib
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.staged import Staged, Taken, staged
from tests.support.words import naming, tells
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.inputs.reader import RowKind
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.edges.source import NO_LINK, WHOLE_SECONDS, Edges
from vizpub.ingest.sources.tables.delimited import NO_ROWS
from vizpub.ingest.sources.times import GAP
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError, UseError
from vizpub.runstore.store import open_run

pytestmark = pytest.mark.spark

SOURCE = Edges()
SEED = 9


def found_file(path: Path, *, damaged: bool = False) -> InputFile:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as stream:
        head = b"src,dst,valid_from,valid_to\n" if damaged else stream.read(65536)  # type: ignore[operator]
    encoding = SOURCE.recognises(str(path), head)
    assert encoding
    return InputFile(str(path), encoding, 0, "")


def stage(*files: InputFile) -> Staged:
    return staged(SOURCE, files, SourceOptions())


def take(*files: InputFile) -> Taken:
    return Taken(SOURCE, stage(*files), SourceOptions())


def links(found: Staged | Taken) -> set[tuple[Any, ...]]:
    """src, dst, layer, topic, valid_from, valid_to: as folded, or as observed."""
    if isinstance(found, Taken):
        return found.rows("links")
    return {tuple(row.values()) for row in found.tables["links"].to_pylist()}


def refused(found: Staged) -> list[tuple[Any, ...]]:
    """Line, reason and text."""
    return sorted(told[1:] for told in found.quarantine)


def test_spans_of_the_reference_history_equal_the_file(gephi_small: Path) -> None:
    path = gephi_small / "versions.csv.gz"
    found = take(found_file(path))
    told, seen = found.told, found.seen
    with gzip.open(path, "rt") as stream:
        expected = {
            (row["src"], row["dst"], "overlay", None, int(row["vf"]), int(row["vt"]))
            for row in csv.DictReader(stream)
        }
    assert links(found) == expected
    assert told.clock == Clock(1, None, 0, 49)
    assert told.ended
    assert found.rows("presence") == {(str(peer), 0, OPEN) for peer in range(200)}
    assert found.rows("peers", "name") == {(str(peer),) for peer in range(200)}
    assert not found.staged.quarantine
    for table in ("subscriptions", "roles", "traffic", "publications", "receptions"):
        assert getattr(seen, table) is None


def test_links_by_interval_become_links_and_presence(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(
        'interval,src,dst,layer,topic\r\n3,a,b,,\r\n5,a,b,mesh,t\r\n5,"c, d",a,,\n4,e,a,,'
    )
    found = take(found_file(path))
    assert links(found) == {
        ("a", "b", "overlay", None, 3, 4),
        ("a", "b", "mesh", "t", 5, OPEN),
        ("c, d", "a", "overlay", None, 5, OPEN),
        ("e", "a", "overlay", None, 4, 5),
    }
    stays = {("a", 3, OPEN), ("b", 3, OPEN), ("c, d", 5, OPEN), ("e", 4, 5)}
    assert found.rows("presence", "peer", "valid_from", "valid_to") == stays
    assert found.told.clock == Clock(1, None, 3, 5)
    assert not found.told.ended
    assert not found.staged.quarantine


def test_parquet_spans_become_links_presence_and_quarantine(tmp_path: Path) -> None:
    table = {
        "src": ["a", "b", None],
        "dst": [1, 2, 3],
        "valid_from": [0, 2, -1],
        "valid_to": [3, None, 4],
    }
    # Spark itself would hide this name, and take it for a pattern.
    pq.write_table(pa.table(table), tmp_path / "_e[1].parquet")
    found = take(found_file(tmp_path / "_e[1].parquet"))
    assert links(found) == {
        ("a", "1", "overlay", None, 0, 3),
        ("b", "2", "overlay", None, 2, OPEN),
    }
    assert found.told.clock == Clock(1, None, 0, 2)
    assert not found.told.ended
    assert found.rows("presence") == {(peer, 0, OPEN) for peer in "ab12"}
    text = '{"dst":"3","valid_from":"-1","valid_to":"4"}'
    assert refused(found.staged) == [(3, "no 'src'; 'valid_from' is negative", text)]


def test_long_link_of_joined_rows_has_no_empty_intervals(tmp_path: Path) -> None:
    count = 3 * GAP
    table = {"src": ["a"] * count, "dst": ["b"] * count, "interval": range(count)}
    pq.write_table(pa.table(table), tmp_path / "links.parquet")
    columns = "parquet(src,dst,interval)"
    found = take(InputFile(str(tmp_path / "links.parquet"), columns, 0, ""))
    assert links(found) == {("a", "b", "overlay", None, 0, OPEN)}
    assert not found.told.notes


def in_folders(root: Path, told: dict[str, str]) -> list[InputFile]:
    for folder, text in told.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "part-0.csv").write_text(text)
    return [found_file(root / folder / "part-0.csv") for folder in told]


def test_columns_in_names_of_folders_are_taken(tmp_path: Path) -> None:
    told = {
        "layer=mesh/interval=0": "src,dst\na,b\n",
        "layer=mesh/interval=1": "src,dst\na,b\n",
        "layer=a%3Ab,c/interval=1": "src,dst\na,b\n",
        "layer=__HIVE_DEFAULT_PARTITION__/interval=x": "src,dst\na,b\n",
        "interval=4": "src,dst,layer\nb,c,mesh\n",
    }
    found = stage(*in_folders(tmp_path / "seed=7", told))
    assert links(found) == {
        ("a", "b", "mesh", None, 0, 2),
        ("a", "b", "a:b,c", None, 1, 2),
        ("b", "c", "mesh", None, 4, 5),
    }
    assert [row[1] for row in refused(found)] == ["'interval' is not an integer"]


def test_columns_of_folders_are_those_that_spark_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [("a", "b", 0, "x/y=z"), ("a", "b", 1, "x/y=z"), ("b", "c", 5, None)]
    frame = spark.createDataFrame(rows, "src string, dst string, interval int, layer string")
    frame.write.partitionBy("interval", "layer").parquet(str(tmp_path / "links"))
    found = stage(*(found_file(path) for path in sorted(tmp_path.rglob("*.parquet"))))
    assert links(found) == {("a", "b", "x/y=z", None, 0, 2), ("b", "c", "overlay", None, 5, 6)}


def test_plain_columns_have_those_of_their_folders(tmp_path: Path) -> None:
    told = {"interval=0": "1 2\n2 3\n", "interval=3": "# Undirected graph\n1 2\n"}
    assert links(stage(*in_folders(tmp_path, told))) == {
        ("1", "2", "overlay", None, 0, 1),
        ("2", "3", "overlay", None, 0, 1),
        ("1", "2", "overlay", None, 3, 4),
        ("2", "1", "overlay", None, 3, 4),
    }


def test_columns_of_folders_that_are_none_of_ours_are_refused_where_they_differ(
    tmp_path: Path,
) -> None:
    files = in_folders(tmp_path, {f"day={day}": "src,dst\na,b\n" for day in (1, 2)})
    with pytest.raises(InputError, match=naming("day=1", "day=2", files[1].path)):
        stage(*files)
    assert links(stage(files[0])) == {("a", "b", "overlay", None, 0, OPEN)}


def test_column_that_file_and_folder_have_is_refused_with_the_reason() -> None:
    head = b"interval,src,dst\n0,a,b\n"
    assert SOURCE.recognises("/x/interval=0/links.csv", head) is None
    why = SOURCE.near_miss("/x/interval=0/links.csv", head)
    assert why
    tells(why, "interval,src,dst", "interval")


def test_equal_files_in_folders_of_other_columns_are_no_copies(tmp_path: Path) -> None:
    files = in_folders(tmp_path, {f"interval={n}": "src,dst\na,b\n" for n in (0, 1)})
    found = take_inventory(None, find_files([str(tmp_path)]), [SOURCE])
    assert [file.encoding for file in found.files] == [file.encoding for file in files]
    assert not found.skipped


def test_parquet_columns_of_many_types_are_read(tmp_path: Path) -> None:
    tables = [
        {"interval": [0, 1], "src": [1, 2], "dst": [2, 1]},
        {"interval": ["2"], "src": pa.array(["a"]).dictionary_encode(), "dst": ["b"]},
        {"interval": [3.0, None, 1.5], "src": [b"a", b"a", b"a"], "dst": [b"b", b"\xff", b"b"]},
        {"interval": [4], "src": pa.array(["c"], pa.large_string()), "dst": ["d"]},
    ]
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), tmp_path / f"{number}.parquet", row_group_size=1)
    files = [found_file(tmp_path / f"{number}.parquet") for number in range(len(tables))]
    found = take(*files)
    assert {row[:2] + row[4:] for row in links(found)} == {
        ("1", "2", 0, 1),
        ("2", "1", 1, 2),
        ("a", "b", 2, 4),
        ("c", "d", 4, OPEN),
    }
    assert found.told.clock == Clock(1, None, 0, 4)
    assert refused(found.staged) == [
        (2, "not UTF-8", '{"src":"a","dst":"\ufffd"}'),
        (3, "'interval' is not an integer", '{"interval":"1.5","src":"a","dst":"b"}'),
    ]
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"interval": [0], "src": [["a"]], "dst": ["b"]}), nested)
    assert SOURCE.recognises(str(nested), nested.read_bytes()) is None


def test_damaged_row_group_is_quarantined_alone(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    names = [f"peer {n}" for n in range(6)]
    table = pa.table({"interval": list(range(6)), "src": names, "dst": names[::-1]})
    pq.write_table(table, path, row_group_size=2, compression="gzip", use_dictionary=False)
    second = pq.read_metadata(path).row_group(1).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[second : second + 8] = b"\xff" * 8
    path.write_bytes(content)
    found = stage(found_file(path))
    assert {row[0] for row in links(found)} == {f"peer {n}" for n in (0, 1, 4, 5)}
    ((line, reason, _),) = refused(found)
    assert line == 3
    assert reason.startswith("cannot be read from here on: ")


QUOTE = "a quote that is not around a whole field, or is not closed"
BAD = [
    (",b,0,1", "no 'src'"),
    ("a,b", "not 4 fields"),
    ("a,b,0,1,2", "not 4 fields"),
    ("a,b,0,1" + "," * 25_000, "not 4 fields"),
    ('a,b,0,1"', QUOTE),
    ('"a"b,c,0,1', QUOTE),
    ('"a,b,0,1', QUOTE),
    ('a"b",c,0,1', QUOTE),
    ("a,b,x,1", "'valid_from' is not an integer"),
    ("a,b,1.5,2", "'valid_from' is not an integer"),
    ("a,b,-1,1", "'valid_from' is negative"),
    ("a,b,,1", "no 'valid_from'"),
    ("a,b,5,5", "the end is not after the beginning"),
    ("a,b,99999999999999999999,1", "'valid_from' is too large"),
    ("a,b,0,3000000000", "'valid_to' is too large"),
    ("a,b,2147483647,", "'valid_from' is too large"),
    ("a\tx,b,0,1", "'src' has a control character"),
    ("a,,-1,1", "no 'dst'; 'valid_from' is negative"),
]


def test_bad_rows_are_quarantined(tmp_path: Path) -> None:
    text = "src,dst,valid_from,valid_to\n" + "".join(
        f"{bad}\na,b,{n},{n + 1}\n" for n, (bad, _) in enumerate(BAD)
    )
    path = tmp_path / "edges.csv"
    path.write_bytes(BOM_UTF8 + text.encode() + b"\xff,b,0,1\n\n")
    other = tmp_path / "cut.csv.gz"
    packer = zlib.compressobj(wbits=31)
    # As if of 1,1114.
    packed = packer.compress(BOM_UTF8 + b"src,dst,valid_from,valid_to\nc,d,0,1\nc,d,1,11")
    other.write_bytes(packed + packer.flush(zlib.Z_SYNC_FLUSH))
    found = stage(found_file(path), found_file(other, damaged=True))
    expected = [(2 * n + 2, why, bad[:1024]) for n, (bad, why) in enumerate(BAD)]
    cut = (3, "cut off where the file is damaged", "c,d,1,11")
    last = (2 * len(BAD) + 2, "not UTF-8", "\ufffd,b,0,1")
    assert refused(found) == sorted([*expected, cut, last])
    assert found.damaged == {str(other): "truncated gzip"}
    assert links(found) == {
        ("a", "b", "overlay", None, 0, len(BAD)),
        ("c", "d", "overlay", None, 0, 1),
    }


def test_bad_record_makes_a_strict_ingest_exit_with_1(
    vizpub_here: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("interval,src,dst\n0,a,b\n1,b\n1,b,c\n")
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"interval,src,dst\n0,a,b\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    (tmp_path / "in" / "b.csv.gz").write_bytes(packed)
    ingest = ("ingest", str(tmp_path / "in"), "--run", "bad", "--no-load", "--strict")
    result = vizpub_here("--workspace", str(tmp_path / "ws"), *ingest)
    assert result.returncode == 1, result.stderr
    assert result.stderr.count("1 record was refused; see: vizpub sql bad 'FROM quarantine'") == 1
    assert result.stderr.count("b.csv.gz: truncated gzip") == 1
    overlay = open_run(tmp_path / "ws", "bad").read("metrics/overlay")
    assert overlay["links"].to_pylist() == [1, 1]


def test_marks_and_headers_inside_a_file_are_no_names(tmp_path: Path) -> None:
    path = tmp_path / "joined.csv"
    mark = BOM_UTF8.decode()
    path.write_text(f"src,dst\na,b\n{mark}src,dst\na,c\n{mark}a,d\n", encoding="utf-8")
    found = stage(found_file(path))
    assert {(src, dst) for src, dst, *_ in links(found)} == {("a", "b"), ("a", "c"), ("a", "d")}
    assert not refused(found)


def test_short_names_of_bounds_mean_the_same(tmp_path: Path) -> None:
    rows = "\na,b,0,3\nb,c,2,\nc,a,4,4\n"
    found = []
    for number, header in enumerate(("src,dst,valid_from,valid_to", "src,dst,vf,vt")):
        path = tmp_path / f"{number}.csv"
        path.write_text(header + rows)
        found.append(stage(found_file(path)))
    long, short = found
    assert links(long) == links(short)
    assert {link[:2] for link in links(short)} == {("a", "b"), ("b", "c")}
    assert [row[1:] for row in refused(short)] == [row[1:] for row in refused(long)]
    assert len(refused(short)) == 1


def spans_of(held: dict[tuple[Any, ...], set[int]]) -> set[tuple[Any, ...]]:
    """Runs of numbers that follow on each other, as spans."""
    return {
        (*link, first, min(n for n in range(first, 100) if n not in numbers))
        for link, numbers in held.items()
        for first in numbers
        if first - 1 not in numbers
    }


@pytest.mark.parametrize(
    "header", ["interval,src,dst,layer,topic", "src,dst,valid_from,valid_to,layer,topic"]
)
def test_links_become_maximal_spans(tmp_path: Path, header: str) -> None:
    """The same rows in Parquet, in groups that cut peers and times apart, tell the same."""
    rng = random.Random(SEED)
    print("seed", SEED)
    held: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    rows = []
    for _ in range(800):
        src, dst = rng.sample("abcd", 2)
        layer, topic = rng.choice(["", "overlay", "mesh"]), rng.choice(["", "t"])
        valid_from = rng.randrange(60)
        valid_to = (
            valid_from + 1 if header.startswith("interval") else valid_from + rng.choice((1, 2, 5))
        )
        held[src, dst, layer or "overlay", topic or None] |= set(range(valid_from, valid_to))
        told = {
            "interval": valid_from,
            "src": src,
            "dst": dst,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
        told |= {"layer": layer, "topic": topic}
        rows.append([told[name] for name in header.split(",")])
    in_lines, in_groups = tmp_path / "a.csv", tmp_path / "a.parquet"
    in_lines.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    columns = dict(zip(header.split(","), zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table(columns), in_groups, row_group_size=70)
    for path in (in_lines, in_groups):
        found = stage(found_file(path))
        assert links(found) == spans_of(held)
        assert found.tables["links"].num_rows == len(links(found))
        assert not found.quarantine
    assert len(SOURCE.splits([found_file(in_groups)])) == 12


COUNTS = "the number of peers and of links, not a link"


@pytest.mark.parametrize(
    ("name", "peers", "count", "counts"),
    [
        pytest.param(
            *("facebook_combined_relabelled.txt.gz", 4_039, 88_234, None), marks=pytest.mark.long
        ),
        ("goerliTopology.edgelist.gz", 1_355, 19_146, None),
        pytest.param("p2p-Gnutella08.txt.gz", 6_301, 20_777, "6301 20777", marks=pytest.mark.long),
        pytest.param(
            *("twitter_follow_hersheycareers.edges.gz", 3_726, 23_939, None), marks=pytest.mark.long
        ),
        ("gossipsub_whiteblock_ba20_dialled_edges.csv.gz", 20, 102, None),
    ],
)
def test_published_graph_without_times_is_read_in_full(
    outside_data: Callable[[str], Path], name: str, peers: int, count: int, counts: str | None
) -> None:
    path = outside_data(name)
    found = stage(found_file(path))
    with gzip.open(path, "rt") as stream:
        pairs = [tuple(line.replace(",", " ").split()) for line in stream]
    expected = {
        (*pair, "overlay", None, 0, OPEN) for pair in pairs if pair[0] not in ("src", counts)
    }
    if counts:
        expected.remove((*counts.split(), "overlay", None, 0, OPEN))
    assert links(found) == expected
    assert len(expected) == count
    assert len({peer for link in expected for peer in link[:2]}) == peers
    assert [(line, why, text.strip()) for line, why, text in refused(found)] == (
        [(1, COUNTS, counts)] if counts else []
    )


def test_links_without_times_exist_in_the_only_interval(tmp_path: Path) -> None:
    path, table = tmp_path / "links.txt", tmp_path / "links.csv"
    path.write_text("# a comment\n\n1\t2\n  2 3  \r\n2 3\n% another\n3 x\n")
    table.write_text('src,dst,layer\n3,4,mesh\n"3","5",\n')
    found = take(found_file(path), found_file(table))
    assert links(found) == {
        ("1", "2", "overlay", None, 0, OPEN),
        ("2", "3", "overlay", None, 0, OPEN),
        ("3", "x", "overlay", None, 0, OPEN),
        ("3", "4", "mesh", None, 0, OPEN),
        ("3", "5", "overlay", None, 0, OPEN),
    }
    assert found.rows("presence") == {(peer, 0, OPEN) for peer in "12345x"}
    assert found.told.clock == Clock(1, None, 0, 0)
    assert not found.staged.quarantine


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("4 3\n0 1\n0 2\n1 3\n", True),
        ("# of peers and links\n4 3\n0 1\n0 2\n1 3", True),
        ("4 2\n0 1\n0 2\n1 3\n", False),  # of three links
        ("4 3\n0 1\n0 2\n1 4\n", False),  # peer 4 is there
    ],
)
def test_first_line_of_counts_is_refused(tmp_path: Path, text: str, is_refused: bool) -> None:
    path = tmp_path / "links.txt"
    path.write_text(text)
    found = stage(found_file(path))
    assert [why for _, why, _ in refused(found)] == [COUNTS] * is_refused
    assert (("4", text.split("4 ")[1][0]) in {link[:2] for link in links(found)}) != is_refused


KONECT = "% asym weighted\n% 3 3 3\n1 2 -1 5\n2 3 1 6\n3 1 2.5 9\n"
SNAP = "# Undirected graph: each unordered pair is saved once\n# FromNodeId\tToNodeId\n1\t2\n3\t2\n"


def test_weights_and_signs_are_no_times(tmp_path: Path) -> None:
    path, signs = tmp_path / "out.chat", tmp_path / "soc-sign.txt"
    path.write_text(KONECT)
    found = stage(found_file(path))
    assert {(s, d, t) for s, d, _, _, t, _ in links(found)} == {
        ("1", "2", 5), ("2", "3", 6), ("3", "1", 9),
    }  # fmt: skip
    signs.write_text("# FromNodeId\tToNodeId\tSign\n1\t2\t1\n4\t1\t-1\n")
    found = stage(found_file(signs))
    assert {link[:2] for link in links(found)} == {("1", "2"), ("4", "1")}
    assert not refused(found)
    assert SOURCE.describe(found.counted, SourceOptions()).clock == Clock(1, None, 0, 0)


@pytest.mark.parametrize("text", [SNAP, "% sym unweighted\n1 2\n3 2\n", "1 2\n3 2\n"])
def test_undirected_list_has_links_either_way(tmp_path: Path, text: str) -> None:
    path = tmp_path / "com.ungraph.txt"
    path.write_text(text)
    found = staged(SOURCE, [found_file(path)], SourceOptions(undirected=text == "1 2\n3 2\n"))
    pairs = [("1", "2"), ("2", "1"), ("2", "3"), ("3", "2")]
    assert sorted(link[:2] for link in links(found)) == pairs


def test_way_back_of_a_link_is_no_further_record(tmp_path: Path) -> None:
    (tmp_path / "links.txt").write_text("# Undirected graph\n1 2\n2 3\n")
    rows = stage(found_file(tmp_path / "links.txt")).rows
    assert Counter(row.kind for row in rows) == {RowKind.RECORD: 2, RowKind.FURTHER: 2}


def test_file_that_says_it_is_no_list_of_links_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n")
    with pytest.raises(InputError, match="is a matrix"):
        SOURCE.splits([found_file(path)])


def test_plain_columns_with_times_mean_what_tables_mean(tmp_path: Path) -> None:
    rows = [("p1", "p2", 3), ("p1", "p2", 4), ("p2", "p3", 7)]
    listed, table = tmp_path / "listed.txt", tmp_path / "listed.csv"
    listed.write_text("\n".join(f"{src} {dst} {at}" for src, dst, at in rows))
    table.write_text("interval,src,dst\n" + "\n".join(f"{at},{s},{d}" for s, d, at in rows))
    assert links(take(found_file(listed))) == links(take(found_file(table)))
    periods = tmp_path / "periods.txt"
    periods.write_text("p1 p2 3 5\np2 p3 7 8\np3 p1 9 9\np3 p1 2.5 9\np3 p1\n")
    found = stage(found_file(periods))
    assert {(*link[:2], *link[4:]) for link in links(found)} == {
        ("p1", "p2", 3, 5),
        ("p2", "p3", 7, 8),
    }
    assert [row[:2] for row in refused(found)] == [
        (3, "the end is not after the beginning"),
        (4, "'valid_from' is not an integer"),
        (5, "not 4 fields"),
    ]


def test_seconds_of_plain_columns_are_divided_into_intervals(tmp_path: Path) -> None:
    listed, periods = tmp_path / "listed.txt", tmp_path / "periods.txt"
    listed.write_text("1 2 7200\n1 2 10799\n1 2 10800\n1 3 18000\n")
    periods.write_text("1 2 7200 7201\n1 2 9000 10801\n1 3 18000 21600\n")
    for path in (listed, periods):
        options = SourceOptions(3_600_000_000)
        found = Taken(SOURCE, staged(SOURCE, [found_file(path)], options), options)
        assert {link[:2] + link[4:] for link in links(found.staged)} == {
            ("1", "2", 2, 4),
            ("1", "3", 5, 6),
        }
        assert found.told.clock == Clock(1, 3_600_000_000, 2, 5)
    with pytest.raises(UseError, match=naming(WHOLE_SECONDS, "--interval")):
        staged(SOURCE, [found_file(listed)], SourceOptions(1_500_000))


def test_unusable_edge_list_is_refused(tmp_path: Path) -> None:
    by_interval, spans = tmp_path / "a.csv", tmp_path / "b.csv"
    by_interval.write_text("interval,src,dst\n")
    spans.write_text("src,dst,valid_from,valid_to\na,b,0,2147483647\n")
    with pytest.raises(InputError, match=naming("by interval", "by period")):
        take(found_file(by_interval), found_file(spans))
    plain = tmp_path / "c.txt"
    plain.write_text("1 2\n2 3\n")
    with pytest.raises(InputError, match=naming("(valid_from, valid_to)", "without")):
        take(found_file(plain), found_file(spans))
    with pytest.raises(InputError, match=naming(NO_LINK, NO_ROWS)):
        take(found_file(by_interval))
    place = f"{spans}, line 2"
    with pytest.raises(InputError, match=naming("2,147,483,647", place, "--interval 1h")):
        take(found_file(spans))


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"interval,src,dst\n1,a,b\n", "csv(interval,src,dst)"),
        (
            b'"src","dst","valid_from","valid_to","topic"\r\n',
            "csv(src,dst,valid_from,valid_to,topic)",
        ),
        (
            b"\xef\xbb\xbfsrc,dst,valid_from,valid_to,layer,topic",
            "csv(src,dst,valid_from,valid_to,layer,topic)",
        ),
        (b"src,dst\n", "csv(src,dst)"),
        (b"src,dst,topic\n", "csv(src,dst,topic)"),
        (b"# Nodes: 3\n# From To\n0\t1\n0\t2\n1 2\n", "columns(src,dst)"),
        (b"% asym\n1 2 7\n1 3 8\n", "columns(src,dst,interval)"),
        (b"% asym weighted\n% 2 4 4\n1 2 -1.5 7\n", "columns(src,dst,weight,interval)"),
        (b"% asym posweighted\n1 2 3\n", "columns(src,dst,weight)"),
        (b"% sym unweighted\n1 2\n", "undirected columns(src,dst)"),
        (b"% bip unweighted\n1 2\n", "two kinds()"),
        (b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 .5\n", "matrix()"),
        (b"# FromNodeId\tToNodeId\tSign\n1\t2\t-1\n1\t3\t1\n", "columns(src,dst,weight)"),
        (b"# FromNodeId ToNodeId Timestamp\n1 2 7\n", "columns(src,dst,interval)"),
        (b"# Undirected graph: a.txt\n1 2\n3 2\n", "undirected columns(src,dst)"),
        (b"p1 p2 7 9\r\n12D3KooWA 10.0.0.1:80 8 9\r\n", "columns(src,dst,valid_from,valid_to)"),
        (b"3 2\n1 2 7\n1 3 8\n", "columns(src,dst,interval)"),
        (b"a b\nb c\n", None),
        (b"two words\nand more\n", None),
        (b"0e5751c0  a1.gz\n7d865e95  a2.gz\n", None),
        (b'{"a1": 2}\n{"a2": 3}\n', None),
        (b"0 1 2 3 4\n0 1 2 3 4\n", None),
        (b"# only comments\n", None),
        (b"msg,node,prev_node,t_us\n", None),
        (b"\x00\xff", None),
        (b"PAR1 but not quite", None),
    ],
)
def test_edge_list_is_recognised_by_its_header(
    head: bytes, encoding: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(head)
    assert SOURCE.recognises(str(path), head) == encoding
