"""Lines of JSON that hold one object each."""

from __future__ import annotations

from typing import Any

import msgspec

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.reports.files import RepeatedKey, strict_json


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line. Raises: RecordRefused."""
    try:
        msgspec.json.decode(line)  # takes no halves of surrogate pairs
        value = strict_json(line)
    except RepeatedKey as error:
        raise RecordRefused(str(error)) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RecordRefused("not one JSON object") from error
    if not isinstance(value, dict):
        raise RecordRefused("not one JSON object")
    return value
