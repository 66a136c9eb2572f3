"""The report contract: written, read back, judged."""

from __future__ import annotations

import copy
import gzip
import json
import os
import re
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.words import naming
from vizpub.ingest.sources.reports.decoding import decode_plain
from vizpub.model.errors import InputError
from vizpub.reports.fields import END, LAST_INTERVAL, REPORT, RUN
from vizpub.reports.files import (
    ReportReader,
    ReportWriter,
    from_json,
    parse,
    problems,
    unknown_fields,
)
from vizpub.reports.records import (
    Counters,
    Neighbor,
    Received,
    Report,
    Role,
    RunEnd,
    RunHeader,
    Sent,
)

FULL: dict[str, Any] = {
    "format": "vizpub.report/1",
    "run": "poldercast-1",
    "peer": "17",
    "interval": 42,
    "seq": 43,
    "neighbors": ["3", {"peer": "99", "layer": "rings", "topic": "7"}],
    "topics": ["7", "12"],
    "roles": [{"role": "rendezvous", "topic": "7"}],
    "attributes": [{"key": "client", "value": "prysm"}],
    "control": {
        "sent": {"messages": 12, "bytes": 4023},
        "received": {"messages": 9, "bytes": 3980},
    },
    "control_kinds": [{"kind": "ihave", "topic": "7", "messages_sent": 4, "ids_sent": 31}],
    "publication": {
        "sent": {"messages": 2, "bytes": 1024},
        "received": {"messages": 1, "bytes": 512},
    },
    "duplicates": 0,
    "rpcs_sent": 11,
    "rpcs_received": 8,
    "gauges": {"lookups": 3, "hops": 11},
    "sent": [
        {
            "message": "m1",
            "topic": "7",
            "publisher": "17",
            "to": ["3", "99"],
            "hops": 0,
            "time_us": 42000100,
            "bytes": 512,
        }
    ],
    "received": [
        {
            "message": "m0",
            "topic": "7",
            "publisher": "5",
            "from": "99",
            "hops": 3,
            "time_us": 42000050,
            "bytes": 512,
            "subscribed": True,
        }
    ],
}

keys = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from('"\\{}[],:é'), min_size=1
)
counts = st.integers(0, 2**63 - 1)
small = st.integers(0, 2**31 - 1)
gauge_names = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
finite = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return maybe(st.lists(strategy, max_size=3).map(tuple))


copies = {
    "message": keys,
    "topic": maybe(keys),
    "publisher": maybe(keys),
    "hops": maybe(small),
    "time_us": maybe(counts),
    "bytes": maybe(counts),
    "resent": maybe(st.booleans()),
}
counters = st.builds(Counters, *[maybe(counts)] * 4)
reports = st.builds(
    Report,
    run=maybe(keys),
    peer=keys,
    interval=st.integers(0, LAST_INTERVAL),
    seq=maybe(counts),
    neighbors=some(st.builds(Neighbor, keys, keys, maybe(keys))),
    topics=some(keys),
    roles=some(st.builds(Role, keys, maybe(keys))),
    control=maybe(counters),
    publication=maybe(counters),
    duplicates=maybe(counts),
    rpcs_sent=maybe(counts),
    rpcs_received=maybe(counts),
    gauges=maybe(st.dictionaries(gauge_names, finite, max_size=3)),
    sent=some(st.builds(Sent, **copies, to=some(keys))),
    received=some(
        st.builds(Received, **copies, from_peer=maybe(keys), subscribed=maybe(st.booleans()))
    ),
    left=st.booleans(),
)
headers = st.builds(
    RunHeader,
    run=maybe(keys),
    protocol=maybe(keys),
    parameters=st.dictionaries(keys, st.integers() | keys, max_size=3),
    seed=maybe(st.integers(-(2**63) + 1, 2**63 - 1)),
    interval_us=maybe(st.integers(1, 2**63 - 1)),
    epoch=maybe(st.datetimes().map(lambda time: time.isoformat() + "Z")),
    counters=st.sampled_from(["delta", "total"]),
    lists=maybe(st.sampled_from(["partial", "complete"])),
    unknown=st.lists(keys, max_size=2).map(tuple),
)
records = reports | headers | st.builds(RunEnd, st.integers(0, LAST_INTERVAL), maybe(keys))


