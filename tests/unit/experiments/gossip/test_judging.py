"""Verdicts, on networks that are as they should be and on false ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vizpub.experiments.claims import JudgedClaim
from vizpub.experiments.gossip.judging import (
    GossipResults,
    cascade_histogram,
    histogram_points,
    judge_claims,
)
from vizpub.experiments.gossip.measuring import NetworkMeasures, measure_network
from vizpub.experiments.gossip.points import (
    HUBS,
    HUBS_PEERS,
    GossipPoint,
    NetworkCase,
    points_above,
    points_below,
)
from vizpub.experiments.gossip.report import EXPERIMENT, report_on

SIZES = (1_000, 3_000)


@pytest.fixture(scope="module")
def rows() -> list[NetworkMeasures]:
    """Three small networks of each kind."""
    points = (*points_below("poisson:5"), *points_above())
    worlds = [
        NetworkCase("poisson:5", peers, seed, points) for peers in SIZES for seed in (1, 2, 3)
    ]
    worlds += [
        NetworkCase("scale-free:3.3", 3_000, seed, (*points_below("scale-free:3.3"),))
        for seed in (1, 2)
    ]
    worlds += [
        NetworkCase(
            HUBS,
            HUBS_PEERS,
            1,
            (GossipPoint(0.1, 0.6), GossipPoint(0.1, 1.0), GossipPoint(0.1, 0.3)),
        )
    ]
    return [row for world in worlds for row in measure_network(world)]


def verdict(rows: list[NetworkMeasures], words: str) -> JudgedClaim:
    (found,) = (one for one in judge_claims(GossipResults(rows)) if words in one.what)
    return found


def test_honest_networks_meet_what_holds_at_any_size(rows: list[NetworkMeasures]) -> None:
    for words in ("publisher's component", "ends of links", "such neighbours = γ", "if it perc"):
        assert verdict(rows, words).outcome == "met", words


def test_receivers_beyond_the_component_are_found(rows: list[NetworkMeasures]) -> None:
    false = [replace(r, receivers=r.receivers + 0.01) if r.gamma == 1 else r for r in rows]
    assert verdict(false, "publisher's component").outcome == "not met"


def test_unfair_coins_are_found(rows: list[NetworkMeasures]) -> None:
    false = [replace(r, passed=int(r.passed * 1.05)) if r.gamma == 0.3 else r for r in rows]
    assert verdict(false, "such neighbours = γ").outcome == "not met"


def test_another_network_of_hubs_is_found(rows: list[NetworkMeasures]) -> None:
    false = [replace(r, ends=133_601) if r.topology == HUBS else r for r in rows]
    assert verdict(false, "ends of links").outcome == "not met"


def test_mean_that_is_no_formula_is_found(rows: list[NetworkMeasures]) -> None:
    words = "poisson:5, N = 3,000, σ ≤ σc / 2: mean receivers"
    false = [replace(r, receivers=1 + 3 * (r.receivers - 1)) for r in rows]
    assert verdict(rows, words).outcome == "met"
    assert verdict(false, words).outcome == "not met"


def test_subscribers_are_preferred_as_the_paper_forgets(rows: list[NetworkMeasures]) -> None:
    words = "poisson:5, N = 3,000, σ ≤ σc / 2: mean subscribers are σ"
    rows = [row for row in rows if row.gamma != 0.18]  # too near the threshold for few peers
    assert verdict(rows, f"{words} + σ/Γ").outcome == "met"
    assert verdict(rows, f"{words} · receivers").outcome == "not met"
    of_paper = [replace(r, subscribers=r.sigma * r.receivers) for r in rows]
    assert verdict(of_paper, f"{words} + σ/Γ").outcome == "not met"
    assert verdict(of_paper, f"{words} · receivers").outcome == "met"


def test_histogram_is_a_distribution_near_the_formula(rows: list[NetworkMeasures]) -> None:
    results = GossipResults(rows)
    for point in histogram_points(results):
        ours, told = cascade_histogram(results, point)
        assert ours.sum() <= 1 + 1e-12
        assert ours[1] == pytest.approx(told[1], abs=0.06)


def test_report_has_every_figure_and_claim(
    rows: list[NetworkMeasures], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.experiments.report._FORMS", ("svg",))  # PNG takes twice as long
    report = report_on(GossipResults(rows), "small")
    text = report.write(tmp_path).read_text("utf-8")
    assert report.summary in text
    for name in ("figure-1", "figure-2", "figure-3", "figure-4", "figure-5", "cascades", "copies"):
        assert f"figures/{name}.png" in text
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 5_000
    assert all(one.what.replace("|", "\\|") in text for one in judge_claims(GossipResults(rows)))
    assert len((tmp_path / "values.csv").read_text("utf-8").splitlines()) == len(rows) + 1


def test_description_names_the_networks() -> None:
    text = "\n".join(EXPERIMENT.describe("full"))
    assert "acl:a=6,b=1, 2,482 peers: 20 networks" in text
