"""Bodies with very many lines. Other limits: `test_web`."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from vizpub.collector.http.bodies import BodyLimits, lines_in, lines_of, read_body

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


def posted(body: bytes, *codings: str) -> list[bytes]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    headers = [(b"content-encoding", coding.encode()) for coding in codings]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)

    async def read() -> list[bytes]:
        return await lines_in(await read_body(request, BodyLimits()), BodyLimits())

    return asyncio.run(read())


@pytest.mark.parametrize(
    "codings", [["deflate"], ["br"], ["gzip, gzip"], ["gzip", "gzip"], ["gzip, br"], ["odd"]]
)
def test_coding_that_is_not_taken_refuses_the_request(codings: list[str]) -> None:
    with pytest.raises(HTTPException, match="content-encoding") as refused:
        posted(gzip.compress(LINE), *codings)
    assert refused.value.status_code == 415


@pytest.mark.parametrize("codings", [[], ["identity"], ["gzip"], ["X-GZIP"]])
def test_coding_that_is_taken_is_told_by_the_first_bytes(codings: list[str]) -> None:
    for body in (LINE, gzip.compress(LINE)):
        assert posted(body, *codings) == [LINE.strip()]
