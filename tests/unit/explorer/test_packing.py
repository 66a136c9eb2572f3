"""Arrays in one answer, read back as a page reads them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vizpub.explorer.packing import TYPES, pack


def test_arrays_are_found_where_the_header_says() -> None:
    arrays = {
        "bytes": np.arange(5, dtype=np.uint8),
        "none": np.empty(0, np.int32),
        "numbers": np.array([1.5, np.nan, -2]),
        "reversed": np.arange(4, dtype=np.int32)[::-1],
    }
    packed = pack({"name": "a\u2028ü"}, arrays)
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    assert header["meta"] == {"name": "a\u2028ü"}
    assert [described["name"] for described in header["arrays"]] == list(arrays)
    for described in header["arrays"]:
        assert described["offset"] % 8 == 0
        assert described["type"] in TYPES
        found = np.frombuffer(packed, described["type"], described["length"], described["offset"])
        np.testing.assert_array_equal(found, arrays[described["name"]])


@pytest.mark.parametrize("count", [1, 7, 60])
def test_header_has_room_for_every_offset(count: int) -> None:
    packed = pack({}, {f"a{i}": np.full(10_000, i, np.int32) for i in range(count)})
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    assert 4 + length <= header["arrays"][0]["offset"]
    last = header["arrays"][-1]
    assert np.frombuffer(packed, np.int32, 1, last["offset"])[0] == count - 1


def test_type_that_a_page_cannot_read_is_refused() -> None:
    with pytest.raises(ValueError, match="int64"):
        pack({}, {"a": np.arange(3)})
