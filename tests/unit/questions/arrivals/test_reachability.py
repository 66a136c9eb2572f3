"""Peers that messages could have reached, against components of the graph at every change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.played import Played, play
from tests.support.reachable import reachable
from tests.support.spreading import spread
from tests.support.words import tells, unknown
from vizpub.cli.main import app
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.questions.arrivals.reachability import NO_LENGTH
from vizpub.questions.run import Run, Where

COUNTS = ("eligible", "delivered", "reachable", "reachable_missed", "unreachable_delivered")


def outcome(
    made: Played, message: int, ticks: int | None, layers: Sequence[str] | None
) -> tuple[set[int], ...]:
    """The peers that COUNTS count."""
    published = made.rows["publications"][message]
    end = OPEN - 1 if ticks is None else published["tick"] + ticks
    first = {
        row["peer"]: row["tick"]
        for row in made.rows["receptions"]
        if row["message"] == message and row["first"] and row["eligible"]
    }
    eligible = {row["peer"] for row in made.rows["missed"] if row["message"] == message} | {*first}
    had = {peer for peer, tick in first.items() if tick <= end}
    links = [row for row in made.rows["links"] if not layers or row["layer"] in layers]
    can = reachable(links, published, end) & eligible
    return eligible, had, can, can - had, had - can


@pytest.mark.parametrize("layers", [None, ["mesh"], ["ring"]])
@pytest.mark.parametrize("within_us", [None, 40_000, 300_000])
def test_reachable_peers_are_those_of_components_at_every_change(
    run: Run, arrived: Played, within_us: int | None, layers: Sequence[str] | None
) -> None:
    ticks = None if within_us is None else within_us // (arrived.clock.tick_us or 1)
    rows = run.reachability(within_us=within_us, layers=layers).to_pylist()
    assert [row["message"] for row in rows] == [*range(len(arrived.rows["publications"]))]
    for row in rows:
        wanted = [*map(len, outcome(arrived, row["message"], ticks, layers))]
        assert [row[name] for name in COUNTS] == wanted, row["message"]
    assert any(row["reachable_missed"] for row in rows)
    if layers == ["ring"] and within_us:
        assert any(row["unreachable_delivered"] for row in rows)
        assert any(row["reachable"] < row["eligible"] for row in rows)


def test_reachability_of_peers_counts_their_messages(run: Run, arrived: Played) -> None:
    outcomes = [outcome(arrived, row["message"], 40, None) for row in arrived.rows["publications"]]
    wanted = [
        {"peer": peer, "peer_name": name}
        | {column: sum(peer in of[place] for of in outcomes) for place, column in enumerate(COUNTS)}
        for peer, name in enumerate(arrived.peers)
    ]
    rows = run.reachability(within_us=40_000, by="peer").to_pylist()
    assert rows == [row for row in wanted if row["eligible"]]


def test_reachability_of_a_part_is_of_the_messages_published_in_it(
    run: Run, arrived: Played
) -> None:
    publisher = arrived.rows["publications"][0]["publisher"]
    for where in (Where(4, 8), Where(topic="t"), Where(peer=arrived.peers[publisher])):
        rows = run.reachability(where).to_pylist()
        assert rows == [
            row
            for row in run.reachability().to_pylist()
            if (where.first is None or 4 <= row["interval"] <= 8)
            and (where.topic is None or row["topic_name"] == "t")
            and (
                where.peer is None
                or arrived.rows["publications"][row["message"]]["publisher"] == publisher
            )
        ]
        assert 0 < len(rows) < len(arrived.rows["publications"])


def test_reachable_peers_of_unknown_eligible_peers_are_unknown(tmp_path: Path) -> None:
    def forget(made: Played) -> None:
        spread(made, ["m0", "m1", "m2"], 8)
        made.rows["metrics/messages"][0]["eligible"] = None
        made.rows["publications"][1]["publisher"] = None

    play(tmp_path, "unknown", Clock(10, None, 0, 9), ["a", "b", "c", "d"], ["t"], 4, forget)
    run = Run.open(tmp_path, "unknown")
    rows = run.reachability().to_pylist()
    assert [row["reachable"] is None for row in rows] == [True, True, False]
    with pytest.raises(UseError, match=NO_LENGTH):
        run.reachability(within_us=1_000)
    with pytest.raises(UnknownName, match=unknown("layer", "mush")):
        run.reachability(layers=["mush"])
    manifest = run.stored.manifest
    tables = {name: entry for name, entry in manifest.tables.items() if name != "links"}
    with pytest.raises(UseError, match=NO_DATA):
        Run(replace(run.stored, manifest=replace(manifest, tables=tables))).reachability()


def test_command_prints_reachability(run: Run) -> None:
    workspace = str(run.stored.directory.parents[1])
    call = ["--workspace", workspace, "metrics", run.facts.name, "reachability"]
    result = CliRunner().invoke(app, [*call, "--within", "40ms", "--layers", "ring", "-f", "json"])
    assert json.loads(result.stdout) == run.reachability(None, 40_000, ["ring"]).to_pylist()
    by_peer = CliRunner().invoke(app, [*call, "--by", "peer", "-f", "json"])
    assert json.loads(by_peer.stdout) == run.reachability(by="peer").to_pylist()
    refused = CliRunner().invoke(app, [*call, "--by", "client"])
    assert refused.exit_code == 2
    tells(refused.stderr, "client", "message", "peer")
