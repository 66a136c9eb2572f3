"""Exported messages, played by brute force, against what is in the tables of their runs."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.grouped import play_groups
from tests.support.played import Played, write_play
from tests.support.words import naming
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.names import NamedRun
from vizpub.questions.traces.bctrace import NO_TIME, UNDATED, write_bctrace
from vizpub.runstore.store import open_run

Row = dict[str, Any]
ARRIVALS = ("dl", "du")


def lines_of(run: NamedRun, message: str, layers: list[str] | None = None) -> list[Any]:
    out = StringIO()
    write_bctrace(run, message, out, layers)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def spans(made: Played, layers: tuple[str, ...]) -> list[tuple[Row, list[Row], range, list[Row]]]:
    """Some messages with their arrivals, the ticks in which links are shown, and these links."""
    shown = []
    for row in made.rows["publications"][::3]:
        of_it = [r for r in made.rows["receptions"] if r["message"] == row["message"]]
        ticks = [row["tick"], *(r["tick"] for r in of_it)]
        last = max(ticks) if made.clock.tick_us else min(ticks)
        near = [
            link
            for link in made.rows["links"]
            if link["layer"] in layers
            and link["topic"] in (None, row["topic"])
            and link["valid_from"] <= last
            and link["valid_to"] > min(ticks)
        ]
        own = [link for link in near if link["topic"] is not None]
        shown.append((row, of_it, range(min(ticks), last + 1), own or near))
    return shown


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layers", [None, ["mesh"]], ids=str)
def test_links_of_a_trace_are_those_of_the_topic_at_any_time(
    tmp_path: Path, seed: int, layers: list[str] | None
) -> None:
    made = play_groups(tmp_path, seed)
    run = NamedRun(open_run(tmp_path, made.name))
    for row, _, ticks, links in spans(made, tuple(layers or ("mesh", "ring"))):
        header, *events, footer = lines_of(run, row["name"], layers)
        begin = ticks[0] - events[0][0]
        assert begin % (made.clock.interval_us or 1) == 0
        assert footer["duration"] == events[-1][0]
        place = {name: node for node, name in enumerate(header["nodes"])}
        for tick in ticks:
            held = set[tuple[str, str]]()
            for time, node, code, other, *_ in events:
                if code in ("mg", "mp") and time <= tick - begin:
                    (held.add if code == "mg" else held.discard)((header["nodes"][node], other))
            assert held == {
                (made.peers[link["src"]], made.peers[link["dst"]])
                for link in links
                if link["valid_from"] <= tick < link["valid_to"]
            }
        assert {(edge["source"], edge["target"]) for edge in header["topology"]["edges"]} == {
            tuple(sorted(place[made.peers[link[end]]] for end in ("src", "dst"))) for link in links
        }


@pytest.mark.parametrize("seed", range(2))
def test_events_of_a_trace_are_the_arrivals_of_the_message(tmp_path: Path, seed: int) -> None:
    made = play_groups(tmp_path, seed)
    for row in made.rows["receptions"]:
        row["previous_hop"] = row["peer"] and 0
    for number, row in enumerate(made.rows["publications"]):
        row["bytes"] = 100 * number if number % 2 else None
    write_play(tmp_path / "again", made)
    run = NamedRun(open_run(tmp_path / "again", made.name))
    for row, of_it, ticks, _ in spans(made, ("mesh", "ring")):
        header, *events, _ = lines_of(run, row["name"])
        begin = ticks[0] - events[0][0]
        assert (header["t0"], header["peer_ids"]) == (UNDATED, header["nodes"])
        found = [
            (time + begin, code, header["nodes"][node], *fields)
            for time, node, code, *fields in events
        ]
        about = (made.topics[row["topic"]], row["name"])
        assert [event for event in found if event[1] == "pb"] == [
            (row["time_us"], "pb", made.peers[row["publisher"]], *about, row["bytes"])
        ]
        ends = [
            (r["time_us"], "dl" if r["first"] else "du", made.peers[r["peer"]], made.peers[0])
            for r in of_it
        ]
        assert sorted(event for event in found if event[1] in ARRIVALS) == sorted(
            (*end, *about) for end in ends
        )
        assert sorted(event for event in found if event[1] == "ms") == sorted(
            (time, "ms", sender, peer, *about, row["bytes"]) for time, _, peer, sender in ends
        )
        assert {event[2:] for event in found if event[1] == "tj"} == {
            (made.peers[peer], about[0])
            for tick in (range(ticks[0], ticks[-1] + 1))
            for peer in made.subscribers(row["topic"], tick)
        }


def test_run_that_reports_neither_links_nor_peers_is_exported(tmp_path: Path) -> None:
    made = play_groups(tmp_path, 1)
    for name in ("links", "presence", "subscriptions", "attributes", "rejections"):
        del made.rows[name]
    write_play(tmp_path / "again", made)
    run = NamedRun(open_run(tmp_path / "again", made.name))
    header, *events, _ = lines_of(run, "m3")
    assert {event[2] for event in events} <= {"pb", *ARRIVALS}
    assert {event[1] for event in events} == {*range(len(header["nodes"]))}


def test_message_that_cannot_be_played_is_an_error(tmp_path: Path) -> None:
    made = play_groups(tmp_path, 1)
    run = NamedRun(open_run(tmp_path, made.name))
    with pytest.raises(UnknownName, match="'nope'"):
        lines_of(run, "nope")
    with pytest.raises(UnknownName, match="'rings'"):
        lines_of(run, "m3", ["rings"])
    for rows in ("publications", "receptions"):
        for row in made.rows[rows]:
            row["time_us"] = row["time_us"] if row["message"] != 3 else None
    write_play(tmp_path / "again", made)
    with pytest.raises(UseError, match=naming(NO_TIME, "'m3'", "vizpub export gexf groups")):
        lines_of(NamedRun(open_run(tmp_path / "again", made.name)), "m3")
    for row in made.rows["receptions"]:
        row["time_us"] = None
    write_play(tmp_path / "untimed", replace(made, name="untimed"))
    with pytest.raises(UseError, match=naming(NO_TIME, "vizpub export gexf untimed")):
        lines_of(NamedRun(open_run(tmp_path / "untimed", "untimed")), "m4")
