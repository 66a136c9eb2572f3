"""Blocks of intervals, and what a task says of a damaged file."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vizpub.analytics import steps
from vizpub.analytics.steps import Step, TaskContext
from vizpub.ingest.tasks.steps import BlockFold, StepInput, TaskBlock, cut_blocks
from vizpub.model.metrics import METRICS_OVERLAY, METRICS_PEERS
from vizpub.model.tables import LINKS
from vizpub.runstore.integrity import OTHER_PAGE, PARQUET, dataset

WHOLE = TaskContext(3, 12, 1, frozenset({"metrics/peers"}), 3, 3)


@pytest.mark.parametrize("tasks", [1, 3, 7, 50])
@pytest.mark.parametrize("peers", [1, 60_000, 10**7])
def test_blocks_of_bounded_size_have_each_interval_once(tasks: int, peers: int) -> None:
    parts = cut_blocks(WHOLE, peers, tasks)
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

    def fold(*paths: Path) -> BlockFold:
        taken = {
            "metrics/peers": [StepInput(dataset([path], METRICS_PEERS.arrow)) for path in paths]
        }
        return BlockFold((COUNTS,), taken, (METRICS_OVERLAY,), (TaskBlock(WHOLE),))

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
    taken = {"metrics/peers": [StepInput(dataset([path], METRICS_PEERS.arrow))]}
    fold.write_bytes(
        pickle.dumps(BlockFold((COUNTS,), taken, (METRICS_OVERLAY,), (TaskBlock(WHOLE),)))
    )
    program = (
        "import pickle, sys, pyarrow as pa\n"
        "fold = pickle.load(open(sys.argv[1], 'rb'))\n"
        "(batch,) = pa.table({'id': [0]}).to_batches()\n"
        "print([rows['duplicates'].to_pylist() for _, rows in fold([batch])])"
    )
    command = [sys.executable, "-c", program, str(fold)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[[5]]\n"


LINK = ("src", "dst", "layer", "topic", "valid_from", "valid_to")


def shaped(rows: list[tuple[object, ...]]) -> pa.Table:
    """Rows that a text makes, in the shape of the table links."""
    columns = zip(*rows, strict=True)
    given = pa.table(dict(zip(LINK, map(list, columns), strict=True)))
    shuffle = Step("links", "SELECT * EXCLUDE (more) FROM given", "links", whole=("given",))
    given = given.append_column("more", pa.nulls(len(given)))
    made = steps.compute_tables([shuffle], {"given": [given]}, [LINKS], WHOLE)
    return pa.Table.from_batches([rows for _, rows in made], LINKS.arrow)


@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_types_and_the_order_of_their_table(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [*product(range(3), range(3), ["B", "a", "é", ""])]
    rows = [
        (*kind, rng.choice([None, 0, 1]) if seed else None, n, n + 1)
        for n, kind in enumerate(rng.choices(kinds, k=40))
    ]
    found = shaped(rng.sample(rows, 40))
    assert found.schema == LINKS.arrow
    in_order = sorted(rows, key=lambda row: [(of is not None, of) for of in row])
    assert [tuple(row.values()) for row in found.to_pylist()] == in_order, f"seed {seed}"


def test_null_where_a_value_must_be_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="null"):
        shaped([(0, 1, None, None, 0, 1)])


def test_column_that_a_text_does_not_give_is_unknown() -> None:
    text = "SELECT 0 AS src, 1 AS dst, 'overlay' AS layer, 0 AS valid_from, 1 AS valid_to"
    made = steps.compute_tables([Step("links", text, "links")], {}, [LINKS], WHOLE)
    assert [rows["topic"].to_pylist() for _, rows in made] == [[None]]
