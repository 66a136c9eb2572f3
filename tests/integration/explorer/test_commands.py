"""Commands that the page prints can be typed, and give what the page shows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.integration.explorer.conftest import Looking
from tests.support.hostile import TAKEN
from tests.support.played import LAYERS, Played
from vizpub.cli.main import app

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
TICK = 6
HARMFUL = [TAKEN.index(name) for name in ("'", '"', "\\", "-rf", "--help", "7", " ", "null")]


def answer(workspace: Path, command: str) -> Any:
    """The rows that a printed command gives."""
    program, *words = shlex.split(command)
    assert program == "vizpub"
    # Options may stand anywhere but after `--`.
    options = ["--workspace", str(workspace), words[0], "--format", "json", *words[1:]]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, f"{command}\n{result.stderr}"
    return json.loads(result.stdout)


@pytest.mark.parametrize("layers", [None, LAYERS[:1]])
def test_commands_of_a_peer_give_its_values_and_neighbours(
    look: Look, plays: Plays, stage: Path, layers: tuple[str, ...] | None
) -> None:
    run = plays["hostile"]
    printed = look().open("hostile", screen="messages").evaluate(
        """async ([peers, tick, layers]) => {
          const { peerCommands } = await import("./printed.js");
          return peers.map((peer) => peerCommands(explorer.run.facts, peer, tick, layers));
        }""",
        [HARMFUL, TICK, layers and list(layers)],
    )  # fmt: skip
    pairs = run.pairs(TICK, layers or LAYERS)
    for peer, [[_, values], [_, neighbours], [_, cypher]] in zip(HARMFUL, printed, strict=True):
        near = {dst for src, dst in pairs if src == peer} | {s for s, d in pairs if d == peer}
        found = [row["neighbour"] for row in answer(stage, neighbours)]
        assert sorted(found) == sorted(TAKEN[other] for other in near)
        rows = [
            of for of in run.rows["metrics/peers"] if (of["peer"], of["interval"]) == (peer, TICK)
        ]
        assert [row["degree"] for row in answer(stage, values)] == [of["degree"] for of in rows]
        assert json.dumps(TAKEN[peer], ensure_ascii=False) in cypher


def test_command_for_a_path_takes_names_that_look_like_options(
    look: Look, plays: Plays, stage: Path
) -> None:
    ends = [TAKEN.index(name) for name in ("-rf", "--help", "'")]
    tick = plays["hostile"].last
    present = plays["hostile"].present(tick)
    pairs = [(a, b) for a in ends for b in sorted(present)[:2] if a in present and a != b]
    printed = look().open("hostile", screen="messages").evaluate(
        """async ([pairs, tick]) => {
          const { pathCommand } = await import("./printed.js");
          return pairs.map(([from, to]) => pathCommand(explorer.run.facts, from, to, tick));
        }""",
        [pairs, tick],
    )  # fmt: skip
    assert printed
    for (source, target), command in zip(pairs, printed, strict=True):
        rows = answer(stage, command)
        if rows:
            assert (rows[0]["peers"][0], rows[0]["peers"][-1]) == (TAKEN[source], TAKEN[target])


def test_commands_of_things_give_their_rows(look: Look, plays: Plays, stage: Path) -> None:
    run = plays["hostile"]
    links = [row for row in run.rows["links"] if row["src"] in HARMFUL][:12:4]
    printed = look().open("hostile", screen="messages").evaluate(
        """async ([peers, links, interval]) => {
          const { facts } = explorer.run;
          const all = await import("./printed.js");
          return [
            peers.map((peer) => all.peerHistoryCommands(facts, { peer, interval })),
            peers.map((topic) => all.topicCommands(facts, { topic, interval: null })),
            links.map(({ src, dst }) => all.linkCommands(facts, { src, dst, interval: null })),
          ];
        }""",
        [HARMFUL, links, TICK],
    )  # fmt: skip
    for peer, [_, [_, text], [_, cypher]] in zip(HARMFUL, printed[0], strict=True):
        near = [row for row in run.holding("links", TICK) if peer in (row["src"], row["dst"])]
        assert len(answer(stage, text)) == len(near)
        assert json.dumps(TAKEN[peer], ensure_ascii=False) in cypher
    for topic, [_, [_, text], _] in zip(HARMFUL, printed[1], strict=True):
        rows = [row["peer"] for row in answer(stage, text)]
        own = [row["peer"] for row in run.rows["subscriptions"] if row["topic"] == topic]
        assert sorted(rows) == sorted(own)
    for link, [[_, text], [_, copies], _] in zip(links, printed[2], strict=True):
        ends = {link["src"], link["dst"]}
        rows = [row for row in run.rows["links"] if {row["src"], row["dst"]} == ends]
        assert len(answer(stage, text)) == len(rows)
        came = [row for row in run.rows["receptions"] if {row["previous_hop"], row["peer"]} == ends]
        assert len(answer(stage, copies)) == len(came)
