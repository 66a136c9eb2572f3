"""One run loaded into Neo4j in both ways, each into a new empty server.

python -m benchmarks.loaded TOLD.json FOLDER WORKSPACE
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ingested import RUN
from benchmarks.steps import Steps
from vizpub.graphstore.load.bulk import LoadTarget, load
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.model.errors import CheckFailed
from vizpub.runstore.store import StoredRun, open_run

WAYS = {"bolt": False, "bulk": True}
"""Transactions, or an import."""
_KINDS = """
MATCH ()-[r]->() RETURN type(r) =~ '.*_E[0-9]+' AS copies, count(r) AS relationships
"""


def main() -> None:
    """Load, and record the time of every step. Raises: CheckFailed where the ways differ."""
    told, folder, workspace = (Path(word) for word in sys.argv[1:])
    run, steps = open_run(workspace, RUN), Steps()
    found = {way: _loaded(run, folder / way, way, steps) for way in WAYS}
    if found["bolt"] != found["bulk"]:
        raise CheckFailed("the import made a different graph", [str(found)])
    steps.write(told, "neo4j", "pyarrow", **found["bulk"])


def _loaded(run: StoredRun, home: Path, way: str, steps: Steps) -> dict[str, Any]:
    """The numbers of nodes and relationships after the load."""
    server = LocalServer(home)
    try:
        target = LoadTarget(server.start(), server, WAYS[way])
        loaded = load(target, run.facts, run, lambda step, *_: steps.at(f"{way}: {step}"))
        steps.at("count")
        with connect(server.start()) as driver:
            kinds = driver.execute_query(_KINDS, database_="neo4j").records
    finally:
        server.remove()
    return {**asdict(loaded), "relationships": {str(row[0]): row[1] for row in kinds}}


if __name__ == "__main__":
    main()
