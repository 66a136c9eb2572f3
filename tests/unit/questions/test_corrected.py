"""Delays with corrected clocks, against true offsets and arrivals one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from tests.support.played import Played, play
from tests.support.spreading import spread
from tests.support.words import tells
from tests.unit.questions.arrivals.test_clocks import MESSAGES, PEERS, bounds, play_offsets
from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs
from vizpub.cli.main import app
from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.questions.corrected import AS_REPORTED
from vizpub.questions.run import Run, Where
from vizpub.questions.snapshots import coverage

SEEDS = (1, 2, 3, 4)
MEASURES = ("delay_us_mean", "delay_us_p50", "delay_us_p95", "delay_us_p99", "delay_us_max")


def play_shifted(workspace: Path, seed: int) -> tuple[Played, Run, list[int]]:
    draw = Random(seed)
    offsets = [draw.randrange(-(10**7), 10**7) for _ in PEERS]
    made, run = play_offsets(workspace, seed, lambda peer, _: offsets[peer])
    return made, run, offsets


def true_delays(made: Played, offsets: list[int]) -> dict[tuple[int, int], int]:
    """By message and peer, those of first arrivals by a clock that is right."""
    published = {
        row["message"]: row["time_us"] - offsets[row["publisher"]]
        for row in made.rows["publications"]
    }
    return {
        (row["message"], row["peer"]): row["time_us"]
        - offsets[row["peer"]]
        - published[row["message"]]
        for row in made.rows["receptions"]
        if row["first"]
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_delays_are_corrected_by_the_middle_of_both_bounds(tmp_path: Path, seed: int) -> None:
    made, run, offsets = play_shifted(tmp_path, seed)
    wrong, right = true_delays(made, [0] * len(PEERS)), true_delays(made, offsets)
    publishers = {row["message"]: row["publisher"] for row in made.rows["publications"]}
    known = {
        peer: (least + (most - least) // 2, (most - least + 1) // 2)
        for peer, (least, most, _) in enumerate(bounds(made, 3))
        if least is not None and most is not None
    }
    corrected = 0
    for row in run.correct_clocks(reference="p3").delays().to_pylist():
        at, publisher = (row["message"], row["peer"]), publishers[row["message"]]
        if {row["peer"], publisher} <= known.keys():
            (here, error), (there, more) = known[row["peer"]], known[publisher]
            assert row["delay_us"] == wrong[at] - here + there
            assert abs(row["delay_us"] - right[at]) <= error + more
            corrected += 1
        else:
            assert row["delay_us"] == wrong[at]
    assert corrected


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_of_messages_are_of_the_corrected_arrivals(tmp_path: Path, seed: int) -> None:
    _, run, _ = play_shifted(tmp_path, seed)
    corrected = run.correct_clocks()
    statement = "SELECT message, peer, previous_hop, first, time_us, delay_us FROM receptions"
    arrivals = corrected.sql(statement).to_pylist()
    had = {(row["message"], row["peer"]): row["time_us"] for row in arrivals if row["first"]}
    for row in corrected.metrics("messages").to_pylist():
        of_message = [one for one in arrivals if one["message"] == row["message"]]
        delays = [one["delay_us"] for one in of_message if one["first"]]
        if delays:
            shares = (np.mean(delays), *np.percentile(delays, [50, 95, 99, 100]))
            assert [row[name] for name in MEASURES] == pytest.approx(shares)
        else:
            assert {row[name] for name in MEASURES} == {None}
        early = [
            one["delay_us"] < 0
            or one["time_us"] < had.get((one["message"], one["previous_hop"]), one["time_us"])
            for one in of_message
        ]
        assert row["causality_violations"] == (sum(early) if early else None)


def test_comparisons_and_figures_are_of_the_corrected_arrivals(tmp_path: Path) -> None:
    _, run, _ = play_shifted(tmp_path, 1)
    corrected = run.correct_clocks()
    names = ("delay_us_p95", "causality_violations")
    rows = corrected.metrics("messages", list(names)).to_pylist()
    [compared] = measure_runs([corrected], ComparisonRequest(names)).runs
    for name in names:
        values = [row[name] for row in rows if row[name] is not None]
        assert compared.values[name] == pytest.approx(np.mean(values))
        [(mean,)] = corrected.sql(f"SELECT avg({name}) FROM metrics.messages").to_arrow().columns
        assert mean.as_py() == pytest.approx(np.mean(values))
    delays = corrected.delays().to_pylist()
    known = {(one["message"], one["delay_us"]) for one in delays if one["delay_us"] is not None}
    drawn = coverage(corrected).to_pylist()
    assert {(one["message"], one["delay_us"]) for one in drawn if one["delivered"]} <= known
    assert drawn != coverage(run).to_pylist()
    with pytest.raises(UseError, match=AS_REPORTED):
        corrected.clocks()


def test_conditions_are_about_what_is_corrected(tmp_path: Path) -> None:
    _, run, _ = play_shifted(tmp_path, 1)
    stored = run.correct_clocks().stored
    for table, column in (("receptions", "time_us"), ("metrics/messages", "delay_us_p95")):
        values = stored.read(table, [column])[column].drop_null().to_pylist()
        most = float(np.median(values))
        chosen = stored.read(table, ["message"], pc.field(column) <= most)
        assert len(chosen) == sum(value <= most for value in values)
        assert len(chosen) != len(run.stored.read(table, ["message"], pc.field(column) <= most))


def test_unknown_offsets_leave_metrics_as_they_are_stored(tmp_path: Path) -> None:
    """In the first interval there are no messages to bound them."""
    clock = Clock(1_000_000, 1, 0, 9)
    play(tmp_path, "alike", clock, PEERS, ["t"], 2, lambda made: spread(made, MESSAGES, 2))
    run = Run.open(tmp_path, "alike")
    nothing = run.correct_clocks(Where(0, 0))
    assert nothing.delays().to_pylist() == run.delays().to_pylist()
    assert nothing.coverage().to_pylist() == run.coverage().to_pylist()
    stored, measured = (
        of.messages(["delay_us_p95", "hit_ratio"]).to_pylist() for of in (run, nothing)
    )
    assert measured == [pytest.approx(row, nan_ok=True) for row in stored]


def test_command_corrects_clocks_only_if_asked_and_says_what(tmp_path: Path) -> None:
    made, run, _ = play_shifted(tmp_path, 1)
    both = sum(least is not None and most is not None for least, most, _ in bounds(made, 4))
    call = ["--workspace", str(tmp_path), "metrics", run.facts.name]

    def ask(*arguments: str) -> tuple[list[dict[str, Any]], str]:
        result = CliRunner().invoke(app, [*call, *arguments, "-f", "json"])
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout), result.stderr

    plain, said = ask("coverage")
    assert plain == run.coverage().to_pylist()
    assert "corrected" not in said
    asked = ("coverage", "--correct-clocks", "--reference", "p4")
    rows, said = ask(*asked)
    assert rows == run.correct_clocks(reference="p4").coverage().to_pylist() != plain
    tells(said, "p4", str(both), str(len(PEERS) - both))
    assert re.search(r"within \d+", said)
    for command, *arguments in (
        ("compare", "--metrics", "delay_us_p95", "-f", "json"),
        ("plot", "delay_us_p95", "--kind", "ecdf", "-o", str(tmp_path / "delays.svg")),
    ):
        plain_call = [*call[:2], command, run.facts.name, *arguments]
        plain_answer, answer = (
            CliRunner().invoke(app, [*plain_call, *option]) for option in ([], ["--correct-clocks"])
        )
        assert (plain_answer.exit_code, answer.exit_code) == (0, 0), answer.stderr
        assert "corrected" not in plain_answer.stderr
        tells(answer.stderr, "corrected", str(both))
        assert command == "plot" or answer.stdout != plain_answer.stdout
    refused = CliRunner().invoke(app, [*call, "duplicates", "--correct-clocks"])
    assert refused.exit_code == 2
    tells(refused.stderr, "--correct-clocks", "coverage", "messages")
