"""The copies of a growth are those of a load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import Batches
from vizpub.graphstore.load.batches import RunRows, level
from vizpub.graphstore.load.difference import copy_rows
from vizpub.graphstore.load.growing_copy import in_partition
from vizpub.graphstore.load.partitions import Partitions
from vizpub.model.clock import OPEN, Clock

PARTITIONS = Partitions(Clock(3, None, 2, 19), 4)
PERIODS = st.lists(
    st.tuples(st.integers(6, 59), st.integers(1, 40), st.booleans()).map(
        lambda drawn: (drawn[0], OPEN if drawn[2] else min(drawn[0] + drawn[1], 60))
    ),
    max_size=6,
)


@given(PERIODS, st.integers(0, 5))
def test_copies_of_rows_in_old_and_new_partitions_are_those_of_a_load(
    periods: list[tuple[int, int]], before: int
) -> None:
    told = [
        {"peer": n, "topic": 0, "valid_from": first, "valid_to": to}
        for n, (first, to) in enumerate(periods)
    ]
    rows = [[f"x/{n}", "x/0", *ends, level(*ends)] for n, ends in enumerate(periods)]
    run = RunRows("x", PARTITIONS.clock, ("t",), {}, PARTITIONS)
    wanted = []
    for _, batch in Batches({"subscriptions": told}).row_groups("subscriptions"):
        made = run.subscription_copies(batch)
        ends = (run.keys_of(made[name]).to_pylist() for name in ("start", "end"))
        others = (column.to_pylist() for column in made.columns[2:])
        wanted += [[*row] for row in zip(*ends, *others, strict=True)]
    found = [
        copy_rows("subscriptions", rows, PARTITIONS, among)
        for among in (range(before), range(before, PARTITIONS.count))
    ]
    assert sorted(found[0] + found[1]) == sorted(wanted)
    assert copy_rows("presence", rows, PARTITIONS, range(9)) == []


def test_statement_about_a_partition_names_its_type() -> None:
    text = "MATCH ()-[r:LINK_P0]->() // LINK_P0"
    assert in_partition(text, "LINK_P12") == "MATCH ()-[r:LINK_P12]->() // LINK_P0"
