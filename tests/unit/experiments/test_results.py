from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.stats import spearmanr

from vizpub.experiments.groups import WHOLE
from vizpub.experiments.results import (
    EXPERIMENT_METRICS,
    ExperimentResults,
    Replica,
    check_metric,
    describe_metric,
    determination,
    estimate_difference,
    estimate_term,
    rank_correlation,
)
from vizpub.model.errors import UnknownName
from vizpub.questions.run import Run
from vizpub.simulators.engine.folder import MessageCounts, Result


@pytest.fixture
def results(workspace: Path) -> ExperimentResults:
    """The run `monday` of conftest.py as two groups, in one with two seeds."""
    run = Run.open(workspace, "monday")
    return ExperimentResults([Replica("a", 1, run), Replica("a", 2, run), Replica("b", 1, run)])


def test_metrics_are_read_over_the_requested_share(results: ExperimentResults) -> None:
    assert results.of("network_size", "a") == {1: 3.5, 2: 3.5}
    assert results.of("network_size", "b", (0.0, 0.5)) == {1: 4.0}
    assert results.of("network_size", "c") == {}
    assert results.of("diameter", "b", (0.75, 1.0)) == {}  # unknown there


def test_metrics_of_messages_and_of_the_union_are_read(results: ExperimentResults) -> None:
    assert results.of("hit_ratio", "b") == {1: 0.5}
    assert results.of("publisher_copies", "b") == {1: 2.0}
    assert results.of("union/links", "b") == {1: 4.0}
    assert results.of("union/degree / distinct_links_per_peer", "b") == {1: 1.0}


def test_messages_are_counted_by_kind(workspace: Path) -> None:
    """Those of the simulation; a system without the kind has no value."""
    kinds = (
        MessageCounts("tree join", "control", 40, 900, 38, 2),
        MessageCounts("up", "control", 5, 9, 5, 0),
    )
    run = Run.open(workspace, "monday")
    results = ExperimentResults(
        [Replica("a", 1, run, Result(4, 4, 2, 0, 1.0, kinds)), Replica("b", 1, run, None)]
    )
    names = [f"kinds/tree join/{count}" for count in ("sent", "bytes", "received", "lost")]
    assert [results.of(name, "a") for name in names] == [{1: 40}, {1: 900}, {1: 38}, {1: 2}]
    assert results.of("kinds/tree join/sent / kinds/up/sent", "a") == {1: 8}
    assert results.of("traffic/control/sent", "a") == {1: 45}
    assert results.of("traffic/control/lost", "a") == {1: 2}
    assert results.of("traffic/publication/sent", "a") == {1: 0}
    assert results.of("traffic/publication/sent", "b") == {}
    assert results.of("kinds/tree leave/sent", "a") == results.of(names[0], "b") == {}
    assert [describe_metric(name).unit for name in names[:2]] == ["messages", "bytes"]


def test_gauges_are_read_over_the_requested_share(results: ExperimentResults) -> None:
    assert results.of("gauges/hops", "b") == {1: (6 + 1) / 2}
    assert results.of("gauges/hops/total", "b", (0.0, 0.5)) == {1: 12}
    assert results.of("gauges/hops/total / gauges/lookups/total", "b") == {1: 13 / 2}
    assert results.of("gauges/nonsuch", "b") == {}


@pytest.mark.parametrize(
    "name",
    [
        "kinds/join",
        "kinds/join/seen",
        "kinds//sent",
        "traffic/all/sent",
        "gauges/",
        "gauges/a/mean",
    ],
)
def test_unknown_metric_is_refused(name: str) -> None:
    with pytest.raises(UnknownName):
        check_metric(name)


def test_estimates_ratios_and_changes_are_of_the_groups(results: ExperimentResults) -> None:
    assert results.estimate("links", "a").n == 2
    assert results.estimate("links", "a / b").value == 1.0
    assert results.estimate("links", "c").value is None
    assert results.change("network_size", "b", ((0.0, 0.5), (0.5, 1.0))).value == -0.25


