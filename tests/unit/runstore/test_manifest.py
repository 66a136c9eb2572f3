"""run.json: what is written is read back, at once or not at all."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vizpub.model.clock import Clock
from vizpub.model.errors import StoreBroken
from vizpub.model.run import Boundary
from vizpub.runstore.manifest import (
    FILE,
    FORMAT,
    NO_INPUT_YET,
    NOT_IN_ITS_DIRECTORY,
    Change,
    Manifest,
    Part,
    TableEntry,
    read_manifest,
    write_manifest,
)
from vizpub.runstore.store import StoredRun

FULL = Manifest(
    name="monday",
    source="libp2p",
    inputs=({"path": "/a/ä.json", "size": 3, "sha256": "0" * 64, "damage": None},),
    options={"interval_us": 1_000_000, "gap_tolerance": 0, "layers": ["mesh", "overlay"]},
    state="complete",
    clock=Clock(1_000_000, 1, 0, 119),
    protocol="gossipsub",
    parameters={"D": 6},
    seed=7,
    epoch="2000-01-01T00:00:00Z",
    ended=True,
    unknown=("bytes",),
    notes={"repeated_records": 2},
    skipped=("x: empty",),
    engines={"structure": "kernels"},
    stages=("parse", "describe"),
    tables={"links": TableEntry("links/0123", 5)},
    versions={"vizpub": "0.1.0"},
)
SMALL = Manifest("monday", "edges", (), {})
GROWN = replace(
    FULL,
    tables={"links": TableEntry("links/2", 9, (Part("links/0", 1), Part("links/1", 3)))},
    carry={"last": TableEntry("carry/last/0", 2)},
    totals={"reports": 8},
    extends="0123",
    boundary=Boundary(4, 5, 6),
    generation=3,
    boundaries=(
        Change("first", Boundary(10, 3, 7)),
        Change("second", Boundary(8, 5, 9)),
        Change("third", Boundary(20, 7, 8)),
    ),
)


@pytest.mark.parametrize("manifest", [FULL, SMALL, GROWN])
def test_manifest_survives_write_and_read(manifest: Manifest, tmp_path: Path) -> None:
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest
    assert os.listdir(tmp_path) == [FILE]


def test_manifest_file_is_json_with_unescaped_text(tmp_path: Path) -> None:
    write_manifest(tmp_path, FULL)
    text = (tmp_path / FILE).read_text(encoding="utf-8")
    assert "/a/ä.json" in text
    assert json.loads(text)["format"] == FORMAT


def test_failed_write_leaves_the_old_manifest_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(tmp_path, SMALL)

    def dies(handle: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(OSError, match="full"):
        write_manifest(tmp_path, FULL)
    assert read_manifest(tmp_path) == SMALL
    monkeypatch.undo()
    write_manifest(tmp_path, FULL)
    assert read_manifest(tmp_path) == FULL
    assert os.listdir(tmp_path) == [FILE]


def test_truncated_manifest_is_refused_at_every_length(tmp_path: Path) -> None:
    write_manifest(tmp_path, FULL)
    whole = (tmp_path / FILE).read_bytes().rstrip()
    for length in range(len(whole)):
        (tmp_path / FILE).write_bytes(whole[:length])
        with pytest.raises(StoreBroken):
            read_manifest(tmp_path)


LEADING_OUT: list[dict[str, Any]] = [
    *({"directory": path} for path in ("/etc", "..", "links/../..", "", ".", "a//b", "a/", "a\0")),
    *({"name": name} for name in ("../x", "a/b", "/etc/passwd", "..", "")),
    {"rows": "many"},
    {"rows": None},
]
"""Of an entry: paths that lead out of the run's directory, and what is no number."""


def _entry(directory: str = "links/0", name: str = "a.parquet", rows: Any = 5) -> dict[str, Any]:
    return {
        "directory": directory,
        "rows": rows,
        "files": [{"name": name, "rows": 5, "size": 9}],
    }


@pytest.mark.parametrize("manifest", [FULL, GROWN])
def test_flipped_bit_of_a_manifest_is_found(manifest: Manifest, tmp_path: Path) -> None:
    """Or it changes nothing: as where a space becomes another."""
    write_manifest(tmp_path, manifest)
    whole, rng = (tmp_path / FILE).read_bytes(), random.Random(8)
    for bit in rng.sample(range(8 * len(whole)), 400):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / FILE).write_bytes(flipped)
        with suppress(StoreBroken):
            assert read_manifest(tmp_path) == manifest, bit


def _without(key: str) -> dict[str, Any]:
    raw = {"name": "m", "source": "s", "inputs": []}
    raw |= {"options": {}, "clock": None, "tables": {}, "unknown": [], "skipped": [], "stages": []}
    raw.pop(key, None)
    return raw


