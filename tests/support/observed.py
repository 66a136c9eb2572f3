"""Observed tables with the names that their fold reports."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from ingest.fold import NAMES, names_in
from ingest.sources.base import Observed


def observed_of(peers: DataFrame, **tables: DataFrame) -> Observed:
    """What was observed, by table."""
    parts = [
        part
        for name, rows in {"peers": peers, **tables}.items()
        for batch in rows.toArrow().to_batches()
        for part in names_in(name, batch)
    ]
    names = peers.sparkSession.createDataFrame(pa.Table.from_batches(parts, NAMES))
    return Observed(peers, names, **tables)
