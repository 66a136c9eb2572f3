"""The expression for plainly spelled reports, against the contract's own judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.fuzz import spoilt
from tests.support.reported import reports
from vizpub.ingest.sources.reports.plain import FEW, find_plain_reports
from vizpub.reports.files import parse, unknown_fields
from vizpub.reports.records import Report

GAUGES = '{"a": 1, "b.c": -0.5, "d": 12345678901234567890123, "e": 1e99, "f": -0, "g": 2E-7}'

TOO_MANY = ", ".join(f'"{name}": 1' for name in range(101))


def lines(rng: Random) -> Iterator[str]:
    """Reports as programs write them, with their fields in any order, with spaces or without."""
    while True:
        for record in reports(rng.randrange(99))[1:]:
            ordered = Report.from_json(record).to_json()
            fields = [*ordered.items(), ("seq", rng.randrange(9)), ("left", rng.random() < 0.5)]
            rng.shuffle(fields)
            separators = rng.choice([(",", ":"), (", ", ": ")])
            text = json.dumps(dict(fields), ensure_ascii=False, separators=separators)
            yield text[:-1] + (f', "gauges": {GAUGES}}}' if rng.random() < 0.3 else "}")


def plain_ones(texts: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Those that are found, with their facts."""
    assert len(texts) >= FEW
    is_plain, facts = find_plain_reports(pa.array(texts, pa.string()))
    plain = [texts[place] for place in np.flatnonzero(is_plain).tolist()]
    return [*zip(plain, facts.to_pylist(), strict=True)]


def check(text: str, facts: dict[str, Any]) -> None:
    value, wrong = parse(text)
    assert not wrong, text
    assert not unknown_fields(value), text
    assert value["format"] == "vizpub.report/1"
    for name in ("run", "peer", "interval", "seq"):
        assert facts[name] == value.get(name), text


def test_reports_of_programs_are_plain() -> None:
    texts = [*islice(lines(Random(1)), 2000)]
    found = plain_ones(texts)
    assert [text for text, _ in found] == texts
    for text, facts in found:
        check(text, facts)


@pytest.mark.parametrize("number", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_plain_report_is_one_that_the_contract_takes(number: int) -> None:
    rng, made, plain = Random(number), lines(Random(2)), 0
    for _ in range(0, number, 10_000):
        spoiled = (spoilt(rng, next(made).encode()) for _ in range(10_000))
        texts = [text.decode("utf-8", "replace") for text in spoiled]
        for text, facts in plain_ones(texts):
            check(text, facts)
            plain += 1
    assert number // 50 < plain < number  # neither all nor none


ODD = [
    *('{"peer": "a", "interval": 0}', '{"format": "vizpub.report/1", "interval": 0}'),
    '{"format": "vizpub.report/1", "peer": "a"}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 0, "interval": 0}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 0, "gauges": {"b": 1, "b": 1}}',
    f'{{"format": "vizpub.report/1", "peer": "a", "interval": 0, "gauges": {{{TOO_MANY}}}}}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 2147483647}',
    '{"format": "vizpub.report/1", "peer": "a\\u0001", "interval": 0}',
    '{"format": "vizpub.report/1", "peer": "a\x85", "interval": 0}',
    '{"format": "vizpub.report/1", "peer": "", "interval": 0}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 0, "colour": 1}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 0, "sent": [{"to": ["b"]}]}',
    '{"format": "vizpub.report/1", "peer": "a", "interval": 00}',
    *("", " ", "{}", "null", '{"format": "vizpub.run/1"}'),
]


@pytest.mark.parametrize("odd", ODD)
def test_other_lines_are_left_to_the_judge(odd: str) -> None:
    plain = '{"format": "vizpub.report/1", "peer": "a", "interval": 0}'
    assert [text for text, _ in plain_ones([odd, *[plain] * FEW])] == [plain] * FEW


def test_line_that_differs_from_others_in_one_order_is_judged_by_itself() -> None:
    start = '{"interval": 0, "format": "vizpub.report/1", "peer": "a"'
    usual = f'{start}, "gauges": {{"b": 1}}, "duplicates": 2}}'
    good = [
        f"{start}}}",
        f'{start}, "duplicates": 2, "gauges": {{"b": 1}}}}',
        f'{start}, "gauges": {{}}, "duplicates": 2}}',
        f'{start}, "gauges": {{"b": 1}}, "left": true}}',
        '{"interval": 0, "format": "vizpub.report/1", "peer": "gauges"}',
    ]
    bad = [
        *ODD,
        f'{start}, "gauges": {{"b": 1, "b": 1}}, "duplicates": 2}}',
        f'{start}, "gauges": {{{TOO_MANY}}}, "duplicates": 2}}',
        f'{start}, "gauges": {{}}, "duplicates": 2, "duplicates": 2}}',
        f'{start}, "gauges": {{}}, "duplicates": 2, "interval": 0}}',
        '{"interval": 0, "format": "vizpub.report/1", "gauges": {}}',
    ]
    found = plain_ones([usual] * FEW + [*good, *bad] * FEW)  # so many are judged together
    assert [text for text, _ in found] == [usual] * FEW + good * FEW
    for text, facts in found[FEW:]:
        check(text, facts)


def test_lines_of_which_none_shows_an_order_are_left_to_the_judge() -> None:
    assert plain_ones(["[" * 100_000, *["{}"] * FEW]) == []
