"""Own metrics: what a function is given, and what it may return."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tests.support.own import examples
from vizpub.analytics.own import Interval, Message, OverlayPeriods, OwnFunction, Spans, measure_own
from vizpub.ingest.measures.own import load_own_metrics
from vizpub.model.errors import OwnMetricFailed
from vizpub.model.own import OwnMetric

WINDOW = range(3, 9)
PEERS = range(9)


def own(function: Callable[..., Any], level: str = "peer") -> OwnFunction:
    return OwnFunction(OwnMetric("mine", level), cloudpickle.dumps(function))  # type: ignore[no-untyped-call]


def spans(schema: dict[str, pa.DataType], rows: list[tuple[Any, ...]]) -> Spans:
    """Rows of the columns, then start and stop."""
    columns = {
        name: pa.array([row[at] for row in rows], kind)
        for at, (name, kind) in enumerate(schema.items())
    }
    ends = (np.array([row[at] for row in rows], np.int32) for at in (-2, -1))
    return Spans(pa.table(columns), *ends)


class History:
    """What holds in each interval, in sets, and the same as spans."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.peers = {i: {p for p in PEERS if rng.random() < 0.8} for i in WINDOW}
        every = [(a, b, layer) for a in PEERS for b in PEERS for layer in ("mesh", "tree")]
        self.links = {i: {link for link in every if rng.random() < 0.5} for i in WINDOW}
        self.taken = {
            i: {(t, p) for t in range(3) for p in PEERS if rng.random() < 0.4} for i in WINDOW
        }

    def edges(self, interval: int, *layers: str) -> set[tuple[int, int]]:
        here = self.peers.get(interval, set())
        return {
            (a, b)
            for a, b, layer in self.links.get(interval, set())
            if {a, b} <= here and a != b and (not layers or layer in layers)
        }

    @property
    def overlay(self) -> OverlayPeriods:
        index, text = pa.int32(), pa.string()
        return OverlayPeriods(
            spans({"peer": index}, [(p, i, i + 1) for i in WINDOW for p in self.peers[i]]),
            spans(
                {"src": index, "dst": index, "layer": text, "topic": index},
                [(*link, None, i, i + 1) for i in WINDOW for link in self.links[i]],
            ),
            spans(
                {"topic": index, "peer": index},
                [(*pair, i, i + 1) for i in WINDOW for pair in self.taken[i]],
            ),
        )


@pytest.mark.parametrize("seed", range(3))
def test_interval_has_what_present_peers_hold(seed: int) -> None:
    history = History(seed)
    for number in WINDOW:
        interval = history.overlay.at(number)
        here = history.peers[number]
        assert interval.peers.to_pylist() == sorted(here)
        assert interval.edges() == history.edges(number)
        assert interval.edges("mesh") == history.edges(number, "mesh")
        taken = sorted((t, p) for t, p in history.taken[number] if p in here)
        assert [tuple(row.values()) for row in interval.subscriptions.to_pylist()] == taken
        assert interval.topics.to_pylist() == sorted({t for t, _ in taken})


def test_examples_of_the_page_measure_what_they_say(tmp_path: Any) -> None:
    history, found = History(5), load_own_metrics(examples(tmp_path))
    values = measure_own(found, history.overlay, WINDOW, WINDOW.start)
    cores, stable, alike = [], [], []
    for number in WINDOW:
        graph = nx.Graph(history.edges(number))
        differ = len({degree for _, degree in graph.degree()}) > 1
        alike.append(nx.degree_assortativity_coefficient(graph) if differ else math.nan)
        graph.add_nodes_from(history.peers[number])
        core = nx.core_number(graph)
        then, now = history.edges(number - 1, "mesh"), history.edges(number, "mesh")
        for peer in sorted(history.peers[number]):
            cores.append(core[peer])
            had = {link for link in then if link[0] == peer}
            stable.append(len(had & now) / len(had) if had else math.nan)
    assert values["peer"]["core_number"].tolist() == cores
    np.testing.assert_allclose(values["peer"]["mesh_stability"], stable)
    np.testing.assert_allclose(values["overlay"]["degree_assortativity"], alike)
    assert any(0 < value < 1 for value in stable)
    assert not all(map(math.isnan, alike))


