"""A whole ingest without Neo4j, stage by stage.

    python -m benchmarks.ingested TOLD.json WORKSPACE BETWEENNESS HOW PATH...

BETWEENNESS is `exact`, `sampled` or `none`, HOW `new` or `append`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.steps import Steps
from benchmarks.variants import SAMPLED, VARIANTS
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.pipeline import ingest
from vizpub.ingest.request import IngestRequest
from vizpub.runstore.stores.place import folder_of

RUN = "benchmark"
MEASURES = {"exact": VARIANTS["all"], "sampled": SAMPLED, "none": VARIANTS["topics"]}


def main() -> None:
    """Ingest; a step is a stage, as the progress bar names it."""
    record, workspace, betweenness, mode, *paths = sys.argv[1:]
    more: dict[str, Any] = {"append": True} if mode == "append" else {}
    measuring = MeasurementOptions(measures=MEASURES[betweenness])
    request = IngestRequest(tuple(paths), RUN, folder_of(workspace), measuring=measuring, **more)
    steps = Steps()

    steps.at("session")
    outcome = ingest(request, steps.progress)
    rows = {name: entry.rows for name, entry in outcome.run.manifest.tables.items()}
    steps.write(Path(record), "pyspark", "pyarrow", rows=rows)


if __name__ == "__main__":
    main()
