"""The counts of networks against networkx and themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.experiments.gossip.measuring import (
    SIZES,
    NetworkMeasures,
    measure_network,
)
from vizpub.experiments.gossip.points import EVENTS, HUBS, HUBS_PEERS, GossipPoint, NetworkCase
from vizpub.experiments.measured import MeasuredFile

FLOODED, FEW, MANY = GossipPoint(0.1, 1.0), GossipPoint(0.05, 0.02), GossipPoint(0.1, 0.5)
WORLD = NetworkCase("poisson:5", 600, 2, (FLOODED, FEW, MANY))


@pytest.fixture(scope="module")
def rows() -> list[NetworkMeasures]:
    return measure_network(WORLD)


def test_flooding_reaches_the_components(rows: list[NetworkMeasures]) -> None:
    assert rows[0].receivers == rows[0].component
    assert rows[0].percolated is not None
    assert rows[0].percolated > 0.95 * EVENTS


def test_few_are_reached_below_the_threshold(rows: list[NetworkMeasures]) -> None:
    few = rows[1]
    assert few.percolated is few.receivers_then is few.subscribers_then is None
    counts = sum(few.cascades)
    assert counts == EVENTS
    assert few.receivers == pytest.approx(sum(i * n for i, n in enumerate(few.cascades)) / EVENTS)
    assert len(few.cascades) <= SIZES + 1


def test_events_that_percolate_reach_more_than_the_mean(rows: list[NetworkMeasures]) -> None:
    many = rows[2]
    assert many.receivers_then is not None
    assert many.subscribers_then is not None
    assert many.receivers < many.receivers_then
    assert many.receivers_then / 600 < many.subscribers_then <= 1  # they are preferred
    assert many.passed / many.offered == pytest.approx(0.5, abs=0.01)


def test_network_of_hubs_has_exactly_its_ends_and_a_prediction() -> None:
    (row,) = measure_network(NetworkCase(HUBS, HUBS_PEERS, 1, (GossipPoint(0.1, 0.3),)))
    assert (row.ends, row.largest) == (133_600, 403)
    assert row.predicted == pytest.approx(row.receivers, rel=0.1)


def test_same_world_gives_the_same_counts(rows: list[NetworkMeasures]) -> None:
    def without_time(found: list[NetworkMeasures]) -> list[dict[str, object]]:
        return [{**vars(row), "seconds": 0} for row in found]

    assert without_time(measure_network(WORLD)) == without_time(rows)


def test_torn_line_of_what_was_kept_is_left_out(tmp_path: Path) -> None:
    kept = tmp_path / "networks.jsonl"
    kept.write_text('{"points": [[0.1, 1.0', "utf-8")
    assert MeasuredFile(kept, NetworkCase, NetworkMeasures).read_rows() == {}
