"""A snapshot becomes the line that the report would have become at once."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import StrEnum

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vizpub.reports.encoding import LineEncoder, Snapshot
from vizpub.reports.records import Report

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    plain | texts, lambda of: st.lists(of) | st.dictionaries(texts, of), max_leaves=8
)


def read(line: bytes) -> object:
    found = json.loads(line)
    del found["seq"], found["format"]
    return found


@given(st.dictionaries(texts.filter(lambda name: name not in ("seq", "format")), values))
def test_line_of_a_snapshot_is_that_of_the_report(told: dict[str, object]) -> None:
    wanted, lines = json.loads(json.dumps(told)), LineEncoder()
    found = lines.snapshot(told)
    assert isinstance(found, Snapshot)
    assert read(found.encode()) == read(lines.encode(told)) == wanted


def test_snapshot_of_other_classes_is_their_line() -> None:
    class Topic(StrEnum):
        NEWS = "news"

    told = OrderedDict(peer="a", topics=[Topic.NEWS])
    assert read(LineEncoder().snapshot({"told": told})) == {
        "told": {"peer": "a", "topics": ["news"]}
    }


def test_texts_and_numbers_of_numpy_are_what_json_makes_of_them() -> None:
    gauges = {"load": np.mean([1.0, 2.0]), "delay": np.float64(0.1), "lookups": 3}
    told = {"peer": np.str_("a"), "topics": list(np.array(["x", "y"])), "gauges": gauges}
    for lines in (LineEncoder().snapshot(told).encode(), LineEncoder().encode(told)):
        assert read(lines) == {
            "peer": "a",
            "topics": ["x", "y"],
            "gauges": {"load": 1.5, "delay": 0.1, "lookups": 3},
        }
    record = Report(peer="a", interval=0, gauges=gauges)
    assert json.loads(LineEncoder().snapshot(record).encode())["gauges"]["delay"] == 0.1
