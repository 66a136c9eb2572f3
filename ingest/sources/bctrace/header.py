"""The header of a bctrace: its nodes, and the forms in which events write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from base58 import b58decode

from vizpub.ingest.inputs.reader import RecordRefused, parse_object
from vizpub.ingest.sources.base import or_none
from vizpub.ingest.sources.libp2p.interop import parse_time
from vizpub.questions.traces.bctrace import SENT_ON_ARRIVAL
from vizpub.reports.fields import Key

NAME = Key()
"""What a name may be."""
_PEER_NUMBER = re.compile(r"[A-Za-z](\d+)", re.ASCII)
_GO_ZERO = "0001-01-01T00:00:00Z"
"""What Go writes for a time that was not set."""
_ATTRIBUTES = ("upload_bw_mbps", "download_bw_mbps", "country")


class Header(NamedTuple):
    """The header of a trace."""

    t0: int
    """Nanoseconds of Unix time."""
    nodes: Sequence[str]
    peers: Mapping[str, str]
    """The node of each form in which events write a peer."""
    attributes: Sequence[Mapping[str, str]]
    """By node."""
    knows_sent: bool
    """Messages were sent when the trace says so; vizpub's own say when they arrived."""

    @classmethod
    def parse(cls, text: bytes) -> Header:
        """Parse the first line of a file. Raises: RecordRefused."""
        values = parse_object(text)
        nodes, ids = values.get("nodes"), values.get("peer_ids") or []
        for key, names in (("nodes", nodes), ("peer_ids", ids)):
            if not isinstance(names, list) or any([*NAME.problems(n, key)] for n in names):
                raise RecordRefused(f"{key} is not a list of names")
        if values.get("v") != 1 or not nodes:
            raise RecordRefused("not a trace of version 1 with nodes")
        if len(set(nodes)) < len(nodes) or len(ids) not in (0, len(nodes)):
            raise RecordRefused("nodes have the same name, or peer_ids are not one for each")
        stated = values.get("t0")
        t0 = 0 if stated in (None, _GO_ZERO) else parse_time(str(stated))
        attributes = _read_topology(values.get("topology"), len(nodes))
        for node, peer_id in enumerate(ids):
            if peer_id != nodes[node]:
                attributes[node]["peer_id"] = peer_id
        config = values.get("config")
        knows_sent = not isinstance(config, dict) or config.get("sent") != SENT_ON_ARRIVAL
        return cls(t0, nodes, _name_forms(nodes, ids), attributes, knows_sent)


def _read_topology(topology: Any, nodes: int) -> list[dict[str, str]]:
    """Return the attributes of each node: bandwidths in Mbit/s, and the country. 0 and '' are
    unknown, as in a topology that is only a list of edges.
    """
    attributes: list[dict[str, str]] = [{} for _ in range(nodes)]
    facts = topology.get("nodes") if isinstance(topology, dict) else None
    for fact in facts if isinstance(facts, list) else ():
        number = fact.get("num") if isinstance(fact, dict) else None
        if type(number) is int and 0 <= number < nodes:
            known = {key: str(fact.get(key) or "") for key in _ATTRIBUTES}
            attributes[number] |= {k: v for k, v in known.items() if not [*NAME.problems(v, k)]}
    return attributes


def _name_forms(nodes: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Return the node of each form of a peer: '7' for 'n7', its name, its id, and the bytes of its
    id as if they were text, which ethp2p also writes. A form of several nodes is left out.
    """
    numbered = {match[1]: name for name in nodes if (match := _PEER_NUMBER.fullmatch(name))}
    named_ids = dict(zip(ids, nodes, strict=False))
    texts = {id_: or_none(_text_of_bytes, id_) for id_ in ids}
    counts = Counter(texts.values())
    forms = {form: named_ids[id_] for id_, form in texts.items() if form and counts[form] == 1}
    return forms | numbered | dict(zip(nodes, nodes, strict=True)) | named_ids


def _text_of_bytes(peer_id: str) -> str:
    """Return the bytes of an id as Go writes text in JSON: each that is not UTF-8 as U+FFFD."""
    text = b58decode(peer_id).decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", text)
