"""A message of a run as a bctrace, the trace of ethp2p's simulator that netviz plays.

A header names the nodes, events are lines `[µs, node, code, …]`, and a footer ends the trace. Nodes
are numbered from 0 in the order of the run's peers.

netviz shows links only from the message's first event to its last. So those that stand at the first
are GRAFTed (`mg`) there. It draws a copy along a link where it was sent (`ms`), which no run knows:
each is sent when it arrives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TextIO

from vizpub.model.errors import UseError
from vizpub.model.run import TIMES
from vizpub.questions.names import NamedRun
from vizpub.questions.sql import OF_LAYERS, read_answer, rows_of

NO_TIME = "no time is known of message"
DECODER = "gossipsub"
"""netviz' name for the vocabulary of the events."""
ATTRIBUTES = ("upload_bw_mbps", "download_bw_mbps", "country")
"""Attributes of peers that a topology has."""
UNDATED = "1970-01-01T00:00:00Z"
"""The beginning of a trace that does not know when it began."""
SENT_ON_ARRIVAL = "when it arrives"
"""When copies are sent in a trace of a run, as its header says."""

# Who and what is shown. Links of other topics are not; links without a topic are where the
# message's topic has none of its own.
_SHOWN = """
WITH about AS (SELECT * FROM stored."publications" WHERE message = $message),
     arrived AS (
         SELECT time_us, tick, peer, previous_hop, if(first, 'dl', 'du') AS code, NULL AS reason
         FROM stored."receptions" WHERE message = $message AND time_us IS NOT NULL
         UNION ALL
         SELECT time_us, NULL, peer, previous_hop, 'rj', reason
         FROM {rejections} WHERE message = $message AND time_us IS NOT NULL),
     published AS (SELECT time_us, tick, publisher AS peer, topic FROM about
                   WHERE publication_known AND time_us IS NOT NULL),
     ends AS (SELECT min(time_us) AS first_us, max(time_us) AS last_us, min(tick) AS first_tick
              FROM (SELECT time_us, tick FROM published
                    UNION ALL SELECT time_us, tick FROM arrived)),
     span AS (SELECT *, coalesce(last_us // $tick_us::BIGINT, first_tick) AS last_tick FROM ends),
     near AS (SELECT links.* FROM {links} links, span, about
              WHERE {of_layers} AND valid_from <= last_tick AND valid_to > first_tick
                    AND (links.topic IS NULL OR links.topic = about.topic)),
     mesh AS (SELECT DISTINCT src, dst, topic, valid_from, valid_to FROM near
              WHERE topic IS NOT NULL OR NOT EXISTS (FROM near WHERE topic IS NOT NULL)),
     members AS (SELECT members.* FROM {subscriptions} members JOIN about USING (topic), span
                 WHERE valid_from <= last_tick AND valid_to > first_tick),
     shown AS (SELECT peer FROM {presence}, span
               WHERE valid_from <= last_tick AND valid_to > first_tick
               UNION SELECT peer FROM members
               UNION SELECT unnest([src, dst]) FROM mesh
               UNION SELECT unnest([peer, previous_hop]) FROM arrived
               UNION SELECT peer FROM published)
"""
_NODES = """
SELECT peer, name,
       any_value(number) FILTER (key = 'upload_bw_mbps') AS upload_bw_mbps,
       any_value(number) FILTER (key = 'download_bw_mbps') AS download_bw_mbps,
       any_value(value) FILTER (key = 'country') AS country
FROM shown JOIN stored."peers" peers USING (peer)
     LEFT JOIN (SELECT known.* FROM {attributes} known, span
                WHERE valid_from <= first_tick AND valid_to > first_tick) USING (peer)
GROUP BY ALL ORDER BY peer
"""
_EVENTS = """
SELECT us, peer, code, other, topics.name AS topic, reason
FROM (SELECT greatest(first_us, valid_from * $tick_us::BIGINT) AS us, 0 AS rank, peer, 'tj' AS code,
             NULL AS other, topic, NULL AS reason FROM members, span
      UNION ALL
      SELECT least(valid_to, last_tick) * $tick_us::BIGINT, 0, peer, 'tl', NULL, topic, NULL
      FROM members, span WHERE valid_to <= last_tick
      UNION ALL
      SELECT greatest(first_us, valid_from * $tick_us::BIGINT), 1, src, 'mg', dst, topic, NULL
      FROM mesh, span
      UNION ALL
      SELECT least(valid_to, last_tick) * $tick_us::BIGINT, 1, src, 'mp', dst, topic, NULL
      FROM mesh, span WHERE valid_to <= last_tick
      UNION ALL
      SELECT time_us, 2, peer, 'pb', NULL, topic, NULL FROM published
      UNION ALL
      SELECT arrived.time_us, 3, previous_hop, 'ms', peer, topic, NULL FROM arrived, about
      WHERE previous_hop IS NOT NULL
      UNION ALL
      SELECT arrived.time_us, 4, peer, code, previous_hop, topic, reason FROM arrived, about)
     LEFT JOIN stored."topics" topics USING (topic)
ORDER BY us, rank, code, peer, other
"""


