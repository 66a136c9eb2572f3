"""Bounds of clocks: against true offsets, and all paths by brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.played import Played, play
from tests.support.spreading import spread
from tests.support.words import tells, unknown
from vizpub.cli.main import app
from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.questions.run import Run, Where

PEERS = [f"p{number}" for number in range(16)]
MESSAGES = [f"m{number}" for number in range(12)]
STARTS = (0, 3, 10)
LONE = 15
"""A peer that takes part in no message."""


def play_offsets(
    workspace: Path, seed: int, offset_us: Callable[[int, int], int]
) -> tuple[Played, Run]:
    """A run in which each peer reads its own clock: ahead by this much, by peer and message."""

    def shift(made: Played) -> None:
        spread(made, MESSAGES[: 2 + 5 * (seed % 3)], seed)
        rows = made.rows
        rows["receptions"] = [
            row for row in rows["receptions"] if LONE not in (row["peer"], row["previous_hop"])
        ]
        for row in rows["receptions"]:
            row["time_us"] += offset_us(row["peer"], row["message"])
        for row in rows["publications"]:
            row["time_us"] += offset_us(row["publisher"], row["message"])

    name = f"offsets-{seed}"
    made = play(workspace, name, Clock(1_000_000, 1, 0, 9), PEERS, ["t", "u"], seed, shift)
    return made, Run.open(workspace, name)


def bounds(made: Played, start: int) -> list[tuple[int | None, int | None, bool]]:
    """The least and greatest offset of each peer, and whether bounds contradict each other."""
    everyone = range(len(PEERS))
    had = {
        (row["message"], row["peer"]): row["time_us"]
        for row in made.rows["receptions"]
        if row["first"]
    }
    for row in made.rows["publications"]:
        had[row["message"], row["publisher"]] = row["time_us"]
    most = {(a, b): 0.0 if a == b else inf for a in everyone for b in everyone}
    for row in made.rows["receptions"]:
        pair = row["previous_hop"], row["peer"]
        if (then := had.get((row["message"], pair[0]))) is not None:
            most[pair] = min(most[pair], row["time_us"] - then)
    for k, a, b in product(everyone, repeat=3):
        most[a, b] = min(most[a, b], most[a, k] + most[k, b])
    circles = [k for k in everyone if most[k, k] < 0]

    def is_broken(a: int, b: int) -> bool:
        return any(most[a, k] < inf and most[k, b] < inf for k in circles)

    def told(bound: float) -> int | None:
        return None if abs(bound) == inf else int(bound)

    found: list[tuple[int | None, int | None, bool]] = []
    for peer in everyone:
        if is_broken(start, peer) or is_broken(peer, start):
            found.append((None, None, True))
        else:
            found.append((told(-most[peer, start]), told(most[start, peer]), False))
    return found


def answers(run: Run, reference: str) -> list[tuple[int | None, int | None, bool]]:
    rows = run.clocks(reference=reference).to_pylist()
    assert {row["reference"] for row in rows} == {reference}
    assert [row["peer_name"] for row in rows] == PEERS
    columns = ("offset_us_min", "offset_us_max", "contradictory")
    return [tuple(row[name] for name in columns) for row in rows]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_those_of_all_paths_and_hold_the_true_offsets(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    offsets = [draw.randrange(-(10**7), 10**7) for _ in PEERS]
    made, run = play_offsets(tmp_path, seed, lambda peer, _: offsets[peer])
    for start in STARTS:
        found = answers(run, PEERS[start])
        assert found == bounds(made, start)
        assert found[start] == (0, 0, False)
        assert found[LONE] == (None, None, False)
        for (least, most, _), offset in zip(found, offsets, strict=True):
            truth = offset - offsets[start]
            assert least is None or least <= truth
            assert most is None or truth <= most


@pytest.mark.parametrize("seed", range(6))
def set_clock(peer: int, message: int) -> int:
    """The clock of one peer changes all the time."""
    return 10**8 if peer == 3 and message % 2 else 0


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_clocks_that_were_set_contradict_each_other(tmp_path: Path, seed: int) -> None:
    made, run = play_offsets(tmp_path, seed, set_clock)
    for start in STARTS:
        assert answers(run, PEERS[start]) == bounds(made, start)


def test_bounds_of_these_runs_are_of_all_kinds(tmp_path: Path) -> None:
    """None, one or both are known, or they contradict each other."""
    kinds = set()
    for seed in range(6):
        for offset_us in (lambda *_: 0, set_clock):
            made, _ = play_offsets(tmp_path / offset_us.__name__, seed, offset_us)
            for start in STARTS:
                kinds |= {(a is None, b is None, broken) for a, b, broken in bounds(made, start)}
    alike = {(*is_open, False) for is_open in product((False, True), repeat=2)}
    assert kinds == alike | {(True, True, True)}


def test_reference_is_the_peer_that_exchanged_messages_with_most_others(tmp_path: Path) -> None:
    made, run = play_offsets(tmp_path, 2, lambda *_: 0)
    near = {
        (row["previous_hop"], row["peer"])
        for row in made.rows["receptions"]
        if row["previous_hop"] != row["peer"]
    }
    degree = [sum(peer in pair for pair in near) for peer in range(len(PEERS))]
    [name] = {row["reference"] for row in run.clocks().to_pylist()}
    assert degree[PEERS.index(name)] == max(degree)
    with pytest.raises(UnknownName, match=unknown("peer", "nobody")):
        run.clocks(reference="nobody")
    [row] = run.clocks(Where(peer="p7"), "p0").to_pylist()
    assert row == run.clocks(reference="p0").to_pylist()[7]
    apart = run.clocks(Where(topic="t"), "p0").to_pylist()
    assert apart != run.clocks(reference="p0").to_pylist()


def test_bound_beyond_64_bits_is_unknown(tmp_path: Path) -> None:
    made, run = play_offsets(tmp_path, 1, lambda peer, _: 2**62 if peer == 3 else -(2**62))
    assert (bounds(made, 0)[3][1] or 0) >= 2**63
    _, most, contradictory = answers(run, "p0")[3]
    assert (most, contradictory) == (None, False)


def test_clocks_need_times(tmp_path: Path) -> None:
    play(
        tmp_path, "untimed", Clock(1, None, 0, 9), PEERS, ["t"], 4,
        more=lambda made: spread(made, MESSAGES, 8, timed=False),
    )  # fmt: skip
    with pytest.raises(UseError, match=NO_DATA):
        Run.open(tmp_path, "untimed").clocks()


def test_command_prints_clocks(tmp_path: Path) -> None:
    _, run = play_offsets(tmp_path, 1, lambda peer, _: 1000 * peer)
    call = ["--workspace", str(tmp_path), "metrics", run.facts.name]
    result = CliRunner().invoke(app, [*call, "clocks", "--reference", "p4", "-f", "json"])
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    assert rows == run.clocks(reference="p4").to_pylist()
    refused = CliRunner().invoke(app, [*call, "coverage", "--reference", "p4"])
    assert refused.exit_code == 2
    tells(refused.stderr, "--reference", "clocks")
