"""Nodes of VizPub's files → records as of the report contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vizpub.ingest.inputs.reader import INVALID_UTF8
from vizpub.model.run import DUPLICATES
from vizpub.reports.fields import INT32, Array, Key, Kind, Object, Whole
from vizpub.reports.files import RepeatedKey, strict_json
from vizpub.reports.records import Json, Report, RunHeader


@dataclass(frozen=True)
class _ObjectsById:
    """Objects by the id that they carry themselves."""

    item: Object
    id: str

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Yield problems: no object, wrong items, or keys that are not the item's own id."""
        if not isinstance(value, dict):
            yield f"'{at}' is not an object"
            return
        for key, item in value.items():
            yield from self.item.problems(item, f"{at}[]")
            if isinstance(item, dict) and item.get(self.id) != key:
                yield f"'{at}[].{self.id}' is not its key"

    def unknown_paths(self, value: object, at: str) -> Iterator[str]:
        """Yield the unknown fields of the items."""
        for item in value.values() if isinstance(value, dict) else ():
            yield from self.item.unknown_paths(item, f"{at}[]")


_MESSAGES = _ObjectsById(
    Object(
        {
            "msgId": Key(),
            "topicId": Key(),
            "originalSenderId": Key(),
            "sourceId": Key(),
            "destinationIds": Array(Key()),
            "hopCount": Whole(INT32),
        },
        required=("msgId",),
    ),
    "msgId",
)
COUNTERS = {
    "control_messages_sent": "controlMsgsSent",
    "control_messages_received": "controlMsgsReceived",
    # Bits by name, bytes by what is counted.
    "control_bytes_sent": "bitsSent",
    "control_bytes_received": "bitsReceived",
    "duplicates": "duplicateCount",
}
"""Counters of a node, which run from its start, with their names in VizPub's files."""
BYTES = "publication.bytes"
_NEVER_KNOWN = (BYTES, DUPLICATES)
"""Facts that VizPub's files never report. A node's later copies of a message are only counted."""
_NUMBERS: dict[str, Kind] = {name: Whole() for name in COUNTERS.values()}
NODE = Object(
    {
        "id": Key(),
        "neighbors": Array(Key()),
        "topics": Array(Key()),
        "subscriptionSize": Whole(),
        **_NUMBERS,
        "publicationMsgsSent": _MESSAGES,
        "publicationMsgsReceived": _MESSAGES,
    },
    required=("id", "neighbors"),
)


def check_node(text: bytes, key: str) -> tuple[Any, list[str]]:
    """Decode the node with that key in its file. Return it, and its problems."""
    try:
        node = strict_json(text)
    except UnicodeDecodeError:
        return None, [INVALID_UTF8]
    except RecursionError:
        return None, ["nested too deep"]
    except RepeatedKey as error:
        return None, [str(error)]
    except ValueError:
        return None, ["not JSON"]
    wrong = list(NODE.problems(node, ""))
    if not wrong and node["id"] != key:
        wrong.append("'id' is not the node's key")
    return node, list(dict.fromkeys(wrong))


def unknown_fields(node: Mapping[str, Any]) -> list[str]:
    """Return the names of fields that VizPub's nodes do not have, each once."""
    return list(dict.fromkeys(NODE.unknown_paths(node, "")))


def as_report(node: Mapping[str, Any], run: str, interval: int) -> Json:
    """Convert a valid node to a record of the report contract.

    VizPub's sets and maps have no order; sorting makes equal content equal.
    """
    counters = {name: node.get(theirs) for name, theirs in COUNTERS.items()}
    control = {
        direction: {unit: counters[f"control_{unit}_{direction}"] for unit in ("messages", "bytes")}
        for direction in ("sent", "received")
    }
    topics = node.get("topics")
    return {
        "format": Report.format,
        "run": run,
        "peer": node["id"],
        "interval": interval,
        "neighbors": sorted(node["neighbors"]),
        "topics": None if topics is None else sorted(topics),
        "control": control,
        "duplicates": counters["duplicates"],
        "sent": _copies(node.get("publicationMsgsSent"), "to", "destinationIds"),
        "received": _copies(node.get("publicationMsgsReceived"), "from", "sourceId"),
    }


def _copies(messages: Mapping[str, Json] | None, far_end: str, theirs: str) -> list[Json] | None:
    if messages is None:
        return None
    return [
        {
            "message": copy["msgId"],
            "topic": copy.get("topicId"),
            "publisher": copy.get("originalSenderId"),
            "hops": copy.get("hopCount"),
            far_end: copy.get(theirs),
        }
        for _, copy in sorted(messages.items())
    ]


def header_of(run: str) -> Json:
    """Return the run header of a protocol; counters are totals."""
    facts = {"protocol": run, "counters": "total", "unknown": list(_NEVER_KNOWN)}
    return {"format": RunHeader.format, "run": run, **facts}