def test_blocks_do_not_matter() -> None:
    def came(interval: Interval) -> float | None:
        before = interval.before
        return None if before is None else len(interval.edges() - before.edges())

    def topics(interval: Interval) -> list[int]:
        return [interval.number] * len(interval.topics)

    chosen = [own(came, "overlay"), own(topics, "topic")]
    overlay = History(1).overlay
    whole = measure_own(chosen, overlay, WINDOW, WINDOW.start)
    parts = [measure_own(chosen, overlay, range(at, at + 2), WINDOW.start) for at in WINDOW[::2]]
    assert math.isnan(whole["overlay"]["mine"][0])
    assert not np.isnan(whole["overlay"]["mine"][1:]).any()
    for level in ("overlay", "topic"):
        joined = np.concatenate([part[level]["mine"] for part in parts])
        np.testing.assert_array_equal(joined, whole[level]["mine"])


GOOD: list[tuple[Callable[[Interval], Any], list[float]]] = [
    (lambda _: {5: 1, 2: None}, [math.nan, 1]),
    (lambda _: [1, 2.5], [1, 2.5]),
    (lambda i: i.peers, [2, 5]),
    (lambda i: i.peers.to_numpy() / 2, [1, 2.5]),
    (lambda _: pa.array([None, 4.0]), [math.nan, 4]),
]
BAD: list[tuple[Callable[[Interval], Any], str]] = [
    (lambda _: {2: 1, 9: 1}, r"peers .*: 9$"),
    (lambda _: {2: 1}, r"peers 5; None"),
    (lambda _: [1], r"1 number for 2 peers"),
    (lambda _: 7, r"type int, .*for each of the peers"),
    (lambda _: "ab", r"type str, .*for each"),
    (lambda _: [1, "b"], r"type str, .*number$"),
    (lambda _: [1, True], r"type bool, .*number$"),
    (lambda _: [1, math.inf], r"infinite number; None"),
    (lambda _: [1, 10**400], r"beyond the range of a double"),
    (lambda _: 1 // 0, r"ZeroDivisionError: .+ \(line \d+\)$"),
]
HERE = Interval(
    4,
    pa.array([2, 5], pa.int32()),
    pa.table({name: pa.array([], pa.int32()) for name in ("src", "dst", "layer", "topic")}),
    pa.table({"topic": pa.array([8], pa.int32()), "peer": pa.array([5], pa.int32())}),
)


@pytest.mark.parametrize(("function", "meant"), GOOD)
def test_numbers_are_taken_in_the_order_of_the_peers(function: Any, meant: list[float]) -> None:
    np.testing.assert_array_equal(own(function).of_interval(HERE), meant)


@pytest.mark.parametrize(("function", "why"), BAD)
def test_wrong_result_is_an_error_that_names_the_metric(function: Any, why: str) -> None:
    with pytest.raises(OwnMetricFailed, match=rf"'mine' .*interval 4: .*{why}"):
        own(function).of_interval(HERE)


def test_wrong_topic_and_wrong_number_of_an_overlay_are_errors() -> None:
    with pytest.raises(OwnMetricFailed, match=r"topics .*: 2$"):
        own(lambda _: {2: 1}, "topic").of_interval(HERE)
    assert own(lambda _: {8: 3}, "topic").of_interval(HERE).tolist() == [3]
    with pytest.raises(OwnMetricFailed, match=r"type list, "):
        own(lambda _: [1], "overlay").of_interval(HERE)


def test_message_is_measured_by_its_arrivals() -> None:
    message = Message(12, 0, None, 3, 4, None, pa.table({"hop": [1, 2, None]}))
    assert own(lambda m: m.arrivals.num_rows, "message").of_message(message) == 3
    assert math.isnan(own(lambda m: m.publisher, "message").of_message(message))
    with pytest.raises(OwnMetricFailed, match=r"message #12: KeyError: "):
        own(lambda m: m.arrivals["hops"], "message").of_message(message)
