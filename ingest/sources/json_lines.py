"""Lines of JSON that hold one object each."""

from __future__ import annotations

from typing import Any

import msgspec

from vizpub.ingest.sources.libp2p.events import Refused
from vizpub.reports.files import RepeatedKey, strict_json


def object_of(line: bytes) -> dict[str, Any]:
    """The object of a line. Raises: Refused."""
    try:
        msgspec.json.decode(line)  # takes no halves of surrogate pairs
        found = strict_json(line)
    except RepeatedKey as error:
        raise Refused(str(error)) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused("not one JSON object") from error
    if not isinstance(found, dict):
        raise Refused("not one JSON object")
    return found