def test_series_are_of_the_requested_groups(results: ExperimentResults) -> None:
    compared = results.series(["network_size"], ["b"])
    assert compared
    (found,) = compared.runs
    assert (found.group, found.series) == ("b", {"network_size": [4, 4, 3, 3]})
    assert (compared.first, compared.last) == (0, 3)
    assert results.series(["network_size"], ["c"]) is None


def test_groups_are_compared_in_pairs_of_the_seeds_that_both_have() -> None:
    """As `compare_groups` does for the same values: an unknown one leaves its seed out."""
    values = {"a": {1: 10.0, 2: 20.0, 3: 30.0}, "b": {1: 11.0, 2: 21.5}}
    less = estimate_difference(values.__getitem__, ("a", "b"))
    low, high = stats.ttest_rel([10, 20], [11, 21.5]).confidence_interval()
    assert (less.value, less.low, less.high) == pytest.approx((-1.25, low, high))
    assert estimate_term(values.__getitem__, "a / b").value == pytest.approx(15 / 16.25)
    alone = {"a": values["a"], "b": {9: 1.0, 8: 3.0}}
    assert estimate_difference(alone.__getitem__, ("a", "b")).value == 18


def test_correlation_leaves_out_peers_with_an_unknown_value(
    results: ExperimentResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table(
        {"peer": range(5), "degree": [1, 2, 3, 4, 5], "hops_mean": [None, 4.0, 3.0, 2.0, 1.0]}
    )
    monkeypatch.setattr("vizpub.experiments.results._present_peers", lambda *_: rows)
    assert results.correlation(("degree", "hops_mean"), "b", WHOLE).value == pytest.approx(-1)


def test_metrics_of_experiments_are_known_by_name() -> None:
    for name in (*EXPERIMENT_METRICS, "kinds/join/sent", "gauges/hops", "gauges/hops/per/lookups"):
        check_metric(name)
        assert describe_metric(name).name == name
    over = describe_metric("links / degree_max").over
    assert over == "quotient: mean of intervals / mean of intervals"


def test_rank_correlation_equals_spearmans_of_scipy() -> None:
    random = Random(5)
    x = np.array([random.randrange(10) for _ in range(200)])
    y = x**2 + np.array([random.randrange(30) for _ in range(200)])
    assert rank_correlation(x, y) == pytest.approx(float(spearmanr(x, y).statistic))
    assert rank_correlation(x, np.zeros(200)) is None


def test_determination_is_that_of_least_squares() -> None:
    random = Random(3)
    x = [random.uniform(0, 9) for _ in range(12)]
    y = [2 * value + random.gauss(0, 4) for value in x]
    slope, intercept = np.polyfit(x, y, 1)
    left = sum((b - slope * a - intercept) ** 2 for a, b in zip(x, y, strict=True))
    found = determination(x, y)
    assert found == pytest.approx(1 - left / (np.var(y) * 12))
    assert 0.2 < found < 0.99
    assert determination([1, 2, 3], [7, 9, 11]) == pytest.approx(1)
    assert determination([1, 1, 1], [1, 2, 3]) is None
    assert determination([1, 2, 3], [4, 4, 4]) is None


def test_fit_is_of_the_seeds_that_have_every_point(workspace: Path) -> None:
    run = Run.open(workspace, "monday")
    kinds = {count: (MessageCounts("up", "publication", count, 9, 5, 0),) for count in (1, 2, 3, 9)}

    def replica(group: str, seed: int, count: int) -> Replica:
        return Replica(group, seed, run, Result(count, 4, 2, 0, 1.0, kinds[count]))

    points = [("a", 1, 1), ("b", 1, 2), ("c", 1, 3), ("a", 2, 1), ("b", 2, 9), ("c", 2, 3)]
    results = ExperimentResults([*(replica(*point) for point in points), replica("a", 3, 1)])
    one, two = "kinds/up/sent", "kinds/up/sent / kinds/up/received"
    found = results.fit((one, two), ["a", "b", "c"], (0.0, 1.0))
    assert (found.n, found.value) == (2, pytest.approx(1))
    assert results.fit((one, two), ["a", "b", "d"], (0.0, 1.0)).value is None
    assert results.fit((one, "links"), ["a", "b", "c"], (0.0, 1.0)).value is None
