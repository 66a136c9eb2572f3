"""The .avt format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vizpub.model.errors import InputError
from vizpub.simulators.world.availability import (
    LINE,
    NO_NODE_UP,
    NO_NUMBER,
    NOT_ASCENDING,
    read_availability,
)

S = 1_000_000


def written(folder: Path, text: str) -> str:
    (folder / "trace.avt").write_text(text)
    return str(folder / "trace.avt")


def test_stays_are_read_in_microseconds(tmp_path: Path) -> None:
    name = written(tmp_path, "ab\t2\t 1 2.5 7 9\ncd 0\nef 1 0 3\n")
    assert read_availability(name) == [[(S, 5 * S // 2), (7 * S, 9 * S)], [], [(0, 3 * S)]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a 1 0 3\nb 2 0 3\n", "avt:2: 2 .*2"),
        ("a 1 0\n", "avt:1: 1 session, .*1 time$"),
        ("a 1 0 x\n", f"avt:1: {NO_NUMBER}"),
        ("a 1 0 nan\n", f"avt:1: {NO_NUMBER}"),
        ("a 1 0 inf\n", f"avt:1: {NO_NUMBER}"),
        ("a 2 0 5 4 9\n", f"avt:1: {NOT_ASCENDING}"),
        ("a 1 3 3\n", f"avt:1: {NOT_ASCENDING}"),
        ("a 1 -1 3\n", f"avt:1: {NO_NUMBER}"),
        ("a\n", f"avt:1: {LINE}"),
        ("a b 1 2\n", f"avt:1: {LINE}"),
        ("a 0\n", NO_NODE_UP),
        ("", NO_NODE_UP),
    ],
)
def test_invalid_trace_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_availability(written(tmp_path, text))


def test_skype_trace_has_its_known_counts(outside_data: Callable[[str], Path]) -> None:
    nodes = read_availability(str(outside_data("skype.avt.gz")))
    assert (len(nodes), sum(map(len, nodes))) == (2081, 29_217)
    assert max(stays[-1][1] for stays in nodes if stays) == 2_478_200 * S
    up = {
        t: sum(any(start <= t * S < end for start, end in stays) for stays in nodes)
        for t in (0, 3600, 13_929, 43_200, 86_399, 604_800)
    }
    assert list(up.values()) == [133, 132, 805, 931, 700, 679]
