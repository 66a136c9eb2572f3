"""Changes of an overlay that has grown, against the answers before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vizpub.explorer.changes import find_changes
from vizpub.explorer.periods import distinct, join_periods, ranks
from vizpub.model.clock import OPEN

Arrays = dict[str, np.ndarray]
_SPAN = 200


def overlay(seed: int, until: int, peers: int, *, closes: bool) -> Arrays:
    """An answer about a random run until a tick, whose links end there or are open."""
    rng = np.random.default_rng(seed)
    count = 20 * peers
    src, dst = rng.integers(0, peers, (2, count))
    begin = np.sort(rng.integers(0, _SPAN, count))
    end = begin + rng.integers(1, _SPAN // 2, count)
    seen = begin < until
    src, dst, begin, end = (column[seen] for column in (src, dst, begin, end))
    end[end >= until] = until if closes else OPEN
    joins = np.minimum(np.arange(peers) * 3, _SPAN - 1)
    joins = joins[joins < until]
    times = distinct(begin, end, joins)
    pairs = join_periods(src * peers + dst, ranks(times, begin), ranks(times, end))
    return {
        "times": times.astype(np.float64),
        "peer": np.arange(joins.size, dtype=np.int32),
        "peer_begin": ranks(times, joins),
        "peer_end": np.full(joins.size, times.size, np.int32),
        "src": (pairs.key // peers).astype(np.int32),
        "dst": (pairs.key % peers).astype(np.int32),
        "pair_begin": pairs.begin,
        "pair_end": pairs.end,
    }


def merge(old: Arrays, changes: Arrays) -> Arrays:
    """The new answer, row by row (page/changes.js does the same)."""
    times = np.append(old["times"][: changes["same"][0]], changes["times"])
    merged: dict[str, Any] = {"times": times}
    for kind, keys in (("peer", ("peer",)), ("pair", ("src", "dst"))):
        columns = (*keys, f"{kind}_begin", f"{kind}_end")
        rows = np.column_stack([old[name] for name in columns])
        rows[rows[:, -1] == old["times"].size, -1] = times.size
        rows = list(np.delete(rows, changes[f"{kind}_removed"].astype(int), axis=0))
        added = np.column_stack([changes[name] for name in columns])
        for place, row in zip(changes[f"{kind}_added"].tolist(), added, strict=True):
            rows.insert(place, row)
        table = np.array(rows, np.int32).reshape(-1, len(columns))
        merged |= {name: table[:, i] for i, name in enumerate(columns)}
    return merged


def grown(seed: int, *, closes: bool) -> tuple[Arrays, Arrays]:
    """The answers of a run and of the same run an interval later."""
    old, new = (overlay(seed, until, 12, closes=closes) for until in (100 + seed, 108 + seed))
    return old, new


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_changes_make_the_new_answer_of_the_old(seed: int, closes: bool) -> None:
    old, new = grown(seed, closes=closes)
    changes = find_changes(old, new)
    assert changes is not None
    merged = merge(old, changes)
    assert merged.keys() == new.keys()
    for name, values in new.items():
        np.testing.assert_array_equal(merged[name], values, name)


def test_unchanged_rows_are_not_sent() -> None:
    old, new = grown(3, closes=False)
    changes = find_changes(old, new)
    assert changes is not None
    assert changes["src"].size < new["src"].size / 3
    assert changes["times"].size == new["times"].size - old["times"].size
    same = find_changes(new, new)
    assert same is not None
    assert [name for name, values in same.items() if values.size and name != "same"] == []


def test_run_that_was_rebuilt_is_changed_as_well() -> None:
    old, new = overlay(1, 150, 12, closes=True), overlay(2, 90, 9, closes=True)
    changes = find_changes(old, new)
    assert changes is not None
    np.testing.assert_array_equal(merge(old, changes)["pair_end"], new["pair_end"])


def test_whole_answer_is_sent_where_links_became_known_or_peers_are_many() -> None:
    new = overlay(1, 150, 12, closes=True)
    old = {name: values for name, values in new.items() if name not in ("src", "dst")}
    assert find_changes(old, new) is None
    many = {**new, "peer": new["peer"] + 2**19}
    assert find_changes(new, many) is None
