"""A message's dissemination as GEXF, from the tables of a run: no Neo4j is needed."""

from __future__ import annotations

from pathlib import Path

from graphstore.ask.bulk_reads import ArrivalRow
from graphstore.gexf.export import gexf_output
from graphstore.gexf.message import MessageGraph, MessageRows
from graphstore.gexf.writer import write_gexf
from model.run import DUPLICATES, HOPS, PREVIOUS_HOPS
from runstore.run import Run
from runstore.snapshots import spread


def write_message(run: Run, message: str, path: Path) -> None:
    """Write what `vizpub export gexf RUN --message MESSAGE` does; time is the hop.

    Raises: UnknownName for the message, UseError where the file cannot be written.
    """
    run.facts.check_known("receptions", HOPS, PREVIOUS_HOPS)
    graph = MessageGraph(_rows(run, message), counts=run.facts.knows(DUPLICATES))
    with gexf_output(path) as out:
        write_gexf(out, graph.head(message, run.facts.name), graph.nodes(), graph.edges())


def _rows(run: Run, message: str) -> MessageRows:
    published = run.table("publications", ["name", "publisher", "time_us"])
    (about,) = (row for row in published.to_pylist() if row["name"] == message)
    peers, copies = spread(run, message)
    return MessageRows(
        dict(enumerate(run.peers)),
        about["publisher"],
        about["time_us"],
        [ArrivalRow(*(row[name] for name in ArrivalRow._fields)) for row in copies.to_pylist()],
        missed={row["peer"] for row in peers.to_pylist() if row["role"] == "missed"},
    )
