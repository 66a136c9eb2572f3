"""Arrays of numbers in one answer, to be read without a copy or an object per row.

uint32   length of the header
header   JSON: {"meta": …, "arrays": [{"name", "type", "length", "offset"}, …]}
bytes    the arrays, little-endian, each at an offset (from the start of the answer) that is a
         multiple of 8
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

TYPES = ("float32", "float64", "int32", "uint32", "uint16", "uint8")
_UNIT = 8


def pack(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The answer. Raises: ValueError for an array of another type."""
    # Offsets stand in the header, which so must have its length before they are known.
    header = _header(meta, arrays, 0)
    start = _round_up(4 + len(header) + 16 * len(arrays))
    header = _header(meta, arrays, start)
    parts = [len(header).to_bytes(4, "little"), header, bytes(start - 4 - len(header))]
    for values in arrays.values():
        raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
        parts += [raw, bytes(_round_up(len(raw)) - len(raw))]
    return b"".join(parts)


def _header(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], start: int) -> bytes:
    described, offset = [], start
    for name, values in arrays.items():
        if values.dtype.name not in TYPES:
            raise ValueError(f"{name} is of type {values.dtype.name}, not one of {TYPES}")
        described.append(
            {"name": name, "type": values.dtype.name, "length": values.size, "offset": offset}
        )
        offset += _round_up(values.nbytes)
    return json.dumps({"meta": meta, "arrays": described}, allow_nan=False).encode()


def _round_up(size: int) -> int:
    return -(-size // _UNIT) * _UNIT
