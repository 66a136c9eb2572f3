"""Encodes a record or a JSON object as the line that is sent. Standard library only."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Mapping
from io import BytesIO
from itertools import count
from typing import Any

from .records import Record, Report

# Made once: `json.dumps` makes an encoder for each call that has options.
_text = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


class Snapshot(bytes):
    """A report as it was when it was queued, packed, which is faster than its line."""

    def encode(self) -> bytes:
        """Return its line. Raises: TypeError, ValueError, RecursionError if it is not JSON."""
        return _text(pickle.loads(self)).encode()


class _Unpacked(Exception):
    """An object that is not packed."""


class _Packer(pickle.Pickler):
    """Packs texts and numbers of any class, such as those of numpy, as plain ones. (marshal is
    faster, and packs these as bytes.)
    """

    def reducer_override(self, value: object) -> Any:
        if value is str or value is float:
            return NotImplemented
        if isinstance(value, str):
            return str, (str.__str__(value),)
        if isinstance(value, float):
            return float, (float.__float__(value),)
        raise _Unpacked


class LineEncoder:
    """Encodes reports with a `seq`, which also grows over restarts: it begins at the wall time."""

    def __init__(self) -> None:
        self._seqs = count(time.time_ns() // 1_000)

    def encode(self, record: Record | Mapping[str, Any]) -> bytes:
        """Return the line of a record, or of a report as an object without `format` and `seq`.

        Raises: TypeError, ValueError, RecursionError if it is not JSON.
        """
        return _text(self._object(record)).encode()

    def snapshot(self, record: Record | Mapping[str, Any]) -> bytes:
        """Return a `Snapshot`, or the line if the object has more than JSON has.

        Raises: as `encode`; a snapshot may still turn out not to be JSON when it is encoded.
        """
        content = self._object(record)
        packed = BytesIO()
        try:
            _Packer(packed, pickle.HIGHEST_PROTOCOL).dump(content)
        except _Unpacked:
            return _text(content).encode()
        return Snapshot(packed.getvalue())

    def _object(self, record: Record | Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(record, Report):
            record = record.to_json()
        elif not isinstance(record, Mapping):
            return record.to_json()
        return {"format": Report.format, "seq": next(self._seqs), **record}
