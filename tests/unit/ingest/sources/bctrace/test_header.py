"""The first line of a trace of broadcasts."""

from __future__ import annotations

import json

import pytest

from vizpub.ingest.sources.bctrace.header import Header


@pytest.mark.parametrize("stated", [{}, {"t0": None}, {"t0": "0001-01-01T00:00:00Z"}])
def test_trace_without_a_start_begins_at_an_unknown_time(stated: dict[str, str | None]) -> None:
    """Go writes the first year for a time that was not set."""
    header = Header.parse(json.dumps({"v": 1, "nodes": ["a", "b"], **stated}).encode())
    assert header.t0 == 0