@given(records)
def test_record_survives_json(record: Report | RunHeader | RunEnd) -> None:
    value, wrong = parse(json.dumps(record.to_json()))
    assert wrong == []
    assert unknown_fields(value) == []
    assert from_json(value) == record


def test_contract_example_is_read_and_written_back() -> None:
    report = from_json(FULL)
    assert isinstance(report, Report)
    assert report.neighbors == (Neighbor("3"), Neighbor("99", "rings", "7"))
    assert report.control == Counters(12, 4023, 9, 3980)
    assert report.sent is not None
    assert report.sent[0].to == ("3", "99")
    assert report.received is not None
    assert report.received[0].from_peer == "99"
    assert not report.left
    assert report.to_json() == FULL


def test_absent_field_stays_unknown_and_empty_field_stays_empty() -> None:
    least = {"format": "vizpub.report/1", "peer": "17", "interval": 0}
    report = Report(peer="17", interval=0)
    assert report.to_json() == least
    assert from_json(least) == report
    assert from_json({**least, "topics": None}) == report
    assert from_json({**least, "topics": [], "neighbors": []}) == Report(
        peer="17", interval=0, topics=(), neighbors=()
    )


def changed(path: str, value: object) -> dict[str, Any]:
    record: Any = copy.deepcopy(FULL)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner = record
    for step in way:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return record  # type: ignore[no-any-return]


WRONG = [
    ("format", ..., "no 'format'"),
    ("format", "vizpub.report/2", "unknown format 'vizpub.report/2'"),
    ("format", 1, "unknown format 1"),
    ("peer", ..., "no 'peer'"),
    ("peer", None, "no 'peer'"),
    ("peer", 17, "'peer' is not a string"),
    ("peer", "", "'peer' is empty"),
    ("peer", "a\nb", "'peer' has a control character"),
    ("peer", "a\x7f", "'peer' has a control character"),
    ("peer", "\ud800", "'peer' has a control character"),
    ("interval", ..., "no 'interval'"),
    ("interval", "42", "'interval' is not an integer"),
    ("interval", 42.0, "'interval' is not an integer"),
    ("interval", True, "'interval' is not an integer"),
    ("interval", -1, "'interval' is negative"),
    ("interval", 2**31 - 1, "'interval' is too large"),
    ("seq", -1, "'seq' is negative"),
    ("neighbors", "3", "'neighbors' is not an array"),
    ("neighbors.0", 3, "'neighbors[]' is not a string"),
    ("neighbors.0", None, "'neighbors[]' is not a string"),
    ("neighbors.1.peer", ..., "no 'neighbors[].peer'"),
    ("neighbors.1.layer", 1, "'neighbors[].layer' is not a string"),
    ("topics.1", "\t", "'topics[]' has a control character"),
    ("roles.0.role", ..., "no 'roles[].role'"),
    ("control", 12, "'control' is not an object"),
    ("control.sent.messages", -12, "'control.sent.messages' is negative"),
    ("control_kinds", {}, "'control_kinds' is not an array"),
    ("control_kinds.0.kind", ..., "no 'control_kinds[].kind'"),
    ("control_kinds.0.kind", "a\x85", "'control_kinds[].kind' has a control character"),
    ("control_kinds.0.topic", 7, "'control_kinds[].topic' is not a string"),
    ("control_kinds.0.messages_sent", -1, "'control_kinds[].messages_sent' is negative"),
    ("control_kinds.0.ids_sent", 2**63, "'control_kinds[].ids_sent' is too large"),
    ("publication.received.bytes", 1.5, "'publication.received.bytes' is not an integer"),
    ("duplicates", 2**63, "'duplicates' is too large"),
    ("rpcs_sent", -1, "'rpcs_sent' is negative"),
    ("left", 1, "'left' is not true or false"),
    ("sent.0.message", ..., "no 'sent[].message'"),
    ("sent.0.to", "3", "'sent[].to' is not an array"),
    ("sent.0.hops", 2**31, "'sent[].hops' is too large"),
    ("received.0.message", "", "'received[].message' is empty"),
    ("received.0.from", 99, "'received[].from' is not a string"),
    ("received.0.time_us", -1, "'received[].time_us' is negative"),
]


@pytest.mark.parametrize(("path", "value", "reason"), WRONG)
def test_invalid_report_field_is_refused_with_the_reason(
    path: str, value: object, reason: str
) -> None:
    record = changed(path, value)
    assert problems(record) == [reason]
    assert decode_plain(json.dumps(record).encode()) is None
    with pytest.raises(InputError, match=re.escape(reason)):
        from_json(record)


