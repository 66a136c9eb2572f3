"""A load with its verification decodes each column of each row group twice, verification once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.integration.graph.conftest import Graph
from tests.integration.graph.everything import awkward_history, stored
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.verify.verify import verify_run
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.neo4j

Decodes = Counter[tuple[str, int, str]]
"""How often a column was decoded, by table, row group and name."""


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> Decodes:
    found: Decodes = Counter()

    class Counted(pq.ParquetFile):  # type: ignore[misc]
        def __init__(self, source: Path, **options: Any) -> None:
            super().__init__(source, **options)
            self._table = source.parent.parent.name

        def read_row_group(self, i: int, columns: Any = None, **options: Any) -> Any:
            found.update((self._table, i, name) for name in columns or self.schema_arrow.names)
            return super().read_row_group(i, columns, **options)

    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail("read in another way than is counted")

    monkeypatch.setattr(pq, "ParquetFile", Counted)
    monkeypatch.setattr(ds, "dataset", refuse)
    for name in ("read", "read_row_groups", "iter_batches"):
        monkeypatch.setattr(Counted, name, refuse)
    return found


@pytest.fixture(scope="module")
def run(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """Long enough for partitions, and nobody is told to be a rendezvous."""
    graph.remove("decoded")
    history = awkward_history(80, "decoded", intervals=40)
    return stored(history, tmp_path_factory.mktemp("decoded"))


def test_load_decodes_no_column_more_than_twice(
    graph: Graph, run: StoredRun, decodes: Decodes
) -> None:
    summary = load_run(graph.driver, graph.database, run.facts, run, partition_intervals=16)
    assert not summary.already_complete
    assert {table for table, _, _ in decodes} == {Path(name).name for name in run.manifest.tables}
    assert max(decodes.values()) == 2
    decodes.clear()
    assert verify_run(graph.driver, graph.database, run.facts, run) == []
    assert set(decodes.values()) == {1}
    decodes.clear()
    assert load_run(graph.driver, graph.database, run.facts, run).already_complete
    assert set(decodes.values()) == {1}
    graph.remove("decoded")
