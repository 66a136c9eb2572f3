from __future__ import annotations

import pyarrow as pa
import pytest

from graphstore.epochs import Epochs, copies, epochs_of
from model.clock import OPEN, Clock


def spans(*rows: tuple[int, int]) -> pa.RecordBatch:
    vf, vt = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    return pa.record_batch({"id": pa.array(range(len(rows))), "vf": vf, "vt": vt})


@pytest.mark.parametrize(
    ("intervals", "count"), [(1, 0), (7, 0), (8, 2), (9, 3), (12, 3), (13, 4), (400, 100)]
)
def test_a_run_below_two_epochs_has_none(intervals: int, count: int) -> None:
    assert epochs_of(Clock(1, None, 5, 4 + intervals), 4).count == count


@pytest.mark.parametrize("ticks", [1, 3])
@pytest.mark.parametrize("first", [0, 5])
def test_a_row_is_copied_into_every_epoch_it_is_alive_in(first: int, ticks: int) -> None:
    clock = Clock(ticks, None, first, first + 9)
    epochs = epochs_of(clock, 3)
    begin, end = first * ticks, (first + 10) * ticks
    every = [(vf, vt) for vf in range(begin, end) for vt in (*range(vf + 1, end + 1), OPEN)]
    found = copies(spans(*every), epochs).to_pylist()
    expected = [
        (id, epoch)
        for id, (vf, vt) in enumerate(every)
        for epoch in range(4)
        if any(vf <= t < vt for t in range(begin, end) if (t - begin) // (3 * ticks) == epoch)
    ]
    assert [(row["id"], row["epoch"]) for row in found] == expected
    assert all((row["vf"], row["vt"]) == every[row["id"]] for row in found)
    assert [epochs.at(t) for t in range(begin, end)] == [
        (t - begin) // (3 * ticks) for t in range(begin, end)
    ]


def test_what_lies_outside_the_run_is_in_its_first_or_last_epoch() -> None:
    epochs = Epochs(first_tick=10, ticks=5, count=3)
    found = copies(spans((0, 3), (40, 50), (24, 99)), epochs)
    assert list(zip(found["id"].to_pylist(), found["epoch"].to_pylist(), strict=True)) == [
        (0, 0), (1, 2), (2, 2),
    ]  # fmt: skip
    assert [epochs.at(t) for t in (0, 9, 10, 24, 25, 99)] == [0, 0, 0, 2, 2, 2]


def test_no_epochs_no_copies() -> None:
    found = copies(spans((0, 3)), epochs_of(Clock(1, None, 0, 3)))
    assert found.num_rows == 0
    assert found.schema.names == ["id", "vf", "vt", "epoch"]


def test_types_are_made_of_whole_numbers() -> None:
    assert Epochs(0, 5, 3).type("LINK", 2) == "LINK_E2"