@pytest.mark.parametrize(
    "line",
    [
        '{"format":"vizpub.report/1","peer":"a","peer":"b","interval":0}',
        '{"format":"vizpub.report/1","peer" :"a","peer":"b","interval":0}',
        '{"format":"vizpub.report/1","peer":"a","peer"\t:"b","interval":0,"seq":null}',
        '{"format":"vizpub.report/1","peer":"a","interval":0,"seq":null,"seq":1}',
        '{"format":"vizpub.report/1","peer":":","interval":0,"topics":["\\":"],"topics":[]}',
        '{"format":"vizpub.report/1","peer":"a","interval":0,"gauges":{"a":1,"a":1}}',
        '{"format":"vizpub.report/1","peer":"a","interval":0,"more":[{"a":1,"a":2}]}',
        '{"format":"vizpub.run/1","parameters":{"a":1,"a":2}}',
    ],
)
def test_key_that_appears_twice_is_refused(line: str) -> None:
    assert parse(line)[1] == ["a key appears twice"]
    assert decode_plain(line.encode()) is None


def test_last_interval_is_accepted_and_the_next_one_refused() -> None:
    last = 2**31 - 2
    assert problems({"format": "vizpub.report/1", "peer": "a", "interval": last}) == []
    assert problems({"format": "vizpub.end/1", "last_interval": last}) == []
    beyond = {"format": "vizpub.end/1", "last_interval": last + 1}
    assert problems(beyond) == ["'last_interval' is too large"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("counters", "sum", "'counters' is not delta or total"),
        ("interval_us", 0, "'interval_us' is zero"),
        ("epoch", "yesterday", "'epoch' is not a time"),
        ("epoch", 12, "'epoch' is not a time"),
        ("parameters", [], "'parameters' is not an object"),
        ("parameters", {"a": [1e999]}, "'parameters' has a number that is not finite"),
        ("seed", "1", "'seed' is not an integer"),
    ],
)
def test_invalid_run_header_field_is_told_as_a_problem(
    path: str, value: object, reason: str
) -> None:
    assert problems({"format": "vizpub.run/1", path: value}) == [reason]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ("{} {}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ("null", "not an object"),
        (b'{"peer": "\xff"}', "not UTF-8"),
    ],
)
def test_line_without_a_json_object_has_a_problem(line: str | bytes, reason: str) -> None:
    assert parse(line)[1] == [reason]


def test_problem_of_many_entries_is_told_once() -> None:
    assert problems(changed("topics", [1, 2, 3])) == ["'topics[]' is not a string"]


def test_unknown_fields_are_named_by_their_path() -> None:
    record = changed("colour", "red")
    record["sent"] = [{"message": "a", "size": 1}, {"message": "b", "size": 2}]
    record["control"]["sent"]["lost"] = 1
    assert problems(record) == []
    assert set(unknown_fields(record)) == {"colour", "sent[].size", "control.sent.lost"}


@given(reports)
def test_plain_report_is_decoded_without_a_second_look(report: Report) -> None:
    text = json.dumps(report.to_json(), ensure_ascii=False).encode()
    found = decode_plain(text)
    assert found is not None or b"\\" in text or b"\xc2" in text
    if found is not None:
        told = json.loads(text)
        assert {name: without_nulls(getattr(found, name)) for name in FULL} == {
            name: told.get(name) for name in FULL
        }


def without_nulls(value: Any) -> Any:
    """A decoded value as the contract writes it."""
    value = msgspec.to_builtins(value)
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


def test_very_long_report_is_decoded_without_a_second_look() -> None:
    record = {**FULL, "received": FULL["received"] * 20_000, "topics": ["t"] * 20_000}
    found = decode_plain((json.dumps(record) + " \r").encode())
    assert len(found.received) == len(record["received"])


mutations = st.sampled_from(
    [
        "}",
        "{",
        "]",
        "[",
        ",",
        ":",
        '"',
        "-",
        "0",
        "1.5",
        "null",
        "17",
        "\\",
        " ",
        "\t",
        "true",
        '""',
    ]
)


