"""Whatever a line holds, it is one record or one refusal, and ends nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.staged import Staged, staged
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.reports.source import Reports
from vizpub.reports.fields import INT64

SEED = 1_414
DEEP = 100_000


def report(peer: str, interval: int, **fields: Any) -> dict[str, Any]:
    return {"format": "vizpub.report/1", "peer": peer, "interval": interval, **fields}


def taken(folder: Path, *lines: str | bytes, **options: Any) -> Staged:
    path = folder / "reports.ndjson"
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    file = InputFile(str(path), "ndjson", path.stat().st_size, "")
    return staged(Reports(), [file], SourceOptions(**options))


def text(record: dict[str, Any]) -> str:
    return json.dumps(record)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def gauged(numbers: str) -> str:
    """A report with these gauges."""
    return text(report("gauging", 1))[:-1] + f', "gauges": {{{numbers}}}}}'


NAMED = "1 to 64 letters, digits or any of _.-"
HALF = '"\\ud800"'
GOOD = text(report("good", 1, topics=["t"]))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD[:-1] + f', "more": {nested(DEEP)}}}', "not JSON"),
        (GOOD.replace('"good"', HALF), "'peer' has a control character"),
        (GOOD.replace('"t"', HALF), "'topics[]' has a control character"),
        (text({"format": "vizpub.run/1"})[:-1] + f', "parameters": {nested(101)}}}',
         "'parameters' is nested more than 100 deep"),
        (text({"format": "vizpub.run/1"})[:-1] + f', "parameters": {{"a": [{HALF}]}}}}',
         "'parameters' has half of a surrogate pair"),
        (text({"format": "vizpub.run/1"})[:-1] + f', "parameters": {{{HALF}: 1}}}}',
         "'parameters' has half of a surrogate pair"),
        (text(report("big", 1, duplicates=INT64 + 1)), "'duplicates' is too large"),
        (text(report("big", 1, received=[{"message": "m", "hops": 2**31}])),
         "'received[].hops' is too large"),
        (b'{"format": "vizpub.report/1", "peer": "\xff", "interval": 1}', "not UTF-8"),
        (gauged('"a":NaN'), "not JSON"),
        (gauged('"a":1e999'), "'gauges.a' is not finite"),
        (gauged('"a":-1e999'), "'gauges.a' is not finite"),
        (gauged(f'"a":1{"0" * 400}'), "'gauges.a' is not finite"),
        (gauged('"a":"1"'), "'gauges.a' is not a number"),
        (gauged('"a":true,"b":[]'), "'gauges.a' is not a number; 'gauges.b' is not a number"),
        (gauged('"a b":1'), f"'gauges' has a name that is not {NAMED}"),
        (gauged('"":1'), f"'gauges' has a name that is not {NAMED}"),
        (gauged(f'"{"a" * 65}":1'), f"'gauges' has a name that is not {NAMED}"),
        (gauged('"caf\\u00e9":1'), f"'gauges' has a name that is not {NAMED}"),
        (gauged(",".join(f'"a{n}":1' for n in range(101))), "'gauges' has more than 100 names"),
        (gauged("")[:-3] + "[]}", "'gauges' is not an object"),
        (GOOD + GOOD, "not JSON"),
        ("\0" * 100, "not JSON"),
        (b"\x85", "not UTF-8"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 50 else "line",
)  # fmt: skip
def test_bad_line_is_refused_alone(tmp_path: Path, line: str | bytes, reason: str) -> None:
    found = taken(tmp_path, GOOD, line, text(report("other", 2)))
    assert [(row[1], row[2]) for row in found.quarantine] == [(2, reason)]
    assert [record["peer"] for record in found.records] == ["good", "other"]


def test_run_header_that_is_refused_is_told_in_the_summary(tmp_path: Path) -> None:
    found = taken(tmp_path, '{"format": "vizpub.run/1", "counters": "totals"}', GOOD)
    told = Reports().describe(found.counted, SourceOptions())
    assert [n for note, n in told.notes.items() if "run headers" in note] == [1]


def test_gauges_are_kept_by_name_without_absent_ones(tmp_path: Path) -> None:
    """However they are spelled: only the contract's own judge takes an escape or a null."""
    lines = (
        gauged('"lookups":3,"queue.len-1_x":-2.5e-3,"zero":0'),
        gauged('"look\\u0075ps":4,"gone":null').replace('"gauging"', '"other"'),
        gauged("").replace('"gauging"', '"empty"'),
        gauged(",".join(f'"a{n}":1' for n in range(100))).replace('"gauging"', '"many"'),
    )
    found = taken(tmp_path, *lines)
    assert not found.quarantine
    rows = [tuple(row.values()) for row in found.tables["gauges"].to_pylist()]
    assert [row for row in rows if row[0] != "many"] == [
        ("gauging", 1, "lookups", 3.0),
        ("gauging", 1, "queue.len-1_x", -0.0025),
        ("gauging", 1, "zero", 0.0),
        ("other", 1, "lookups", 4.0),
    ]
    assert len(rows) == 104


