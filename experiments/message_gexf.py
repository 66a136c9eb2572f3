"""A message's dissemination as GEXF, from the tables of a run: no Neo4j is needed."""

from __future__ import annotations

from pathlib import Path

from graphstore.gexf import gexf_output
from graphstore.gexf_message import EDGE_ATTRIBUTES, NODE_ATTRIBUTES, MessageGraph, MessageRows
from graphstore.gexf_writer import Head, write_gexf
from graphstore.read import ArrivalRow
from ingest.run import Run
from ingest.views import spread


def write_message(run: Run, message: str, path: Path) -> None:
    """Write what `vizpub export gexf RUN --message MESSAGE` does; time is the hop.

    Raises: UnknownName for the message, UseError where the file cannot be written.
    """
    graph = MessageGraph(_rows(run, message))
    title = f"the dissemination of message '{message}' in run '{run.facts.name}'"
    head = Head(f"{title}; time is the hop, 0 to {graph.last}", NODE_ATTRIBUTES, EDGE_ATTRIBUTES)
    with gexf_output(path) as out:
        write_gexf(out, head, graph.nodes(), graph.edges())


def _rows(run: Run, message: str) -> MessageRows:
    published = run.table("publications", ["key", "publisher", "time_us"])
    (about,) = (row for row in published.to_pylist() if row["key"] == message)
    peers, copies = spread(run, message)
    return MessageRows(
        dict(enumerate(run.peers)),
        about["publisher"],
        about["time_us"],
        [ArrivalRow(*(row[name] for name in ArrivalRow._fields)) for row in copies.to_pylist()],
        missed={row["peer"] for row in peers.to_pylist() if row["role"] == "missed"},
    )
