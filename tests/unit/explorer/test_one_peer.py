"""What the explorer tells of a peer, and whether its commands give the same."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.hostile import TAKEN
from tests.support.played import LAYERS, play
from vizpub.cli.main import app
from vizpub.explorer import one_peer
from vizpub.model.clock import Clock
from vizpub.questions.run import Run

_TICK = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    play(folder, "hostile", Clock(1, None, 0, 9), TAKEN, TAKEN, seed=3)
    return folder


def answered(folder: Path, command: str) -> str:
    program, *words = shlex.split(command)
    assert program == "vizpub"
    done = CliRunner().invoke(app, ["--workspace", str(folder), *words, "--format", "json"])
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("layers", [None, LAYERS[:1]])
def test_neighbours_of_the_command_are_those_of_the_tables(
    folder: Path, layers: tuple[str, ...] | None
) -> None:
    run = Run.open(folder, "hostile")
    rows = run.overlay(_TICK, layers).to_pylist()
    for peer in range(0, len(TAKEN), 5):
        told = one_peer.describe_peer(run, peer, _TICK, layers)
        statement = shlex.split(told["commands"]["neighbours"])[-1]
        found = [row["neighbour"] for row in run.sql(statement).to_pylist()]
        out = {row["dst_name"] for row in rows if row["src"] == peer}
        back = {row["src_name"] for row in rows if row["dst"] == peer}
        assert set(found) == out | back
        assert len(found) == len(out | back)


@pytest.mark.parametrize("peer", [0, 3, 5, 19])
def test_commands_with_hostile_names_can_be_typed(folder: Path, peer: int) -> None:
    commands = one_peer.describe_peer(Run.open(folder, "hostile"), peer, _TICK)["commands"]
    answered(folder, commands["neighbours"])
    answered(folder, commands["values"])


@pytest.mark.parametrize(
    ("clock", "tick", "text"),
    [
        (Clock(1, 1_000_000, 0, 9), 4, "4"),
        (Clock(1, None, 0, 9), 4, "4"),
        (Clock(1_000_000, 1, 0, 9), 4_999_999, "4"),
        (Clock(1_000_000, 1, 0, 9), 4_500_000, "4500000us"),
    ],
)
def test_tick_is_told_as_commands_take_it(clock: Clock, tick: int, text: str) -> None:
    assert one_peer.time_text(clock, tick) == text
    assert clock.parse_at(text) == tick