def test_reports_that_differ_in_a_gauge_conflict(tmp_path: Path) -> None:
    found = taken(tmp_path, gauged('"a":1'), gauged('"a":1'), gauged('"a":2'))
    assert [row[1:3] for row in found.quarantine] == [(3, "conflicting report")]
    assert len(found.tables["gauges"]) == 1


def test_surrogate_in_an_unknown_field_is_counted_and_taken(tmp_path: Path) -> None:
    found = taken(tmp_path, GOOD[:-1] + f", {HALF}: {HALF}}}")
    told = Reports().describe(found.counted, SourceOptions())
    assert told.notes["unknown field \N{REPLACEMENT CHARACTER}"] == 1
    assert found.quarantine == []


def test_name_that_looks_like_an_object_stays_a_name(tmp_path: Path) -> None:
    odd = '{"peer":"victim"}'
    found = taken(tmp_path, text(report("a", 0, neighbors=[odd, {"peer": odd, "layer": "l"}])))
    links = found.tables["links"].to_pylist()
    assert {(link["dst"], link["layer"]) for link in links} == {(odd, "overlay"), (odd, "l")}


def test_line_beyond_the_limit_is_refused_alone(tmp_path: Path) -> None:
    found = taken(
        tmp_path, GOOD, GOOD[:-1] + " " * 1000 + "}", GOOD.replace("1", "1"), max_line=500
    )
    ((_, line, reason, kept),) = found.quarantine
    assert (line, reason) == (2, "longer than 500 bytes (--max-line)")
    assert kept.startswith(GOOD[:-1])


def test_sum_beyond_64_bits_is_unknown(tmp_path: Path) -> None:
    copies = [{"message": "m", "bytes": INT64}, {"message": "n", "bytes": 1}]
    found = taken(tmp_path, text(report("a", 0, received=copies)))
    (row,) = found.tables["traffic"].to_pylist()
    assert row["publication_messages_received"] == 2
    assert row["publication_bytes_received"] is None


def test_names_of_unknown_fields_are_told_apart_up_to_a_bound(tmp_path: Path) -> None:
    lines = [text({**report("a", n), f"field {n}": 1}) for n in range(1500)]
    found = taken(tmp_path, *lines)
    told = Reports().describe(found.counted, SourceOptions())
    counted = {name: n for name, n in told.notes.items() if name.startswith("unknown")}
    assert sum(counted.values()) == 1500
    assert len(counted) <= 1001


PIECES = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"-1", b"1.5", b"1e9"),
    *(b"9223372036854775808", b"\\u0000", b"\\ud83d", b"\xff", b"\xc2\x85", b"\x7f", b"\0", b"  "),
    *(b'"peer"', b'"interval"', b'"vizpub.run/1"', b'"left":true', b"99999999999", b"\r"),
]


def mutated(rng: random.Random, line: bytes) -> bytes:
    content = bytearray(line)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        start = rng.randrange(len(content) + 1)
        stop = min(len(content), start + rng.choice([0, 0, 1, 3, 20]))
        content[start:stop] = rng.choice([*PIECES, bytes([rng.randrange(256)])])
    return bytes(content).replace(b"\n", b" ")


def fuzzed(rng: random.Random, number: int) -> Iterator[bytes]:
    for n in range(number):
        record = report(
            f"peer-{n}",
            rng.randrange(5),
            neighbors=["a", {"peer": "b", "layer": "l", "topic": "t"}],
            topics=["t"],
            control={"sent": {"messages": 1, "bytes": 2}},
            sent=[{"message": f"m{n}", "hops": 0, "to": ["a"], "bytes": 5}],
            received=[{"message": "m", "from": "b", "hops": 1, "time_us": n}],
            run="fuzz",
        )
        yield mutated(rng, text(record).encode())


@pytest.mark.parametrize("number", [3000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_line_is_a_record_or_a_refusal(tmp_path: Path, number: int) -> None:
    print("seed", SEED)
    lines = list(fuzzed(random.Random(SEED), number))
    found = taken(tmp_path, *lines)
    blank = sum(not line.strip() for line in lines)
    counted = found.counted
    reports = sum(counted["runs"].values()) + counted["nameless"]
    refused = [row for row in found.quarantine if row[2] != "conflicting report"]
    headers = number - blank - reports - len(refused)
    assert 0 <= headers == sum(b"vizpub.run/1" in line for line in lines if not is_bad(line))
    assert len(found.tables["traffic"]) == reports - sum(counted["lost"].values())
    assert len({line for _, line, _, _ in refused}) == len(refused) > number // 10
    assert reports > number // 10


def is_bad(line: bytes) -> bool:
    """Whether Python's own reader takes it for no object, or it is no header."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return True
    return not isinstance(value, dict) or value.get("format") != "vizpub.run/1"