def _told(raw: dict[str, Any]) -> str:
    """The text of a run.json that says so, with the right checksum."""
    return json.dumps(
        {"format": FORMAT, **raw, "crc": zlib.crc32(json.dumps(raw, sort_keys=True).encode())}
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "7",
        '"text"',
        "{}",
        '{"format": "vizpub.store/0"}',
        '{"format": "vizpub.store/5"}',
        "[" * 100_000,
        _told({**_without("name"), "name": "../monday"}),
        _told({**_without("stages"), "stages": [7]}),
        *(
            _told(_without("tables") | {"tables": {"links": _entry(**leading)}})
            for leading in LEADING_OUT
        ),
        _told({}),
        json.dumps({**_without("crc"), "format": FORMAT, "crc": 1}),
        *(_told(_without(key)) for key in ("name", "source", "options")),
        _told({**_without("name"), "name": "m", "surprise": 1}),
        _told({**_without("tables"), "tables": []}),
        _told({**_without("tables"), "tables": {"links": {"directory": "x"}}}),
        _told({**_without("clock"), "clock": {"last": "1"}}),
    ],
)
def test_invalid_manifest_is_refused_with_its_path(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    with pytest.raises(StoreBroken) as caught:
        read_manifest(tmp_path)
    assert caught.value.path == str(tmp_path / FILE)


def test_undecodable_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoreBroken):
        read_manifest(tmp_path)


def test_facts_of_a_manifest_without_clock_are_refused() -> None:
    assert FULL.facts.clock == FULL.clock
    assert FULL.facts.layers == ("mesh", "overlay")
    assert FULL.facts.unknown == ("bytes",)
    with pytest.raises(StoreBroken, match=NO_INPUT_YET):
        _ = SMALL.facts


@pytest.mark.parametrize(
    ("options", "final", "settled"),
    [
        ({"message_window": 2}, 9, 7),
        ({"message_window": 2, "gap_tolerance": 1}, 8, 6),
        ({"message_window": None, "gap_tolerance": None}, 9, 2),
        ({"message_window": 0, "gap_tolerance": 60}, 2, 2),
    ],
)
def test_facts_of_a_run_that_was_appended_to_have_both_frontiers(
    options: dict[str, Any], final: int, settled: int
) -> None:
    """Without a window it is 64 intervals; what is not there yet ends before the first one."""
    made = replace(FULL, clock=Clock(1, None, 3, 9), options=options)
    assert (made.facts.final, made.facts.settled) == (None, None)
    grown = replace(made, generation=1).facts
    assert (grown.final, grown.settled) == (final, settled)


def test_stage_adds_its_tables_and_changes_nothing_else() -> None:
    entry = TableEntry("peers/1", 3)
    after = FULL.with_stage("index", {"peers": entry}, state="ingesting")
    assert after.stages == ("parse", "describe", "index")
    assert after.tables == {**FULL.tables, "peers": replace(entry, stage="index")}
    assert (after.state, FULL.state) == ("ingesting", "complete")
    assert "peers" not in FULL.tables


def test_table_digest_follows_directories_but_not_staged_ones() -> None:
    again = replace(FULL, tables={"links": TableEntry("links/4567", 5)})
    staged = replace(FULL, tables={**FULL.tables, "staged/a": TableEntry("staged/a/1", 5)})
    assert FULL.facts.tables != again.facts.tables
    assert FULL.facts.tables == staged.facts.tables != ""
    assert FULL.facts.known == staged.facts.known == ("links",)


def test_table_entry_lists_the_parts_of_all_ingests() -> None:
    (entry,) = GROWN.tables.values()
    assert [(part.directory, part.rows) for part in entry.parts] == [
        ("links/0", 1),
        ("links/1", 3),
        ("links/2", 5),
    ]
    assert GROWN.directories == {"links/0", "links/1", "links/2", "carry/last/0"}
    assert TableEntry("links/0123", 5).parts == (Part("links/0123", 5),)


@pytest.mark.parametrize(
    ("held", "since"),
    [
        ("first", Boundary(8, 3, 7)),
        ("second", Boundary(8, 5, 8)),
        ("third", Boundary(20, 7, 8)),
        ("earlier", None),
    ],
)
def test_boundary_since_earlier_tables_is_the_least_of_all(
    held: str, since: Boundary | None
) -> None:
    assert StoredRun(Path(), GROWN).boundary_since(held) == since
    assert StoredRun(Path(), SMALL).boundary_since(held) is None


def test_entry_inside_the_directory_is_read(tmp_path: Path) -> None:
    """Those of LEADING_OUT differ from it in one place each."""
    raw = _without("tables") | {"tables": {"links": _entry()}}
    (tmp_path / FILE).write_text(_told(raw), encoding="utf-8")
    (entry,) = read_manifest(tmp_path).tables.values()
    assert entry.files is not None
    assert entry.files[0].name == "a.parquet"


@pytest.mark.parametrize("key", ["older", "carry"])
def test_older_part_that_leads_out_of_the_directory_is_refused(tmp_path: Path, key: str) -> None:
    out = {"directory": "../other", "rows": 5}
    entry = _entry() | {"older": [out]}
    tables = {"tables": {"links": entry}} if key == "older" else {"carry": {"last": entry}}
    (tmp_path / FILE).write_text(_told(_without("x") | tables), encoding="utf-8")
    with pytest.raises(StoreBroken, match=NOT_IN_ITS_DIRECTORY):
        read_manifest(tmp_path)


_EIGHT_READERS = """
import sys, threading
from pathlib import Path
from vizpub.runstore.manifest import read_manifest
sys.setswitchinterval(1e-9)
start = threading.Barrier(8)
def read():
    start.wait()
    read_manifest(Path(sys.argv[1]))
threads = [threading.Thread(target=read) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_read_the_first_manifest_of_a_process_at_once(tmp_path: Path) -> None:
    """With the first use of the class in a thread, half of such processes crash."""
    write_manifest(tmp_path, FULL)
    command = [sys.executable, "-c", _EIGHT_READERS, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
