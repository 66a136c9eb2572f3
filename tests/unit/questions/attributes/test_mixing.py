"""Mixing by group, against networkx on the same overlays."""

from __future__ import annotations

import warnings

import networkx as nx
import pytest

from tests.support.grouped import KEY, value_at
from tests.support.played import LAYERS, Played
from tests.support.words import naming
from vizpub.model.errors import UnknownName
from vizpub.questions.run import Run, Where


def graph_at(played: Played, interval: int, layer: str) -> nx.DiGraph:
    """The links of a layer; peers have their value, which may be null, as `group`."""
    tick = played.clock.sampling_tick(interval)
    graph = nx.DiGraph(sorted(played.pairs(tick, [layer])))
    for peer in graph:
        graph.nodes[peer]["group"] = value_at(played, peer, tick)
    return graph


def number(value: str) -> float | None:
    return None if value.isalpha() else float(value)


def test_matrix_equals_that_of_networkx(played: Played, run: Run) -> None:
    rows = run.mixing(KEY).to_pylist()
    assert rows
    for interval in range(played.clock.first, played.clock.last + 1):
        for layer in LAYERS:
            graph = graph_at(played, interval, layer)
            matrix = nx.attribute_mixing_dict(graph, "group")
            expected = {(a, b): links for a, of in matrix.items() for b, links in of.items()}
            here = [r for r in rows if (r["interval"], r["layer"]) == (interval, layer)]
            assert {(r["group"], r["to_group"]): r["links"] for r in here} == expected
            for row in here:
                out = sum(matrix[row["group"]].values())
                assert row["share"] == pytest.approx(row["links"] / out)


def test_expected_links_have_the_sums_of_the_observed_ones(run: Run) -> None:
    rows = run.mixing(KEY).to_pylist()
    for row in rows:
        is_known = row["group"] is not None and row["to_group"] is not None
        assert (row["expected_links"] is not None) == is_known
    known = [row for row in rows if row["expected_links"] is not None]
    for row in known:
        cells = {(r["group"], r["to_group"]): r["links"] for r in known
                 if (r["interval"], r["layer"]) == (row["interval"], row["layer"])}  # fmt: skip
        out = sum(links for (a, _), links in cells.items() if a == row["group"])
        into = sum(links for (_, b), links in cells.items() if b == row["to_group"])
        assert row["expected_links"] == pytest.approx(out * into / sum(cells.values()))


def test_assortativity_equals_that_of_networkx(played: Played, run: Run) -> None:
    rows = {(r["interval"], r["layer"]): r for r in run.assortativity(KEY).to_pylist()}
    for interval in range(played.clock.first, played.clock.last + 1):
        for layer in LAYERS:
            graph = graph_at(played, interval, layer)
            if not graph.size():
                assert (interval, layer) not in rows
                continue
            row = rows[interval, layer]
            assert row["links"] == graph.size()
            known = graph.subgraph(n for n, of in graph.nodes.items() if of["group"] is not None)
            assert row["known_links"] == known.size()
            if not known.size():
                assert row["within_share"] is row["within_expected"] is row["assortativity"] is None
                continue
            matrix = nx.attribute_mixing_matrix(known, "group")
            assert row["within_share"] == pytest.approx(matrix.trace())
            assert row["within_expected"] == pytest.approx((matrix @ matrix).sum())
            if (matrix @ matrix).sum() < 1:
                wanted = nx.attribute_assortativity_coefficient(known, "group")
                assert row["assortativity"] == pytest.approx(wanted)
            else:
                assert row["assortativity"] is None
            numeric = nx.DiGraph(
                (a, b) for a, b in known.edges
                if None not in (number(known.nodes[a]["group"]), number(known.nodes[b]["group"]))
            )  # fmt: skip
            for peer in numeric:
                numeric.nodes[peer]["number"] = number(known.nodes[peer]["group"])
            ends = [[numeric.nodes[end]["number"] for end in edge] for edge in numeric.edges]
            if min((len({*column}) for column in zip(*ends, strict=True)), default=0) < 2:
                assert row["numeric_assortativity"] is None
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = nx.numeric_assortativity_coefficient(numeric, "number")
            assert row["numeric_assortativity"] == pytest.approx(wanted)


def test_window_and_layers_choose_rows(played: Played, run: Run) -> None:
    where = Where(played.clock.first + 1, played.clock.first + 2)
    for answer in (run.mixing, run.assortativity):
        every = answer(KEY).to_pylist()
        chosen = answer(KEY, where, ["ring"]).to_pylist()
        assert chosen == [
            row for row in every
            if row["layer"] == "ring" and where.first <= row["interval"] <= where.last  # type: ignore[operator]
        ]  # fmt: skip
        assert answer(KEY, layers=[]).to_pylist() == []
    with pytest.raises(UnknownName, match=naming("rings", "ring")):
        run.mixing(KEY, layers=["rings"])
