"""Attributes as columns of the page, against the rows of the table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.grouped import KEY, play_groups, value_at
from tests.support.words import naming
from vizpub.explorer import columns
from vizpub.explorer.attributes import MOST_GROUPS, PREFIX, find_attributes
from vizpub.explorer.one_peer import describe_peer
from vizpub.model.errors import UnknownName
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run


def most_common(values: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(values, key=lambda value: (-values[value], value))[:MOST_GROUPS])


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_columns_have_the_values_at_the_ends_of_intervals(tmp_path: Path, seed: int) -> None:
    made = play_groups(tmp_path, seed)
    run, clock = NamedRun(open_run(tmp_path, made.name)), made.clock
    found = {attribute.key: attribute.groups for attribute in find_attributes(run)}
    assert found.pop("load") is None
    holders = {(row["key"], row["value"], row["peer"]) for row in made.rows["attributes"]}
    for key, groups in found.items():
        assert groups == most_common(Counter(value for of, value, _ in holders if of == key))
    for key in (*found, "load"):
        _, arrays = columns.block(run, PREFIX + key, 0)
        values = arrays["values"].reshape(clock.intervals, len(made.peers))
        for i, peer in np.ndindex(values.shape):
            value = value_at(made, peer, clock.sampling_tick(clock.first + i), key)
            if value is None:
                assert np.isnan(values[i, peer])
            elif key == "load":
                assert values[i, peer] == float(value)
            else:
                assert values[i, peer] == [*(found[key] or ()), value].index(value)
        of_one = columns.of_one(run, [PREFIX + key], 1)
        np.testing.assert_array_equal(of_one[0], values[:, 1])
    assert columns.extent(run, f"{PREFIX}load") == (0, (len(made.peers) - 1) / 2)


def test_peer_has_its_attributes_of_the_time(tmp_path: Path) -> None:
    made = play_groups(tmp_path, 1)
    run = NamedRun(open_run(tmp_path, made.name))
    for tick in (made.first, (made.first + made.last) // 2, made.last):
        values = {key: value_at(made, 0, tick, key) for key in (KEY, "country", "load", "zone")}
        held = sorted((key, value) for key, value in values.items() if value is not None)
        assert describe_peer(run, 0, tick)["attributes"] == held


def test_run_without_attributes_has_none(workspace: Path) -> None:
    run = NamedRun(open_run(workspace, "monday"))
    assert list(find_attributes(run)) == []
    assert describe_peer(run, 0, 0)["attributes"] == []
    with pytest.raises(UnknownName, match="client"):
        columns.block(run, f"{PREFIX}client", 0)


def test_unknown_attribute_is_refused(tmp_path: Path) -> None:
    run = NamedRun(open_run(tmp_path, play_groups(tmp_path, 0).name))
    with pytest.raises(UnknownName, match=naming("countr", "country")):
        columns.extent(run, f"{PREFIX}countr")
