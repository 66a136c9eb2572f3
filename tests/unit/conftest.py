"""A run made by hand, small enough to know by heart."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partialmethod
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import writing

SECOND = 1_000_000

# Four peers for four seconds. `alice` publishes two messages of `news`, to which `bob` and
# `carol` subscribe; `dave`, who does not, passes the first on to `carol`. The second
# reaches nobody. `dave` leaves after two seconds.
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "peers": [(0, "alice", True), (1, "bob", True), (2, "carol", True), (3, "dave", False)],
    "topics": [(0, "news"), (1, "sport/日本")],
    "presence": [(0, 0, OPEN), (1, 0, OPEN), (2, 0, OPEN), (3, 0, 2 * SECOND)],
    "links": [
        (0, 1, "mesh", 0, 0, OPEN),
        (0, 1, "overlay", None, 0, OPEN),
        (0, 3, "overlay", None, 0, 2 * SECOND),
        (3, 2, "overlay", None, 0, 2 * SECOND),
        (2, 1, "overlay", None, SECOND // 2, 3 * SECOND),
    ],
    "dangling_links": [],
    "subscriptions": [(1, 0, 0, OPEN), (2, 0, 0, OPEN), (3, 1, 0, 2 * SECOND)],
    "publications": [
        (0, "m0", 0, 0, 0, 100_000, 100_000, True, 512),
        (1, "m1", 0, 0, 2, 2_100_000, 2_100_000, True, None),
    ],
    "receptions": [
        (0, 1, 0, 130_000, 0, 130_000, True, 1, True, True, False, False, False),
        (0, 3, 0, 150_000, 0, 150_000, True, 1, False, False, False, False, False),
        (0, 2, 3, 190_000, 0, 190_000, True, 2, True, True, False, False, None),
        (0, 1, 2, 600_000, 0, 600_000, False, 3, True, True, True, False, False),
    ],
    "missed": [(1, 1), (1, 2)],
    "gauges": [
        (0, 0, "hops", 4.0),
        (0, 0, "lookups", 2.0),
        (1, 0, "hops", 8.0),
        (1, 2, "hops", 1.0),
    ],
    "quarantine": [("a.json", 7, "not JSON", "\x1b[31mred")],
}
METRICS: dict[str, list[dict[str, Any]]] = {
    "metrics/overlay": [
        {"interval": 0, "network_size": 4, "links": 4, "density": 4 / 12, "diameter": 2},
        {"interval": 1, "network_size": 4, "links": 4, "density": 4 / 12, "diameter": 2},
        {"interval": 2, "network_size": 3, "links": 2, "density": 2 / 6, "diameter": 1},
        {"interval": 3, "network_size": 3, "links": 1, "density": 1 / 6, "diameter": None},
    ],
    "metrics/peers": [
        {"peer": peer, "interval": interval, "degree": degree}
        for interval, degrees in enumerate([(2, 2, 2, 2), (2, 2, 2, 2), (1, 2, 1), (1, 1, 0)])
        for peer, degree in enumerate(degrees)
    ],
    "metrics/topics": [
        {"topic": 0, "interval": i, "subscribers": 2, "topic_links": int(i < 3)} for i in range(4)
    ],
    "metrics/messages": [
        {"message": 0, "eligible": 2, "delivered": 2, "hit_ratio": 1.0, "hops_mean": 4 / 3},
        {"message": 1, "eligible": 2, "delivered": 0, "hit_ratio": 0.0, "hops_mean": None},
    ],
}
_COUNTS = ("receptions", "first_receptions", "duplicates", "rejections")


def _table(name: str) -> pa.Table:
    meant = table(name)
    if name in ROWS:
        records = [dict(zip(meant.names, row, strict=True)) for row in ROWS[name]]
    else:
        records = METRICS[name]
    if name == "metrics/messages":
        records = [dict.fromkeys(_COUNTS, 0) | record for record in records]
    return pa.Table.from_pylist(records, meant.arrow)


@pytest.fixture(scope="session", autouse=True)
def _soon_over() -> Iterator[None]:
    """Servers of reports look that often whether they shall end; else it takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        soon = partialmethod(ThreadingHTTPServer.serve_forever, 0.01)
        patch.setattr("vizpub.reports.pulled._Server.serve_forever", soon)
        yield


@pytest.fixture
def workspace(tmp_path: Path, made_once: Path) -> Path:
    """A workspace with the run `monday`, complete, and `half`, which is not."""
    shutil.copytree(made_once, tmp_path, symlinks=True, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each test gets a copy of: to write some 20 tables takes longer."""
    folder = tmp_path_factory.mktemp("workspace")
    clock = Clock(SECOND, 1, 0, 3)
    inputs = ({"path": "a.json", "size": 1234, "sha256": "00", "damage": "cut short"},)
    manifest = Manifest("monday", "libp2p", inputs, {"layers": None}, clock=clock, protocol="toy")
    with writing(folder, "half") as writer:
        writer.begin(Manifest("half", "edges", (), {}))
    with writing(folder, "monday") as writer:
        writer.begin(manifest)
        entries = {}
        for name in [*ROWS, *METRICS]:
            directory = writer.fresh_directory(name)
            directory.mkdir(parents=True)
            pq.write_table(_table(name), directory / "part-0.parquet")
            entries[name] = writer.entry(directory)
        writer.commit(manifest.with_stage("all", entries, state="complete"))
    return folder
