"""A run in a store, for tests of what reads and writes one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.tables import EMPTY, add, links
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing


@pytest.fixture
def rows() -> pa.Table:
    return links(100, seed=1)


@pytest.fixture
def run(tmp_path: Path, rows: pa.Table) -> StoredRun:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        add(writer, "versions", "links", rows, state="complete")
    return open_run(tmp_path, "monday")