@given(reports, st.data())
def test_plain_report_has_no_problems(report: Report, data: st.DataObject) -> None:
    """Any line that is taken without a second look is a sound report."""
    text = json.dumps(report.to_json(), ensure_ascii=False)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(start + 6, len(text))))
        text = text[:start] + data.draw(mutations) + text[stop:]
    line = text.encode("utf-8", "surrogatepass")
    if decode_plain(line) is not None:
        value, wrong = parse(line)
        assert wrong == []
        assert unknown_fields(value) == []


def write(path: Path, *intervals: int) -> bytes:
    with ReportWriter(path, RunHeader(run="a", interval_us=1_000_000)) as writer:
        for interval in intervals:
            writer.write(Report(run="a", peer="é", interval=interval, topics=("t",)))
        writer.end(last_interval=intervals[-1])
    return path.read_bytes()


@pytest.mark.parametrize("name", ["a.ndjson", "deep/er/a.ndjson.gz"])
def test_written_reports_are_read_back(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, 0, 1)
    reader = ReportReader(tmp_path / name)
    found = list(reader)
    assert [line.number for line in found] == [1, 2, 3, 4]
    assert [type(line.record) for line in found] == [RunHeader, Report, Report, RunEnd]
    assert found[1].record == Report(run="a", peer="é", interval=0, topics=("t",))
    assert found[3].record == RunEnd(1, "a")
    assert reader.damage is None


def test_report_file_of_the_same_records_is_identical(tmp_path: Path) -> None:
    first = write(tmp_path / "a.ndjson.gz", *range(500))
    assert write(tmp_path / "other.ndjson.gz", *range(500)) == first
    assert gzip.decompress(first) == write(tmp_path / "a.ndjson", *range(500))


def test_report_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    with ReportWriter(path) as writer:
        writer.write(Report(peer="1", interval=0))
        assert not path.exists()
    before = path.read_bytes()
    with suppress(KeyError), ReportWriter(path) as writer:
        writer.write(Report(peer="2", interval=0))
        raise KeyError
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ndjson"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_writer_refuses_an_invalid_report(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    with (
        pytest.raises(InputError, match=naming("Report", "'interval'")),
        ReportWriter(path) as writer,
    ):
        writer.write(Report(peer="1", interval=-1))
    assert not path.exists()


def test_truncated_gzip_gives_its_readable_part(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(write(path, *range(2000))[:-3000])
    reader = ReportReader(path)
    *whole, last = list(reader)
    assert reader.damage == "truncated gzip"
    assert len(whole) > 100
    assert [line.record.interval for line in whole[1:] if isinstance(line.record, Report)] == list(
        range(len(whole) - 1)
    )
    assert (last.record, last.problems) == (None, ("not JSON",))


def test_line_number_of_a_bad_line_counts_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    good = json.dumps({"format": "vizpub.report/1", "peer": "1", "interval": 0})
    path.write_text(f"{good}\n\nnonsense\n  \n{good}\r\n")
    found = [(line.number, line.record is not None, line.problems) for line in ReportReader(path)]
    assert found == [(1, True, ()), (3, False, ("not JSON",)), (5, True, ())]


def test_record_fields_equal_the_grammar_fields() -> None:
    spelled = {"from_peer": "from"}
    for kind, grammar in [
        (Report, REPORT),
        (RunHeader, RUN),
        (RunEnd, END),
    ]:
        names = {spelled.get(f.name, f.name) for f in fields(kind)} | {"format"}
        assert names == set(grammar.fields)


PAGE = (Path(__file__).parents[3] / "docs" / "sources.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_page_records_are_valid_and_name_every_field() -> None:
    report, header, end = (json.loads(block) for block in blocks("json"))
    assert report == FULL
    assert set(header) == set(RUN.fields)
    assert set(end) == set(END.fields)
    assert problems(header) == problems(end) == []


def test_page_example_writes_valid_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(example, {})
    reader = ReportReader("reports/ring.ndjson.gz")
    assert [line.problems for line in reader] == [()] * 14


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("peer", ["a", "\u00fc"])
def test_line_is_utf8_and_nothing_else(encoding: str, peer: str) -> None:
    """What a reader guesses here, another one of the same file would refuse."""
    text = f'{{"format": "vizpub.report/1", "peer": "{peer}", "interval": 0}}'
    assert parse(text.encode()) == parse(text.encode("utf-8-sig")) == parse(text)
    assert parse(text)[0]["peer"] == peer
    assert parse(text.encode(encoding))[1] in (["not JSON"], ["not UTF-8"])
