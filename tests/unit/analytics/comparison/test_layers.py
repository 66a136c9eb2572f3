"""Metrics of some layers, where no peer is present."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vizpub.analytics.comparison.layers import RunOfLayers
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table
from vizpub.questions.run import Run
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import writing

SECOND = 1_000_000
ROWS = {
    "peers": [(0, "alice", True), (1, "bob", True)],
    "presence": [(0, 0, SECOND), (1, 0, SECOND)],
    "links": [(0, 1, "mesh", None, 0, SECOND), (1, 0, "overlay", None, 0, SECOND)],
    "dangling_links": [
        (0, 1, "mesh", None, SECOND, 3 * SECOND),
        (1, 0, "overlay", None, SECOND, OPEN),
    ],
}
"""Two peers for a second, which name each other for longer."""
OF_ALL = [0, 2, 2, 1]


def run_of(folder: Path, *, known: bool) -> Run:
    manifest = Manifest("lone", "edges", (), {"layers": None}, clock=Clock(SECOND, 1, 0, 3))
    rows = {
        name: [dict(zip(table(name).names, row, strict=True)) for row in of]
        for name, of in ROWS.items()
        if known or name != "dangling_links"
    }
    rows["metrics/overlay"] = [
        {"interval": at, "dangling_links": count if known else None}
        for at, count in enumerate(OF_ALL)
    ]
    with writing(folder, "lone") as writer:
        writer.begin(manifest)
        entries = {}
        for name, of in rows.items():
            directory = writer.fresh_directory(name)
            directory.mkdir(parents=True)
            pq.write_table(
                pa.Table.from_pylist(of, table(name).arrow), directory / "part-0.parquet"
            )
            entries[name] = writer.entry(directory)
        writer.commit(manifest.with_stage("all", entries, state="complete"))
    return Run.open(folder, "lone")


@pytest.mark.parametrize(
    ("layers", "known", "counts"),
    [
        (["mesh"], True, [0, 1, 1, 0]),
        (["overlay"], True, [0, 1, 1, 1]),
        (["mesh", "overlay"], True, OF_ALL),
        (["mesh"], False, [None] * 4),
    ],
)
def test_dangling_links_are_those_of_the_layers_where_nobody_is_present(
    tmp_path: Path, layers: list[str], known: bool, counts: list[int | None]
) -> None:
    of_layers = RunOfLayers.of(run_of(tmp_path, known=known), layers)
    found = of_layers.metrics("overlay", ["dangling_links"]).to_pylist()
    assert [row["dangling_links"] for row in found] == counts
