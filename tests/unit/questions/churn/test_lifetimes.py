"""How long periods last, against a textbook, a plain product-limit loop and scipy."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.grouped import KEY, value_at
from tests.support.played import Played, play
from tests.support.words import naming
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.run import Run, Where

REMISSIONS = ((6, 6, 6, 7, 10, 13, 16, 22, 23), (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35))
"""Weeks of remission with 6-MP, ended and open: Freireich and others, Blood 21 (1963) 699-716."""
SURVIVAL = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
"""The product-limit estimate of these, as textbooks on survival print it."""

Lives = dict[tuple[Any, ...], list[tuple[int, bool]]]


def remit(workspace: Path) -> Run:
    """A run whose links last as long as those remissions."""
    ended, still_open = REMISSIONS

    def replace_links(made: Played) -> None:
        periods = [(0, weeks) for weeks in ended] + [(40 - weeks, OPEN) for weeks in still_open]
        made.rows["links"] = [
            {"src": 0, "dst": peer + 1, "layer": "mesh", "topic": None, "valid_from": begin,
             "valid_to": end}
            for peer, (begin, end) in enumerate(periods)
        ]  # fmt: skip

    play(workspace, "remit", Clock(1, None, 0, 39), [f"p{i}" for i in range(22)], ["t"], 0,
         replace_links)  # fmt: skip
    return Run.open(workspace, "remit")


def test_survival_of_a_textbook_example_is_that_of_the_textbook(tmp_path: Path) -> None:
    run = remit(tmp_path)
    rows = [row for row in run.survival().to_pylist() if row["of"] == "links"]
    assert {row["length"]: round(row["survival"], 3) for row in rows if row["ended"]} == SURVIVAL
    assert [row["at_risk"] for row in rows if row["ended"]] == [21, 17, 15, 12, 11, 7, 6]
    (summary,) = [row for row in run.lifetimes().to_pylist() if row["of"] == "links"]
    assert summary == {"of": "links", "layer": "mesh", "periods": 21, "ended": 9, "open": 12,
                       "median": 23, "p95": None, "longest": 35}  # fmt: skip


def list_lives(made: Played, by: str | None, where: Where) -> Lives:
    """Ticks of each period, and whether it ended, by the columns that say what a row is of."""
    ticks, lives = made.clock.ticks_per_interval, defaultdict(list)
    end = ((made.clock.last if where.last is None else where.last) + 1) * ticks
    for of in ("links", "presence", "subscriptions"):
        for row in made.rows[of]:
            begin, peer, topic = (
                row["valid_from"],
                row.get("peer", row.get("src")),
                row.get("topic"),
            )
            if begin >= end or (where.first is not None and begin < where.first * ticks):
                continue
            if where.peer is not None and made.peers[peer] != where.peer:
                continue
            if where.topic is not None and (topic is None or made.topics[topic] != where.topic):
                continue
            name = None if topic is None else made.topics[topic]
            value = {None: (), "topic": (topic, name)}.get(by, (value_at(made, peer, begin),))
            lives[of, row.get("layer"), *value].append(
                (min(row["valid_to"], end) - begin, row["valid_to"] < end)
            )
    return lives


def product_limit(lives: list[tuple[int, bool]]) -> dict[int, float]:
    """The share that survives each length, by its definition."""
    share, shares = 1.0, {}
    for length in sorted({length for length, _ in lives}):
        at_risk = sum(other >= length for other, _ in lives)
        share *= 1 - sum(life == (length, True) for life in lives) / at_risk
        shares[length] = share
    return shares


def shortest(shares: dict[int, float], most: float) -> int | None:
    return next((length for length, share in shares.items() if share <= most + 1e-12), None)


@pytest.mark.parametrize(
    ("by", "peer", "topic"), [(None, None, None), ("topic", "p1", None), (KEY, None, "t")]
)
def test_lifetimes_equal_those_of_a_plain_loop(
    played: Played, run: Run, by: str | None, peer: str | None, topic: str | None
) -> None:
    ticks, first = played.clock.ticks_per_interval, played.clock.first
    for where in (Where(), Where(first + 1, first + 3, peer, topic)):
        lives = list_lives(played, by, where)
        rows = run.lifetimes(by, where).to_pylist()
        assert {tuple(row.values())[:-6] for row in rows} == {*lives}
        for row in rows:
            *key, periods, ended, still_open, median, p95, longest = row.values()
            of = lives[tuple(key)]
            assert (periods, ended) == (len(of), sum(is_over for _, is_over in of))
            assert still_open == periods - ended
            shares = product_limit(of)
            wanted = [shortest(shares, 0.5), shortest(shares, 0.05), max(shares)]
            found = [None if n is None else round(n * ticks) for n in (median, p95, longest)]
            assert found == wanted


def test_survival_equals_that_of_scipy(played: Played, run: Run) -> None:
    ticks, lives = played.clock.ticks_per_interval, list_lives(played, None, Where())
    rows = run.survival().to_pylist()
    for key, of in lives.items():
        here = [row for row in rows if (row["of"], row["layer"]) == key]
        assert sum(row["ended"] for row in here) == sum(is_over for _, is_over in of)
        assert sum(row["ended"] + row["open"] for row in here) == here[0]["at_risk"] == len(of)
        ended = [length for length, is_over in of if is_over]
        still_open = [length for length, is_over in of if not is_over]
        curve = stats.ecdf(stats.CensoredData(ended, right=still_open)).sf
        lower = 0.0
        for row in here:
            length = round(row["length"] * ticks)
            assert row["survival"] == pytest.approx(float(curve.evaluate(np.array([length]))[0]))
            within = [is_over for n, is_over in of if lower < n <= length]
            assert (row["ended"], row["open"]) == (sum(within), len(within) - sum(within))
            assert row["longer_than"] == pytest.approx(lower / ticks)
            lower = length


def test_curve_of_many_lengths_has_few_rows(tmp_path: Path) -> None:
    def lengthen(made: Played) -> None:
        made.rows["links"] = [
            {"src": 0, "dst": 1, "layer": "mesh", "topic": None, "valid_from": 0, "valid_to": n}
            for n in range(1, 5001)
        ]

    play(tmp_path, "many", Clock(1000, 1, 0, 9), ["p", "q"], ["t"], 0, lengthen)
    rows = [r for r in Run.open(tmp_path, "many").survival().to_pylist() if r["of"] == "links"]
    assert 200 <= len(rows) < 300
    assert sum(row["ended"] for row in rows) == 5000
    for row in rows:
        assert row["survival"] == pytest.approx(1 - row["length"] / 5)


def test_layers_choose_links_alone(played: Played, run: Run) -> None:
    rows = run.lifetimes(layers=["ring"]).to_pylist()
    every = run.lifetimes().to_pylist()
    assert rows == [row for row in every if row["layer"] == "ring"]
    with pytest.raises(UnknownName, match=naming("rings", "ring")):
        run.survival(layers=["rings"])


def test_key_without_attributes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=naming("client", "--attributes")):
        remit(tmp_path).lifetimes("client")
