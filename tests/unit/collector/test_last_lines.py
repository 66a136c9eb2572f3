"""Two peers with one name are noticed, in whatever order their reports come."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from vizpub.collector.last_lines import LastLines
from vizpub.model.errors import InputError


def told(interval: int, seq: int, content: str = "x") -> tuple[dict[str, Any], bytes]:
    return {"peer": "a", "interval": interval, "seq": seq}, content.encode()


@pytest.mark.parametrize("order", list(itertools.permutations([3, 4, 5])))
def test_conflict_in_any_open_interval_is_refused(order: tuple[int, ...]) -> None:
    marks = LastLines()
    for interval in order:
        marks.add(*told(interval, 7), 2)
    for interval in order:
        marks.add(*told(interval, 7), 2)  # sent twice
        with pytest.raises(InputError, match=f"interval {interval} "):
            marks.add(*told(interval, 7, "y"), 2)
        marks.add(*told(interval, 8, "y"), 2)
        with pytest.raises(InputError):
            marks.add(*told(interval, 8), 2)


def test_closed_intervals_are_forgotten_but_the_newest() -> None:
    marks = LastLines()
    for interval in range(10):
        marks.add(*told(interval, 7), interval - 1)
    assert sum(map(len, marks._marks.values())) == 1
    with pytest.raises(InputError):
        marks.add(*told(9, 7, "y"), 9)
    assert (len(marks), marks.greatest_interval, "a" in marks, "b" in marks) == (1, 9, True, False)


def test_peer_from_before_a_restart_conflicts_with_nothing() -> None:
    marks = LastLines({"a": 9})
    assert marks.greatest_interval == 9
    marks.add(*told(9, 7), 8)
    marks.add(*told(4, 7), None)
