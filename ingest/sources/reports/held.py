"""Periods of the entries in lists of reports: lists in order → the periods of each entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Bools, Int32s, Int64s


def find_periods(
    lists: pa.ListArray,
    list_of_row: Int32s,
    meaning: Callable[[Any], tuple[str | None, ...]],
    stay_rows: pa.Table,
    schema: pa.Schema,
) -> pa.Table:
    """Return the periods in which entries were in the lists of peers: peer, columns of the entry,
    valid_from and valid_to, named by the schema.

    `lists` has the entries of each different list as JSON, of which `meaning` gives the columns;
    `list_of_row`, which list a report has (-1 = none). `stay_rows` has `peer`, `interval` and
    `joined` of the reports.
    """
    encoded = lists.values.dictionary_encode()
    places: dict[tuple[str | None, ...], int] = {}
    entry_numbers = [
        places.setdefault(meaning(msgspec.json.decode(text)), len(places))
        for text in encoded.dictionary.to_pylist()
    ]
    if not places:
        return schema.empty_table()
    offsets = np.array(lists.offsets.to_numpy())
    first, entry, end = _hold_entries(
        offsets,
        np.asarray(entry_numbers, np.int32)[encoded.indices.to_numpy()],
        np.append(list_of_row, np.int32(-1)),
        np.array(stay_rows["joined"].to_numpy()),
        np.array(stay_rows["interval"].to_numpy()),
        np.diff(offsets)[list_of_row[list_of_row >= 0]].sum(),
    )
    first_rows, of = pa.array(first), pa.array(entry)
    columns = [
        stay_rows["peer"].take(first_rows),
        *(pa.array(column, pa.string()).take(of) for column in zip(*places, strict=True)),
        stay_rows["interval"].take(first_rows),
        end,
    ]
    return pa.table(columns, schema=schema)


@compiled("(int32[::1], int32[::1], int32[::1], boolean[::1], int64[::1], int64)")
def _hold_entries(
    offsets: Int32s, entries: Int32s, list_of_row: Int32s, joined: Bools, at: Int64s, named: int
) -> tuple[Int32s, Int32s, Int64s]:
    """Return the periods, each as the row with which it begins, its entry and its end.

    An entry is held from the list that names it on: until the report before the next list that
    does not, or before the next report that is not joined to the one before. The lists of all rows
    have `named` entries; `list_of_row` has -1 behind the last. O(named).
    """
    most = entries.max() + 1
    began, listed = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    held, count = np.empty(most, np.int32), 0
    first, entry = np.empty(named, np.int32), np.empty(named, np.int32)
    end, total = np.empty(named, np.int64), 0
    for row in range(at.size + 1):
        ends = row == at.size or not joined[row]
        of_row = list_of_row[row]
        if not ends and of_row < 0:
            continue
        if of_row >= 0:
            for place in range(offsets[of_row], offsets[of_row + 1]):
                listed[entries[place]] = row
        held_count = 0
        for place in range(count):
            one = held[place]
            if not ends and listed[one] == row:
                held[held_count] = one
                held_count += 1
            else:
                first[total], entry[total], end[total] = began[one], one, at[row - 1] + 1
                began[one] = -1
                total += 1
        count = held_count
        if of_row >= 0:
            for place in range(offsets[of_row], offsets[of_row + 1]):
                one = entries[place]
                if began[one] < 0:
                    began[one] = row
                    held[count] = one
                    count += 1
    return first[:total], entry[:total], end[:total]
