"""The overlay of a run that has grown, as changes to what a page has of it (page/changes.js).

Both answers are arrays as `History.overlay` gives them, whose rows are ordered by key and begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vizpub.explorer.periods import MOST_RANKS
from vizpub.model.arrays import Int64s

Arrays = Mapping[str, npt.NDArray[Any]]
_KEYS = {"peer": ("peer",), "subscriber": ("subscriber",), "pair": ("src", "dst")}
_MOST_PEERS = 2**19
"""Below it, a pair and a rank are one integer of 64 bits."""


def find_changes(old: Arrays, new: Arrays) -> dict[str, npt.NDArray[Any]] | None:
    """Find the changes from the old to the new answer; null where the whole answer is as good.

    `times` are those after the first `same`; of each kind of rows, `…_removed` are places in the
    old answer and `…_added` places in the new one, whose values are in the columns. A rank of the
    open end is the number of times, in both.
    """
    if old.keys() != new.keys() or max(_most_peer(old), _most_peer(new)) >= _MOST_PEERS:
        return None
    length = min(old["times"].size, new["times"].size)
    differs = np.flatnonzero(old["times"][:length] != new["times"][:length])
    same = int(differs[0]) if differs.size else length
    changes: dict[str, npt.NDArray[Any]] = {
        "same": np.array([same], np.uint32),
        "times": new["times"][same:],
    }
    for kind, keys in _KEYS.items():
        if keys[0] in new:
            changes |= _find_row_changes(kind, keys, old, new, same)
    return changes


def _most_peer(arrays: Arrays) -> int:
    names = (name for keys in _KEYS.values() for name in keys if name in arrays)
    return max(int(arrays[name].max(initial=0)) for name in names)


def _find_row_changes(
    kind: str, keys: tuple[str, ...], old: Arrays, new: Arrays, same: int
) -> dict[str, npt.NDArray[Any]]:
    begin, end = f"{kind}_begin", f"{kind}_end"
    old_end = old[end].copy()
    is_open = old_end == old["times"].size
    old_end[is_open] = new["times"].size
    # A rank from `same` on may be another tick by now.
    is_stable = (old[begin] < same) & ((old_end < same) | is_open)
    old_row, new_row = (_number_rows(arrays, keys, begin) for arrays in (old, new))
    place = np.minimum(np.searchsorted(new_row, old_row), max(new_row.size - 1, 0))
    remains = np.zeros(old_row.size, bool)
    if new_row.size:
        remains = is_stable & (new_row[place] == old_row) & (new[end][place] == old_end)
    is_added = np.ones(new_row.size, bool)
    is_added[place[remains]] = False
    added = np.flatnonzero(is_added)
    return {
        f"{kind}_removed": np.flatnonzero(~remains).astype(np.uint32),
        f"{kind}_added": added.astype(np.uint32),
        **{name: new[name][added] for name in (*keys, begin, end)},
    }


def _number_rows(arrays: Arrays, keys: tuple[str, ...], begin: str) -> Int64s:
    """A number for each row, ascending."""
    number = np.zeros(arrays[begin].size, np.int64)
    for name in keys:
        number = number * _MOST_PEERS + arrays[name]
    return number * MOST_RANKS + arrays[begin]
