"""Schemas of folded tables, which all sources share."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from vizpub.ingest.tasks.fold import NAMES
from vizpub.model.columns import CONTROL_COLUMNS
from vizpub.model.tables import QUARANTINE

CARRIED = "records"
"""Name of the table with the last state of each peer, for appends: peer, interval, record. An
append writes the states of peers that report; a newer part supersedes older ones, peer by peer.
"""

PERIOD = [("valid_from", pa.int64()), ("valid_to", pa.int64())]
_AT = [("time_us", pa.int64()), ("interval", pa.int32()), ("tick", pa.int64())]


def _names(*columns: str) -> list[tuple[str, pa.DataType]]:
    return [(column, pa.string()) for column in columns]


GAUGES = pa.schema([*_names("peer"), _AT[1], *_names("gauge"), ("value", pa.float64())])
"""Schema of a folded table that only some sources have."""
OBSERVED: Mapping[str, pa.Schema] = {
    "presence": pa.schema([*_names("peer"), *PERIOD]),
    "links": pa.schema([*_names("src", "dst", "layer", "topic"), *PERIOD]),
    "subscriptions": pa.schema([*_names("peer", "topic"), *PERIOD]),
    "roles": pa.schema([*_names("peer", "role", "topic"), *PERIOD]),
    "attributes": pa.schema([*_names("peer", "key", "value"), PERIOD[0]]),
    "control": pa.schema(
        [
            *(*_names("peer"), _AT[1], *_names("kind", "topic")),
            *((name, pa.int64()) for name in CONTROL_COLUMNS),
        ]
    ),
    "publications": pa.schema(
        [*_names("message", "topic", "publisher"), _AT[1], *_AT[::2], ("bytes", pa.int64())]
    ),
    "receptions": pa.schema(
        [
            *_names("message", "topic", "publisher", "peer", "previous_hop"),
            *_AT,
            *(("arrival", pa.int64()), ("first", pa.bool_()), ("hop", pa.int32())),
            ("subscribed", pa.bool_()),
        ]
    ),
    "rejections": pa.schema(
        [*_names("message", "topic", "peer", "previous_hop"), *_AT, *_names("reason")]
    ),
    "sizes": pa.schema([*_names("message"), *_AT[1:], ("bytes", pa.int64())]),
    "names": NAMES,
    "quarantine": QUARANTINE.arrow,
}
"""Schemas of folded tables (see vizpub.ingest.sources.base.Observed) and of the quarantine."""


NAMES_OF_REPORTERS = """
    FROM folded.names
    WHERE NOT ("table" = 'links' AND "column" = 'dst')
        OR name IN (SELECT {reporter} FROM whole.peers)
"""
"""SQL for the names without those that only occur as `dst` of links."""
NO_REJECTIONS = """
    SELECT
        NULL::VARCHAR AS message, NULL::VARCHAR AS topic, NULL::VARCHAR AS peer,
        NULL::VARCHAR AS previous_hop, NULL::BIGINT AS time_us, NULL::INTEGER AS interval,
        NULL::BIGINT AS tick, NULL::VARCHAR AS reason
    WHERE false
"""
"""An empty observed table, for sources whose format has none."""
