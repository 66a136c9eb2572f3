"""Numbers that peers report of their own, as users read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables import EMPTY, add
from tests.support.words import unknown
from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.model.tables import table
from vizpub.questions.run import Run, Where
from vizpub.runstore.writer import writing

ROWS = [
    (0, 0, "hops", 3.5),
    (0, 0, "queue", 2.0),
    (1, 0, "queue", 0.0),
    (0, 2, "hops", 1.0),
    (2, 2, "hops", -7.0),
]


def stored(workspace: Path, name: str, rows: Sequence[tuple[Any, ...]] | None) -> Run:
    tables = {"peers": [(peer, f"p{peer}", True) for peer in range(3)], "gauges": rows}
    with writing(workspace, name) as writer:
        writer.begin(replace(EMPTY, clock=Clock(1, 1_000_000, 0, 2)))
        for place, (of, told) in enumerate(tables.items()):
            if told is not None:
                meant = table(of)
                records = [dict(zip(meant.names, row, strict=True)) for row in told]
                state = "complete" if place or rows is None else "ingesting"
                add(writer, of, of, pa.Table.from_pylist(records, meant.arrow), state=state)
    return Run.open(workspace, name)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return stored(tmp_path, "monday", ROWS)


def test_gauges_have_a_column_each_and_a_row_per_peer_and_interval(run: Run) -> None:
    assert run.gauges().to_arrow().to_pylist() == [
        {"interval": 0, "peer": 0, "peer_name": "p0", "hops": 3.5, "queue": 2.0},
        {"interval": 0, "peer": 1, "peer_name": "p1", "hops": None, "queue": 0.0},
        {"interval": 2, "peer": 0, "peer_name": "p0", "hops": 1.0, "queue": None},
        {"interval": 2, "peer": 2, "peer_name": "p2", "hops": -7.0, "queue": None},
    ]


def test_gauges_are_chosen_by_name_peer_and_interval(run: Run) -> None:
    (found,) = run.gauges(["hops"], Where(last=1)).to_arrow().to_pylist()
    assert found == {"interval": 0, "peer": 0, "peer_name": "p0", "hops": 3.5}
    of_peer = run.gauges(where=Where(peer="p2")).to_arrow().to_pylist()
    assert of_peer == [{"interval": 2, "peer": 2, "peer_name": "p2", "hops": -7.0, "queue": None}]


def test_gauge_with_the_name_of_a_column_has_a_column_of_its_own(tmp_path: Path) -> None:
    names = ["interval", "peer", "peer_name", "topic"]
    run = stored(tmp_path, "monday", [(0, 1, name, 2.0) for name in names])
    (row,) = run.gauges().to_arrow().to_pylist()
    told = {f"{name}_": 2.0 for name in names}
    assert row == {"interval": 1, "peer": 0, "peer_name": "p0", **told}


def test_unknown_gauge_is_refused_with_those_that_there_are(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=unknown("gauge", "hop", "hops")):
        run.gauges(["hop"])
    with pytest.raises(UseError, match=f"{NO_DATA} gauges"):
        stored(tmp_path, "none", None).gauges()
