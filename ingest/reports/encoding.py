"""A record or a JSON object → the line that is sent. Standard library only."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from itertools import count
from typing import Any

from ingest.reports.records import Record, Report

# Made once: `json.dumps` makes an encoder for each call that has options.
_text = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


class Lines:
    """Gives reports their `seq`, which grows also over restarts: it begins with the wall time."""

    def __init__(self) -> None:
        self._seqs = count(time.time_ns() // 1_000)

    def line(self, record: Record | Mapping[str, Any]) -> bytes:
        """The line of a record, or of a report as an object without `format` and `seq`.

        Raises: TypeError, ValueError, RecursionError for what is no JSON.
        """
        if isinstance(record, Report):
            record = record.to_json()
        elif not isinstance(record, Mapping):
            return _text(record.to_json()).encode()
        return _text({"format": Report.format, "seq": next(self._seqs), **record}).encode()
