r"""What a peer's state is made of, each item as one string.

Spark compares lists of strings by hash, lists of structs pair by pair; and a list of plain
names needs no conversion at all. No name holds a control character, so one can part them:

    3                  neighbour 3, layer overlay
    99\x1frings\x1f7   neighbour 99, layer rings, topic 7
    99\x1foverlay\x1f7 neighbour 99, layer overlay, topic 7
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from ingest.report_arrow import relisted
from ingest.report_records import OVERLAY

_PART = "\x1f"


def neighbor_item(peer: Column, layer: Column, topic: Column) -> Column:
    """A neighbour; layer (null = overlay) and topic (null = none) may be null."""
    told = F.coalesce(layer, F.lit(OVERLAY))
    is_plain = topic.isNull() & (told == OVERLAY)
    return F.when(is_plain, peer).otherwise(F.concat_ws(_PART, peer, told, topic))


def neighbor_items(neighbors: pa.Array) -> pa.Array:
    """Arrow's lists of names, or of structs of peer, layer and topic, as lists of items."""
    flat = neighbors.flatten()
    if not pa.types.is_struct(flat.type):
        return neighbors
    peer, layer, topic = flat.flatten()
    told = pc.fill_null(layer, OVERLAY)
    is_plain = pc.and_(topic.is_null(), pc.equal(told, OVERLAY))
    spelled_out = pc.binary_join_element_wise(peer, told, topic, _PART, null_handling="skip")
    return relisted(neighbors, pc.if_else(is_plain, peer, spelled_out))


def role_items(roles: str) -> Column:
    """The column's structs of role and topic (null = none) as items."""
    return F.transform(roles, lambda role: F.concat_ws(_PART, role["role"], role["topic"]))


def neighbor_parts(item: Column) -> dict[str, Column]:
    """dst, layer and topic."""
    return {
        "dst": _part(item, 0),
        "layer": F.coalesce(_part(item, 1), F.lit(OVERLAY)),
        "topic": _part(item, 2),
    }


def role_parts(item: Column) -> dict[str, Column]:
    """role and topic."""
    return {"role": _part(item, 0), "topic": _part(item, 1)}


def topic_parts(item: Column) -> dict[str, Column]:
    """topic: a subscription is just that."""
    return {"topic": item}


def _part(item: Column, number: int) -> Column:
    return F.get(F.split(item, _PART), number)
