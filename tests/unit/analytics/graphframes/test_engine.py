"""Metrics put together from two engines are those of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vizpub.analytics.blocks import (
    BlockMetrics,
    LinkPeriods,
    PresencePeriods,
    SubscriptionPeriods,
    measure_block,
)
from vizpub.analytics.graphframes.engine import GRAPHFRAMES_COLUMNS, LINK, TOPIC, assemble_metrics
from vizpub.analytics.options import Measures
from vizpub.analytics.structure import STRUCTURE_SCHEMA, structure_rows

N, INTERVAL = 30, 7
RNG = np.random.default_rng(3)
SRC, DST = RNG.integers(0, N, (2, 70))
SUBSCRIBER, TOPICS = np.unique(np.stack([RNG.integers(0, N, 40), RNG.integers(2, 6, 40)]), axis=1)


def _lived(*columns: Any) -> tuple[Any, ...]:
    start = np.full(len(columns[0]), INTERVAL)
    return (*columns, start, start + 1)


def _measured(measures: Measures) -> BlockMetrics:
    return measure_block(
        LinkPeriods(*_lived(SRC, DST)),
        PresencePeriods(*_lived(np.arange(N))),
        SubscriptionPeriods(*_lived(SUBSCRIBER, TOPICS)),
        INTERVAL,
        INTERVAL,
        measures,
    )


def _peers(measured: BlockMetrics) -> pa.Table:
    """As GraphFrames would give them: ranks of any sum, topics as lists, some empty."""
    columns = {name: measured.peers[name] for name in ("interval", "peer", *GRAPHFRAMES_COLUMNS)}
    columns["pagerank"] = 17 * columns["pagerank"]
    topics = [TOPICS[peer == SUBSCRIBER].tolist() for peer in range(N)]
    return pa.table({**columns, "topics": pa.array(topics, pa.list_(pa.int32()))})


def _others(measured: BlockMetrics) -> pa.Table:
    """Topics without links within are not told."""
    linked = measured.topics["topic_links"] > 0
    topics, counts = measured.topics["topic"][linked], measured.topics["topic_links"][linked]
    kinds = np.repeat([LINK, TOPIC], [len(SRC), len(topics)])
    a, b = np.concatenate([SRC, topics]), np.concatenate([DST, counts])
    return pa.table({"kind": kinds, "a": a, "b": b})


@pytest.mark.parametrize("measures", [Measures(), Measures(betweenness=False, topics=False)])
def test_assembled_metrics_equal_those_of_the_kernels(measures: Measures) -> None:
    expected, whole = _measured(measures), _measured(Measures())
    found = assemble_metrics(_peers(whole), _others(whole), measures, paths=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-12, nan_ok=True)


def test_assembled_metrics_without_paths_have_null_path_columns() -> None:
    whole = _measured(Measures())
    others = _others(whole).filter(pa.array(_others(whole)["kind"].to_numpy() == TOPIC))
    rows = structure_rows(assemble_metrics(_peers(whole), others, Measures(), paths=False))
    meant = structure_rows(whole)
    assert rows.schema == meant.schema == STRUCTURE_SCHEMA
    paths = {
        "reachable_peers", "eccentricity", "mean_distance", "mean_distance_error", "closeness",
        "betweenness", "betweenness_normalized", "betweenness_error",
    }  # fmt: skip
    of_topic = {
        "components", "topic_diameter", "topic_average_path_length",
        "topic_average_path_length_error",
    }  # fmt: skip
    of_interval = {
        "eccentricity_mean", "mean_distance_mean", "closeness_mean", "diameter",
        "average_path_length",
        "average_path_length_error", "reachable_pairs_share", "betweenness_mean", "betweenness_max",
        "topic_diameter_mean",
    }  # fmt: skip
    for found, expected in zip(rows.to_pylist(), meant.to_pylist(), strict=True):
        for nested, unknown in (("topics", of_topic), ("overlay", of_interval)):
            mine, theirs = found.pop(nested) or [], expected.pop(nested) or []
            for one, other in zip(mine, theirs, strict=True):
                _differ_in(one, other, unknown)
        _differ_in(found, expected, paths)


def _differ_in(found: dict[str, Any], expected: dict[str, Any], unknown: set[str]) -> None:
    """`found` has null for those, and the same for the others."""
    assert {name for name in unknown if found[name] is not None} == set()
    known = {name: value for name, value in expected.items() if name not in unknown}
    for name, value in known.items():
        assert found[name] == (value if value is None else pytest.approx(value, rel=1e-12)), name
