"""Blocks of intervals, and what a task says of a damaged file."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.steps import Given, Step
from ingest.steps import StepFold, Taken, blocks
from model.metrics import METRICS_OVERLAY, METRICS_PEERS
from runstore.intact import OTHER_PAGE, PARQUET, dataset

WHOLE = Given(3, 12, 1, frozenset({"metrics/peers"}), 3, 3)


@pytest.mark.parametrize("tasks", [1, 3, 7, 50])
@pytest.mark.parametrize("peers", [1, 60_000, 10**7])
def test_blocks_of_bounded_size_have_each_interval_once(tasks: int, peers: int) -> None:
    parts = blocks(WHOLE, peers, tasks)
    assert [i for part in parts for i in range(part.first, part.last + 1)] == [*range(3, 13)]
    longest = max(part.last + 1 - part.first for part in parts)
    assert longest == 1 or longest * peers <= 250_000 + peers
    assert len(parts) >= min(tasks, 10)


TEXT = "SELECT interval, sum(duplicates) AS duplicates FROM metrics.peers GROUP BY interval"
COUNTS = Step("counts", TEXT, "metrics/overlay", by_interval=("metrics/peers",))


def test_damaged_file_is_named(tmp_path: Path) -> None:
    rows = [{"peer": i, "interval": i // 100, "duplicates": i} for i in range(1_000)]
    sound, damaged = tmp_path / "sound.parquet", tmp_path / "damaged.parquet"
    pq.write_table(pa.Table.from_pylist(rows, METRICS_PEERS.arrow), sound, **PARQUET)
    content = bytearray(sound.read_bytes())
    of_column = pq.read_metadata(sound).row_group(0).column(METRICS_PEERS.names.index("duplicates"))
    content[of_column.dictionary_page_offset + of_column.total_compressed_size // 2] ^= 1
    damaged.write_bytes(content)
    (batch,) = pa.table({"id": [0]}).to_batches()

    def fold(*paths: Path) -> StepFold:
        taken = {"metrics/peers": [Taken(dataset([path], METRICS_PEERS.arrow)) for path in paths]}
        return StepFold((COUNTS,), taken, (METRICS_OVERLAY,), (WHOLE,))

    [(name, counts)] = fold(sound)([batch])
    assert name == "metrics/overlay"
    found = {row["interval"]: row["duplicates"] for row in counts.to_pylist()}
    assert found == {i: sum(range(100 * i, 100 * (i + 1))) for i in range(3, 10)}
    with pytest.raises(OSError, match=f"{OTHER_PAGE}.*{damaged}"):
        list(fold(sound, damaged)([batch]))


def test_fold_works_in_a_process_that_has_read_nothing(tmp_path: Path) -> None:
    """As in the first task of a worker, where an ingest goes on that was killed."""
    path, fold = tmp_path / "part.parquet", tmp_path / "fold"
    rows = [{"peer": 1, "interval": 3, "duplicates": 5}]
    pq.write_table(pa.Table.from_pylist(rows, METRICS_PEERS.arrow), path, **PARQUET)
    taken = {"metrics/peers": [Taken(dataset([path], METRICS_PEERS.arrow))]}
    fold.write_bytes(pickle.dumps(StepFold((COUNTS,), taken, (METRICS_OVERLAY,), (WHOLE,))))
    program = (
        "import pickle, sys, pyarrow as pa\n"
        "fold = pickle.load(open(sys.argv[1], 'rb'))\n"
        "(batch,) = pa.table({'id': [0]}).to_batches()\n"
        "print([rows['duplicates'].to_pylist() for _, rows in fold([batch])])"
    )
    command = [sys.executable, "-c", program, str(fold)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[[5]]\n"
