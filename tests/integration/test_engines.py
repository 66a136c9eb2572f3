"""How large the largest overlay is, and which engine that calls for."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from vizpub.analytics import structure
from vizpub.analytics.engines import Choice, choose_engine, engine_by_part
from vizpub.analytics.options import Measures
from vizpub.analytics.structure import Versions, fits_task, largest_interval
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import ArtifactsMissing

pytestmark = pytest.mark.spark

PEERS, LINKS = 40, 90
CLOCK = Clock(ticks_per_interval=10, first=2, last=8)


def _spans(rng: Random, count: int) -> list[tuple[int, int, int, int]]:
    """Two ends and a life in ticks, some of them seen in no interval's sample."""
    begins = [rng.randrange(0, 100) for _ in range(count)]
    return [
        (i, i + 1, begin, OPEN if rng.random() < 0.2 else begin + rng.randrange(1, 40))
        for i, begin in enumerate(begins)
    ]


@pytest.fixture(scope="module")
def spans() -> dict[str, list[tuple[int, int, int, int]]]:
    rng = Random(4)
    return {"presence": _spans(rng, PEERS), "links": _spans(rng, LINKS)}


@pytest.fixture(scope="module")
def versions(spark: SparkSession, spans: dict[str, list[tuple[int, int, int, int]]]) -> Versions:
    columns = "src int, dst int, valid_from long, valid_to long"
    frames = {name: spark.createDataFrame(rows, columns) for name, rows in spans.items()}
    presence = frames["presence"].withColumnRenamed("src", "peer").drop("dst")
    subscriptions = presence.selectExpr("peer", "peer AS topic", "valid_from", "valid_to").limit(0)
    return Versions(presence, frames["links"], subscriptions)


def test_largest_interval_equals_a_plain_count(
    versions: Versions, spans: dict[str, list[tuple[int, int, int, int]]]
) -> None:
    meant = [
        max(
            sum(
                valid_from <= CLOCK.sampling_tick(i) < valid_to
                for _, _, valid_from, valid_to in rows
            )
            for i in range(CLOCK.first, CLOCK.last + 1)
        )
        for rows in (spans["presence"], spans["links"])
    ]
    assert list(largest_interval(versions, CLOCK)) == meant
    nothing = replace(versions, presence=versions.presence.limit(0), links=versions.links.limit(0))
    assert largest_interval(nothing, CLOCK) == (0, 0)


def test_kernels_are_chosen_for_what_fits_a_task(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fits_task(1_000_000, 10_000_000)
    assert not fits_task(1_000_000, 100_000_000)
    assert choose_engine("auto", PEERS, lambda: versions, CLOCK).engine == "kernels"
    monkeypatch.setattr(
        structure, "TASK_BYTES", 40 * 1_500 + 90 * 150
    )  # the largest, not all pairs
    assert choose_engine("auto", PEERS, lambda: versions, CLOCK).description == "kernels"


def test_engine_option_is_followed_whatever_the_size(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "TASK_BYTES", 0)
    for name in ("kernels", "graphframes"):
        assert choose_engine(name, PEERS, lambda: versions, CLOCK) == Choice(name, name)


def test_graphframes_is_chosen_for_what_outgrows_a_task(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "TASK_BYTES", 1_000)
    monkeypatch.setattr("vizpub.analytics.engines.load_graphframes", lambda spark: None)
    assert choose_engine("auto", PEERS, lambda: versions, CLOCK).engine == "graphframes"


def test_kernels_replace_missing_graphframes_and_say_so(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_to_be_had() -> None:
        raise ArtifactsMissing("graphframes", "not in the repository")

    monkeypatch.setattr(structure, "TASK_BYTES", 1_000)
    monkeypatch.setattr("vizpub.analytics.graphframes.graphs._is_loaded", lambda spark: False)
    monkeypatch.setattr("vizpub.analytics.graphframes.graphs.graphframes_jars", nothing_to_be_had)
    choice = choose_engine("auto", PEERS, lambda: versions, CLOCK)
    assert (choice.engine, choice.description) == (
        "kernels",
        "kernels, as GraphFrames is not available",
    )


def test_engines_of_a_run_name_what_was_left_out() -> None:
    def rows(*rows: tuple[int, int, int | None]) -> list[pa.RecordBatch]:
        columns = (pa.array(column, pa.int32()) for column in zip(*rows, strict=True))
        return [pa.record_batch([*columns], ["network_size", "links", "diameter"])]

    told = {
        diameter: engine_by_part(
            "graphframes",
            Measures(max_edge_visits=1e3),
            # The second is dear, but smaller than the smallest sample of distances.
            rows((0, 0, None), (500, 20_000, diameter), (2, 9_999, 1)),
            # Two topics of one interval, and one of another.
            [
                pa.record_batch([pa.array([7, 7])], ["interval"]),
                pa.record_batch([pa.array([9])], ["interval"]),
            ],
        )
        for diameter in (4, None)
    }
    assert told[4]["distances"] == "kernels"
    assert told[4]["topics"] == "kernels, sampled in 2 of 3 intervals"
    assert told[4]["betweenness"] == "kernels, sampled in 1 of 3 intervals"
    alone = engine_by_part("kernels", Measures(max_edge_visits=1e3), rows((500, 20_000, 4)))
    assert alone["topics"] == "kernels"
    assert alone["betweenness"] == "kernels, sampled in 1 of 1 interval"
    assert told[None]["topics"] == "graphframes, links alone"
    assert told[None]["distances"] == told[None]["betweenness"] == "none"
    assert told[None]["degrees"] == told[4]["components"] == "graphframes"
