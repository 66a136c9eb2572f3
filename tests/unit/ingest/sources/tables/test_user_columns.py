"""Columns of delimited text as the user tells them, and how an error shows what to tell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.staged import Staged, staged
from tests.support.words import naming, tells
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources import SOURCES, sources_for
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.deliveries import Deliveries
from vizpub.ingest.sources.edges.source import TIME_UNIT, Edges
from vizpub.ingest.sources.tables.units import SECOND_US, UNIX_EPOCH
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UseError

HOUR_US = 3_600_000_000


def read(path: Path, text: str, columns: str, **options: Any) -> Staged:
    path.write_text(text)
    (source,) = sources_for(SourceOptions(columns=columns))
    encoding = source.recognises(str(path), text.encode())
    assert encoding
    file = InputFile(str(path), encoding, len(text), "")
    return staged(source, [file], SourceOptions(columns=columns, **options))


def links(found: Staged) -> list[tuple[Any, ...]]:
    """src, dst, layer, valid_from, valid_to."""
    rows = found.tables["links"].to_pylist()
    return sorted((r["src"], r["dst"], r["layer"], r["valid_from"], r["valid_to"]) for r in rows)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("src;dst\nalice;bob\nbob;carol\n", "src,dst"),
        ("alice;bob\nbob;carol\n", "src,dst"),
        ("Source\tTarget\tWeight\r\nalice\tbob\t3\r\nbob\tcarol\t1\r\n", "src,dst,-"),
        ("weight|to|from\n3|bob|alice\n1|carol|bob\n", "-,dst,src"),
        ("# who knows whom\n\nalice bob\nbob   carol\n", "src,dst"),
        ('From,To\n"alice",bob\nbob,"carol"\n', "src, dst"),
    ],
)
def test_told_columns_are_read_with_any_separator(tmp_path: Path, text: str, columns: str) -> None:
    found = read(tmp_path / "f", text, columns)
    assert links(found) == [
        ("alice", "bob", "overlay", 0, OPEN),
        ("bob", "carol", "overlay", 0, OPEN),
    ]
    assert not found.quarantine


def test_quoted_fields_hold_separators_and_other_rows_are_refused(tmp_path: Path) -> None:
    found = read(tmp_path / "f", 'a;"b;""c"\na;b;c\n"a;b\nc;d\nd;e\n', "src,dst")
    assert {(src, dst) for src, dst, *_ in links(found)} == {("a", 'b;"c'), ("c", "d"), ("d", "e")}
    assert [row[1] for row in found.quarantine] == [2, 3]


def test_first_line_without_a_number_in_its_place_is_a_header(tmp_path: Path) -> None:
    found = read(tmp_path / "f", "who,whom,when\na,b,0\nb,c,x\nb,c,2\n", "src,dst,interval")
    assert links(found) == [("a", "b", "overlay", 0, 1), ("b", "c", "overlay", 2, 3)]
    assert [row[1:3] for row in found.quarantine] == [(3, "'interval' is not an integer")]


def test_times_are_numbers_of_the_unit_that_is_told(tmp_path: Path) -> None:
    text = "a,b,7200000\na,b,10799999\na,b,10800000\n"
    found = read(tmp_path / "f", text, "src,dst,interval", interval_us=HOUR_US, time_unit_us=1000)
    assert links(found) == [("a", "b", "overlay", 2, 4)]
    with pytest.raises(UseError, match=naming(TIME_UNIT, "--interval", "1s")):
        read(tmp_path / "f", text, "src,dst,interval", interval_us=1500, time_unit_us=10**6)


def test_times_are_numbers_as_programs_write_them(tmp_path: Path) -> None:
    """Small ones with a negative exponent, and any number of zeros before."""
    text = f"a,b,5e-05\na,b,25E-1\na,b,{'0' * 41}7\n"
    options = {"interval_us": SECOND_US, "time_unit_us": SECOND_US}
    found = read(tmp_path / "f", text, "src,dst,interval", **options)
    assert links(found) == [("a", "b", "overlay", i, i + 1) for i in (0, 2, 7)]


def test_numbers_of_intervals_are_whole_and_of_a_run(tmp_path: Path) -> None:
    times = ("1", "2.0", "3e0", "1.5", "1e50", f"{'9' * 29}.5")
    found = read(tmp_path / "f", "".join(f"a,b,{t}\n" for t in times), "src,dst,interval")
    assert links(found) == [("a", "b", "overlay", 1, 4)]
    assert [(line, "integer" in why) for _, line, why, _ in found.quarantine] == [
        (4, True),
        (5, False),
        (6, True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        ",from,to,ts,weight\n0,a,b,{0},3.5\n1,b,a,{1},\n",  # an index of pandas, and missing values
        "\ufeffweight;to;from;ts\n3;b;a;{0}\n;a;b;{1}\n",
        '"ts"\t"from"\t"to"\r\n"{0}"\t"a"\t"b"\r\n"{1}"\t"b"\t"a"\r\n',
    ],
)
@pytest.mark.parametrize(
    ("unit_us", "times"),
    [
        (10**6, ("1767229199", "1767229200")),
        (10**6, ("1767229199.75", "1767229200.0")),
        (1000, ("1767229199000", "1.7672292e12")),
        (1, ("1767229199000000", "1767229200000000")),
        (None, ("2026-01-01 00:59:59.999999", "2026-01-01T02:00:00+01:00")),
    ],
)
def test_columns_are_named_and_times_told_in_any_form(
    tmp_path: Path, text: str, unit_us: int | None, times: tuple[str, str]
) -> None:
    columns = "src=from, dst=to, time=ts"
    written = text.format(*times)
    options = {"interval_us": HOUR_US, "time_unit_us": unit_us}
    found = read(tmp_path / "f", written, columns, **options)
    (first, second) = (int(pd.Timestamp(f"2026-01-01 0{h}:00").timestamp()) // 3600 for h in (0, 1))
    assert links(found) == [
        ("a", "b", "overlay", first, first + 1),
        ("b", "a", "overlay", second, second + 1),
    ]
    assert not found.quarantine


def test_named_columns_and_dates_of_parquet_are_read(tmp_path: Path) -> None:
    times = pd.to_datetime(["2026-01-01 00:59:59.5", "2026-01-01 01:00:00.0"])
    frame = pd.DataFrame({"w": [1, 2], "to": ["b", "a"], "ts": times, "from": ["a", "b"]})
    frame.to_parquet(path := tmp_path / "f.parquet")
    options = SourceOptions(HOUR_US, columns="src=from,dst=to,interval=ts")
    (source,) = sources_for(options)
    encoding = source.recognises(str(path), path.read_bytes())
    assert encoding
    found = staged(source, [InputFile(str(path), encoding, 1, "")], options)
    assert [link[3] for link in links(found)] == [t.timestamp() // 3600 for t in times]
    why = Edges().near_miss(str(path), path.read_bytes())
    assert why
    tells(why, "w, to, ts, from", "--columns src=to,dst=from")


def test_dates_without_a_length_of_intervals_are_in_seconds_since_1970(tmp_path: Path) -> None:
    text = "a,b,2026-01-01,2026-01-01T00:00:01.5\na,c,2026-01-01,\na,d,2026-01-01,2026-01-01\n"
    found = read(tmp_path / "f.csv", text, "src,dst,valid_from,valid_to")
    since = int(pd.Timestamp("2026-01-01").timestamp())
    assert [(dst, begin, end) for _, dst, _, begin, end in links(found)] == [
        ("b", since, since + 2),
        ("c", since, OPEN),
    ]
    assert [row[1:3] for row in found.quarantine] == [(3, "the end is not after the beginning")]
    told = Edges().describe(found.counted, SourceOptions())
    assert (told.epoch, told.clock) == (UNIX_EPOCH, Clock(1, SECOND_US, since, since + 1))


def test_deliveries_of_unix_times_begin_with_the_first(tmp_path: Path) -> None:
    text = "message,peer,sender,at\nm,a,a,1767229199.5\nm,b,a,1767229200.25\n"
    columns, second = "msg=message,node=peer,prev_node=sender,time=at", 1767229199
    found = read(tmp_path / "f", text, columns, time_unit_us=SECOND_US)
    (arrival,) = found.tables["receptions"].to_pylist()
    assert arrival["time_us"] == 1767229200250000
    told = Deliveries().describe(found.counted, SourceOptions())
    assert (told.epoch, told.clock) == (UNIX_EPOCH, Clock(SECOND_US, 1, second, second + 1))


def test_times_of_deliveries_have_the_unit_that_is_told(tmp_path: Path) -> None:
    text = f"when;to;from;what\n5;a;a;m\n7;b;a;m\n{2**62};c;a;m\n"
    columns = "t_us,node,prev_node,msg"
    found = read(tmp_path / "f", text, columns, time_unit_us=1000)
    (arrival,) = found.tables["receptions"].to_pylist()
    assert (arrival["peer"], arrival["previous_hop"], arrival["time_us"]) == ("b", "a", 7000)
    (publication,) = found.tables["publications"].to_pylist()
    assert publication["time_us"] == 5000
    assert [row[1:3] for row in found.quarantine] == [(4, "'t_us' is too large")]


@pytest.mark.parametrize(
    "columns", ["src", "src,dst,colour", "src,src,dst", "-,-", "msg,node,t_us"]
)
def test_columns_that_no_source_has_are_refused(columns: str) -> None:
    with pytest.raises(UseError, match=naming("--columns", "src,dst", "msg,node,prev_node,t_us")):
        sources_for(SourceOptions(columns=columns))


def test_text_of_other_width_is_not_recognised_and_the_reason_says_what_was_found() -> None:
    (source,) = sources_for(SourceOptions(columns="src,dst"))
    head = b"src,dst,interval\na,b,0\n"
    assert source.recognises("f", head) is None
    why = source.near_miss("f", head)
    assert why
    tells(why, "--columns", "2 columns", "3", "src,dst,interval")


@pytest.mark.parametrize(
    ("head", "links_of"),
    [
        (b"src;dst\nalice;bob\n", {("alice", "bob")}),
        (b"src,dst,weight\nalice,bob,3\n", {("alice", "bob")}),
        (b"src,dst,interval\nalice,bob,0\n", {("alice", "bob")}),
        (b"id,from,to,ts\n0,alice,bob,3\n", {("alice", "bob")}),
        (b"alice,alice,alice\nbob,carol,3\n", {("alice", "alice"), ("bob", "carol")}),
        (b"alice\tbob\t17.5\nbob\tcarol\t3\n", {("alice", "bob"), ("bob", "carol")}),
    ],
)
def test_reason_shows_columns_that_read_the_file(
    tmp_path: Path, head: bytes, links_of: set[tuple[str, str]]
) -> None:
    assert not any(source.recognises("f", head) for source in SOURCES)
    (why, *_) = filter(None, (source.near_miss("f", head) for source in SOURCES))
    tells(why, head.decode().partition("\n")[0].strip())
    told = re.search(r"--columns (\S+)", why)
    assert told
    found = read(tmp_path / "f", head.decode(), told[1])
    assert {(src, dst) for src, dst, *_ in links(found)} == links_of