@dataclass(frozen=True)
class TraceCounts:
    """The numbers of nodes, and of events, in a trace."""

    nodes: int
    events: int


def write_bctrace(
    run: NamedRun, message: str, out: TextIO, layers: Sequence[str] | None = None
) -> TraceCounts:
    """Write the trace of a message, with links of these layers (null = those that metrics count).

    Raises: UnknownName, AmbiguousName; UseError where no time of the message's arrivals is known.
    """
    run.facts.check_known("receptions")
    number = run.message_index(message)
    shown = _SHOWN.format(
        of_layers=OF_LAYERS,
        **{name: rows_of(run.stored, name) for name in ("rejections", "links", "subscriptions")},
        presence=rows_of(run.stored, "presence"),
    )
    values = {
        "message": number,
        "tick_us": run.clock.tick_us,
        "layers": run.counted_layers(layers),
    }
    events = read_answer(run.stored, shown + _EVENTS, **values).to_pylist()
    if not events or not run.facts.knows(TIMES):
        raise UseError(
            f"{NO_TIME} '{message}', and netviz plays by time: export it hop by hop, with: "
            f"vizpub export gexf {run.facts.name} --message {message}"
        )
    attributes = rows_of(run.stored, "attributes")
    nodes = read_answer(run.stored, shown + _NODES.format(attributes=attributes), **values)
    published = run.publication(number)
    length = run.clock.interval_us or 1
    # Intervals of the trace begin where those of the run do.
    begin = events[0]["us"] // length * length
    header = _header(run, published["name"], nodes.to_pylist(), events, begin)
    line = _line(header)
    out.write(line)
    place = {peer: node for node, peer in enumerate(nodes["peer"].to_pylist())}
    for event in _lines(events, published, header["nodes"], place, begin):
        out.write(_line(event))
    index = [[0, len(line.encode())]]
    out.write(_line({"end": True, "duration": events[-1]["us"] - begin, "index": index}))
    return TraceCounts(len(place), len(events))


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _header(
    run: NamedRun,
    message: str,
    nodes: Sequence[dict[str, Any]],
    events: Sequence[dict[str, Any]],
    begin: int,
) -> dict[str, Any]:
    """Return the header of a trace that begins so many µs after the run.

    Edges are the pairs of peers that are linked at any time. Latencies are in no run: null, which
    netviz reads as unknown.
    """
    names = [node["name"] for node in nodes]
    place = {node["peer"]: number for number, node in enumerate(nodes)}
    pairs = {
        tuple(sorted((place[event["peer"]], place[event["other"]])))
        for event in events
        if event["code"] == "mg"
    }
    t0 = UNDATED
    if run.facts.epoch is not None:
        began = datetime.fromisoformat(run.facts.epoch) + timedelta(microseconds=begin)
        t0 = began.isoformat().replace("+00:00", "Z")
    return {
        "v": 1,
        "t0": t0,
        "nodes": names,
        "topology": {
            "nodes": [
                {"num": number, **{key: node[key] for key in ATTRIBUTES if node[key] is not None}}
                for number, node in enumerate(nodes)
            ],
            "edges": [{"source": a, "target": b, "latency_ms": None} for a, b in sorted(pairs)],
        },
        "config": {"run": run.facts.name, "message": message, "sent": SENT_ON_ARRIVAL},
        "decoderName": DECODER,
        # Without these netviz guesses which name is whose.
        "peer_ids": names,
    }


def _lines(
    events: Sequence[dict[str, Any]],
    published: Mapping[str, Any],
    names: Sequence[str],
    place: dict[int, int],
    begin: int,
) -> Iterator[list[Any]]:
    """Yield the events in the order of their fields."""
    message, size = published["name"], published["bytes"]
    for event in events:
        code, other, topic = event["code"], event["other"], event["topic"]
        row = [event["us"] - begin, place[event["peer"]], code]
        remote_peer = None if other is None else names[place[other]]
        if code in ("tj", "tl"):
            yield [*row, topic]
        elif code in ("mg", "mp"):
            yield [*row, remote_peer, topic]
        elif code == "pb":
            yield [*row, topic, message, size]
        elif code == "ms":
            yield [*row, remote_peer, topic, message, size]
        else:
            reason = [event["reason"]] if code == "rj" else []
            yield [*row, remote_peer, topic, message, *reason]
