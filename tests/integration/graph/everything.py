"""A whole graph, to compare it with another: by labels, types and properties, not by ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.integration.graph.conftest import Graph, History, random_history
from tests.support.hostile import TAKEN
from vizpub.model.tables import table
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

NODES = "MATCH (n) WHERE NOT n:LoadBatch RETURN labels(n), properties(n)"
RELATIONSHIPS = (
    "MATCH (a)-[r]->(b) RETURN labels(a), a.key, type(r), properties(r), labels(b), b.key"
)
NAMES = ['"', "'; DROP", "a,b;c", "two\nlines\r\n", "`x`\\", "", " ", "é 🜁", "1", "".join(TAKEN)]


def everything(graph: Graph) -> Counter[str]:
    """How often there is each node and each relationship; the ledgers of loads are left out."""
    return Counter(_told(row) for text in (NODES, RELATIONSHIPS) for row in graph.ask(text))


def _told(row: list[Any]) -> str:
    parts = [
        sorted(part.items()) if isinstance(part, dict)
        else sorted(part) if isinstance(part, list)
        else part
        for part in row
    ]  # fmt: skip
    return repr(parts)


def awkward_history(seed: int, name: str, intervals: int = 260) -> History:
    """A history long enough for partitions, whose names are what files find hard to hold."""
    history = random_history(seed, name=name, peers=14, intervals=intervals)
    for name_of in ("peers", "topics", "publications"):
        for row, text in zip(history.rows[name_of], NAMES, strict=False):
            row["name"] = text
    for number, row in enumerate(history.rows["links"]):
        row["layer"] = NAMES[number % 5]
    facts = replace(history.facts, tables="of these rows")
    return replace(history, facts=facts)


def stored(history: History, workspace: Path) -> StoredRun:
    """The history as a run of a workspace."""
    facts = history.facts
    manifest = Manifest(
        facts.name, facts.source, (), {}, clock=facts.clock, parameters=facts.parameters
    )
    with writing(workspace, facts.name) as writer:
        writer.begin(manifest)
        entries = {}
        for name in history.rows:
            directory = writer.fresh_directory(name)
            directory.mkdir(parents=True)
            batches = [batch for _, batch in history.tables(name)]
            rows = pa.Table.from_batches(batches, table(name).arrow)
            pq.write_table(rows, directory / f"{directory.name}.parquet")
            entries[name] = writer.entry(directory)
        writer.commit(manifest.with_stage("all", entries, state="complete"))
    return open_run(workspace, facts.name)
