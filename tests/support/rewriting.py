"""Tables of a stored run with changed rows, as if the ingest had written them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.runstore.integrity import describe_file
from vizpub.runstore.manifest import write_manifest
from vizpub.runstore.store import open_run


def rewrite(workspace: Path, run: str, name: str, rows: pa.Table) -> None:
    """Give these rows to a table that has one file."""
    stored = open_run(workspace, run)
    (file,) = stored.files(name)
    pq.write_table(rows, file)
    entry = replace(stored.manifest.tables[name], rows=rows.num_rows, files=(describe_file(file),))
    tables = {**stored.manifest.tables, name: entry}
    write_manifest(stored.directory, replace(stored.manifest, tables=tables))
