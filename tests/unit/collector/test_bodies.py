"""Bodies with very many lines. Other limits: `test_web`."""

from __future__ import annotations

import gzip
import json

import pytest
from starlette.exceptions import HTTPException

from collector.bodies import BodyLimits, lines_of

LINE = json.dumps({"format": "vizpub.report/1", "peer": "a", "interval": 0}).encode() + b"\n"


@pytest.mark.parametrize("line", [b"\n", b"{}\n"])
def test_body_of_very_many_lines_is_refused(line: bytes) -> None:
    packed = gzip.compress(line * 10_000_000)  # a few kilobytes
    with pytest.raises(HTTPException, match="250,000 lines") as refused:
        lines_of(packed, BodyLimits())
    assert refused.value.status_code == 413


def test_lines_up_to_the_limit_are_taken() -> None:
    limits = BodyLimits(lines=3)
    assert lines_of(LINE * 3, limits) == [LINE.strip()] * 3
    assert lines_of(LINE * 2 + LINE.strip(), limits) == [LINE.strip()] * 3
    with pytest.raises(HTTPException, match="3 lines"):
        lines_of(LINE * 4, limits)
    with pytest.raises(HTTPException, match="3 lines"):
        lines_of(LINE * 3 + b"{", limits)
