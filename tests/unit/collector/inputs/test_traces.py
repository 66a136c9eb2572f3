"""Traces that grow in pieces of any size, against the whole trace."""

from __future__ import annotations

import gzip
import json
import random
import resource
import zlib
from pathlib import Path

import pytest

from tests.support.words import naming, tells
from vizpub.collector.inputs.traces import CUT, NO_TRACE, GrowingTrace, Traces
from vizpub.ingest.sources.libp2p.events import TraceEvent
from vizpub.ingest.sources.libp2p.protobuf import IMPOSSIBLE_LENGTH
from vizpub.model.errors import InputError

SMALL = Path(__file__).parents[4] / "tests/data/libp2p_small"
NODE = "12D3KooWG3Bn8FmY7KHjxFdLRDP9c2fyTrDSnwA7XRAuDvkAMtgJ"
JSON = gzip.decompress((SMALL / f"json/{NODE}.ndjson.gz").read_bytes())
PROTOBUF = (SMALL / f"one_node.{NODE}.pb").read_bytes()


def members(content: bytes) -> bytes:
    """As gzip that was begun anew now and then, and flushed never."""
    half = len(content) // 2
    return gzip.compress(content[:half]) + gzip.compress(content[half:])


FORMS: dict[str, bytes] = {
    "json": JSON,
    "protobuf": PROTOBUF,
    "json.gz": gzip.compress(JSON),
    "joined": JSON.replace(b'{"type"', b'\xef\xbb\xbf{"type"'),
    "protobuf.gz": members(PROTOBUF),
}


def all_of(traces: Traces) -> list[TraceEvent]:
    found: list[TraceEvent] = []
    traces.look()
    while (events := traces.read()) is not None:
        found += events
    return found


def told(events: list[TraceEvent]) -> list[tuple[object, ...]]:
    return [(e.type, e.peer, e.time, e.other, e.topic, e.message) for e in events]


def test_forms_have_the_same_events(tmp_path: Path) -> None:
    times = [json.loads(line)["timestamp"] for line in JSON.splitlines()]
    for name, content in FORMS.items():
        (tmp_path / name).write_bytes(content)
        with Traces([tmp_path / name], print) as traces:
            found = all_of(traces)
        assert [event.time for event in found] == times, name
        assert {event.peer for event in found} == {NODE}, name
        assert (traces.rest(), traces.refusals) == ([], {})
        assert traces.last_ns == max(times)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_trace_that_grows_gives_each_event_once(tmp_path: Path, form: str, seed: int) -> None:
    """Also where it is renamed meanwhile, as by a rotation, and another begins in its place."""
    print("seed", seed)
    rng, content, name = random.Random(seed), FORMS[form], "current"
    found = list[TraceEvent]()
    (tmp_path / name).touch()
    with Traces([tmp_path], print) as traces:
        while content:
            size = rng.choice([1, 7, 100, 5000, 20_000])
            with (tmp_path / name).open("ab") as file:
                file.write(content[:size])
            content = content[size:]
            if rng.random() < 0.1:
                (tmp_path / name).rename(tmp_path / "trace.1.pb.gz")
                name = "trace.1.pb.gz"
                (tmp_path / "current").touch()
            found += all_of(traces)
    (tmp_path / "whole").write_bytes(FORMS[form])
    with Traces([tmp_path / "whole"], print) as whole:
        wanted = all_of(whole)
    assert wanted
    assert told(found) == told(wanted)


def test_trace_that_was_cut_is_read_anew(tmp_path: Path) -> None:
    """As by a rotation that copies it and empties the file."""
    file, said = tmp_path / "trace.json", list[str]()
    lines = JSON.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-3]))
    with Traces([tmp_path], said.append) as traces:
        found = all_of(traces)
        file.write_bytes(b"")
        found += all_of(traces)
        file.write_bytes(b"".join(lines[-3:]))
        found += all_of(traces)
    assert [event.time for event in found] == [json.loads(line)["timestamp"] for line in lines]
    assert said == [f"{file} {CUT}"]


def test_files_are_read_side_by_side(tmp_path: Path) -> None:
    """What is read is whole up to `behind_ns`, whatever the sizes of the files."""
    for path in (SMALL / "json").iterdir():
        (tmp_path / path.name).write_bytes(gzip.decompress(path.read_bytes()))
    seen, limits = list[TraceEvent](), list[tuple[int, int]]()
    with Traces([tmp_path], print) as traces:
        traces.look()
        while (events := traces.read()) is not None:
            seen += events
            if traces.behind_ns is not None:
                limits.append((traces.behind_ns, len(seen)))
    assert len(limits) > 10
    for limit, count in limits:
        assert all(event.time >= limit for event in seen[count:])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello\n" * 300_000, NO_TRACE),
        (gzip.compress(JSON)[:50] + b"\0" * 500, "rror"),
        (b"\x28\xb5\x2f\xfd....", "zstandard"),
    ],
)
def test_named_file_that_is_no_trace_is_an_error(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    with Traces([path], print) as traces, pytest.raises(InputError, match=why):
        all_of(traces)
    with pytest.raises(InputError, match=naming(tmp_path / "nowhere")):
        Traces([tmp_path / "nowhere"], print)


def test_damage_is_told_and_other_files_go_on(tmp_path: Path) -> None:
    lines = JSON.splitlines(keepends=True)
    good, said = lines[0], list[str]()
    packed = gzip.compress(b"".join(lines), 0)
    (tmp_path / "a").write_bytes(packed[: len(packed) // 2] + b"\xff" * 70_000)
    (tmp_path / "b").write_bytes(good + b"not json\n" + good + good[:20])
    (tmp_path / "readme").write_bytes(b"hello\n" * 300_000)
    with Traces([tmp_path], said.append) as traces:
        found = all_of(traces)
    assert [told([event]) for event in found].count(told(found[:1])) >= 2
    assert len(said) == 1
    assert str(tmp_path / "a") in said[0]
    assert sum(traces.refusals.values()) == 1
    assert traces.rest()[-1] == f"{tmp_path / 'b'} ends inside a record"


def test_protobuf_with_an_impossible_length_is_told(tmp_path: Path) -> None:
    path, said = tmp_path / "a", list[str]()
    path.write_bytes(PROTOBUF + b"\xff" * 20)
    with Traces([path], said.append) as traces:
        assert len(all_of(traces)) == len(JSON.splitlines())
    tells(said[0], path, IMPOSSIBLE_LENGTH)


def test_compressed_trace_is_read_as_far_as_it_was_flushed(tmp_path: Path) -> None:
    path, packer = tmp_path / "current", zlib.compressobj(wbits=31)
    path.write_bytes(packer.compress(JSON) + packer.flush(zlib.Z_SYNC_FLUSH))
    with Traces([path], print) as traces:
        assert len(all_of(traces)) == len(JSON.splitlines())
        with path.open("ab") as file:
            file.write(packer.flush())
        assert all_of(traces) == []


def test_growing_trace_has_no_event_before_its_first_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(JSON[:30])
    trace = GrowingTrace(path)
    assert (trace.read(), trace.is_trace, trace.is_behind) == ([], False, False)
    trace.close()


def test_more_files_are_followed_than_the_system_allows_at_first(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(300):
        (tmp_path / f"{number}.json").write_text("{}\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with Traces([tmp_path], print) as traces:
            traces.look()
            assert traces.read() == []
            assert traces.read() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
