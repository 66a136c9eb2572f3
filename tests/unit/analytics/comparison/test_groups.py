"""Which runs are taken together, and what is said of the groups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.words import naming, unknown
from vizpub.analytics.comparison.groups import NO_INTERVAL, group_runs
from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import RunFacts


def run(name: str, protocol: str | None = "gossip", seed: int | None = 1, **more: Any) -> RunFacts:
    return RunFacts(name, "reports", Clock(), protocol, more, seed)


def test_runs_that_differ_only_in_seed_form_one_group() -> None:
    runs = [run("a", seed=1, fanout=2), run("b", seed=2, fanout=2), run("c", "tree", 1, degree=9)]
    found = group_runs(runs)
    assert found.groups == ("gossip", "gossip", "tree")
    assert found.notes == (f"{NO_INTERVAL}: tree",)


def test_salt_that_follows_from_the_seed_splits_no_groups() -> None:
    described = {"salt": "1/", "ends": {"highest": 5}, "described": ["salt", "ends"]}
    other = {"salt": "2/", "ends": {"highest": 7}, "described": ["salt", "ends"]}
    runs = [run("a", seed=1, bits=8, **described), run("b", seed=2, bits=8, **other)]
    found = group_runs(runs)
    assert found.groups == ("gossip", "gossip")
    assert found.notes == ()
    runs = [run("a", seed=1, salt="1/", described=["other"]), run("b", seed=2, salt="2/")]
    assert group_runs(runs).groups == ("gossip salt=1/", "gossip salt=2/")


def test_parameters_split_runs_of_one_protocol_into_groups() -> None:
    runs = [
        run("a", churn={"rate": 0.1, "kind": "weibull"}),
        run("b", churn={"rate": 0.2, "kind": "weibull"}),
        run("c", "tree", churn={"rate": 0.1, "kind": "weibull"}),
    ]
    assert group_runs(runs).groups == (
        "gossip churn.rate=0.1",
        "gossip churn.rate=0.2",
        "tree churn.rate=0.1",
    )


def test_parameter_of_only_some_runs_splits_them_into_groups() -> None:
    assert group_runs([run("a"), run("b", fanout=3)]).groups == ("gossip", "gossip fanout=3")


def test_seeds_without_other_parameters_split_no_groups() -> None:
    told = [
        RunFacts(name, "reports", Clock(), "gossip", {"seed": n}) for n, name in enumerate("ab")
    ]
    assert group_runs(told).groups == ("gossip", "gossip")


@pytest.mark.parametrize(
    ("seeds", "labels"),
    [
        ((None, None), ("gossip a", "gossip b")),
        ((1, None), ("gossip", "gossip b")),
        ((1, 1), ("gossip a", "gossip b")),
        ((1, 2, 3, None, None), ("gossip", "gossip", "gossip", "gossip d", "gossip e")),
        ((1, 2, 2), ("gossip", "gossip b", "gossip c")),
        ((1, 2), ("gossip", "gossip")),
    ],
)
def test_runs_are_pooled_only_where_they_differ_in_the_seed(
    seeds: tuple[int | None, ...], labels: tuple[str, ...]
) -> None:
    runs = [run(name, seed=seed, fanout=2) for name, seed in zip("abcde", seeds, strict=False)]
    assert group_runs(runs).groups == labels
    assert group_runs(runs, ["protocol"]).groups == ("gossip",) * len(seeds)


def test_runs_without_seeds_at_several_settings_form_one_group() -> None:
    runs = [run(name, seed=None, churn=churn) for name, churn in (("a", "none"), ("b", "5s"))]
    assert group_runs(runs, over="churn").groups == ("gossip", "gossip")


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        (("run",), ("a", "b", "c")),
        (("protocol",), ("gossip", "gossip", "tree")),
        (("fanout",), ("fanout=2", "fanout=3", "others")),
        (("protocol", "fanout"), ("gossip fanout=2", "gossip fanout=3", "tree")),
        (("seed",), ("seed=1", "seed=2", "seed=1")),
    ],
)
def test_groups_follow_the_properties_asked_for(
    by: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    runs = [run("a", seed=1, fanout=2), run("b", seed=2, fanout=3), run("c", "tree")]
    assert group_runs(runs, by).groups == labels


def test_unknown_property_is_refused_with_similar_names() -> None:
    with pytest.raises(UnknownName, match=unknown("property of these runs", "fanuot", "fanout")):
        group_runs([run("a", fanout=2)], ["fanuot"])


def test_run_without_protocol_is_grouped_by_its_source() -> None:
    assert group_runs([run("a", None)]).groups == ("reports",)


@pytest.mark.parametrize(
    ("runs", "by", "said"),
    [
        ([run("a"), run("b")], ["protocol"], "gossip: several runs have seed 1"),
        (
            [run("a", seed=None), run("b", seed=None)],
            ["protocol"],
            "gossip: a, b have no seed; if they are not independent",
        ),
        ([run("a", seed=None), run("b", seed=None)], None, "a, b: a group each"),
        (
            [run("a", fanout=2), run("b", seed=2, fanout=3)],
            ["protocol"],
            "gossip: combines runs that differ in fanout",
        ),
        (
            [run("a", peers=100), run("b", "tree", peers=200)],
            None,
            "the groups also differ in peers (gossip: 100, tree: 200)",
        ),
    ],
)
def test_notes_warn_of_misleading_groups(
    runs: list[RunFacts], by: list[str] | None, said: str
) -> None:
    assert any(note.startswith(said) for note in group_runs(runs, by).notes)


def test_notes_are_empty_for_groups_that_are_alike() -> None:
    runs = [run(f"{p}{s}", p, s, peers=100) for p in ("gossip", "tree") for s in (1, 2)]
    assert group_runs(runs).notes == ()


def test_axis_of_settings_splits_no_groups() -> None:
    runs = [
        run(f"{protocol}{churn}{seed}", protocol, seed, churn=churn, peers=100)
        for protocol in ("gossip", "tree")
        for churn in ("none", "5s")
        for seed in (1, 2)
    ]
    found = group_runs(runs, over="churn")
    assert found.groups == ("gossip",) * 4 + ("tree",) * 4
    assert found.settings == ("none", "none", "5s", "5s") * 2
    assert found.notes == ()
    alone = group_runs(runs[:3], over="churn")
    assert alone.notes == (f"{NO_INTERVAL}: gossip churn=5s",)


def test_axis_missing_in_a_run_is_refused() -> None:
    runs = [run("a", fanout=2), run("b", "tree")]
    with pytest.raises(UseError, match=naming("'b'", "fanout")):
        group_runs(runs, over="fanout")
    with pytest.raises(
        UnknownName, match=unknown("property to compare over", "interval", "intervals")
    ):
        group_runs(runs, over="interval")
