"""Duplicates and their times, against plain loops over the arrivals of a run made at random."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.played import Played
from tests.support.words import tells, unknown
from vizpub.cli.main import app
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import DUPLICATES, NO_DATA
from vizpub.model.tables import COPY_FLAGS
from vizpub.questions.run import Run, Where

Row = dict[str, Any]


def client_of(made: Played, peer: int, tick: int) -> str | None:
    return next(
        (
            row["value"]
            for row in made.holding("attributes", tick)
            if (row["peer"], row["key"]) == (peer, "client")
        ),
        None,
    )


FLAGS = [flag.name for flag in COPY_FLAGS]


def doubled(size: int | None) -> int | None:
    """The power of two that is at least the size."""
    return None if size is None else 1 << (size - 1).bit_length()


def copies_of(made: Played) -> Iterator[Row]:
    """A row for each first reception, with the other arrivals there."""
    arrivals = defaultdict(list)
    for row in made.rows["receptions"]:
        arrivals[row["message"], row["peer"]].append(row)
    for (message, peer), rows in arrivals.items():
        times: dict[bool, list[int | None]] = {True: [], False: []}
        for row in rows:
            times[row["first"]].append(row["time_us"])
        published = made.rows["publications"][message]
        if times[True]:
            known = None not in times[True] + times[False] and times[False]
            yield {
                "message": message, "peer": peer, "topic": published["topic"],
                "interval": published["interval"],
                "size": doubled(published["bytes"]),
                "client": client_of(made, peer, published["tick"]),
                "duplicates": len(times[False]),
                **{flag: [row[flag] for row in rows if not row["first"]] for flag in FLAGS},
                "after": min(times[False]) - times[True][0] if known else None,  # type: ignore
            }  # fmt: skip


def count_true(rows: list[Row], flag: str) -> int | None:
    """How many duplicates have the flag; null if it is unknown of one."""
    flags = [of_copy for row in rows for of_copy in row[flag]]
    return None if None in flags else sum(flags)


def summed(rows: list[Row]) -> Row:
    after = [row["after"] for row in rows if row["after"] is not None]
    quantiles = {"p50": 0.5, "p95": 0.95, "max": 1}
    return {
        "first_receptions": len(rows),
        "with_duplicates": sum(row["duplicates"] > 0 for row in rows),
        "duplicates": sum(row["duplicates"] for row in rows),
        **{f"duplicates_{flag}": count_true(rows, flag) for flag in FLAGS},
        **{
            f"first_duplicate_us_{name}": float(np.quantile(after, of)) if after else None
            for name, of in quantiles.items()
        },
    }


@pytest.mark.parametrize("by", [None, "message", "peer", "topic", "interval", "size", "client"])
def test_duplicates_are_those_of_a_loop_over_the_arrivals(
    run: Run, arrived: Played, by: str | None
) -> None:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in copies_of(arrived):
        groups[row[by] if by else None].append(row)
    rows = run.duplicates(by).to_pylist()
    column = {None: None, "client": "group", "size": "size_at_most"}.get(by, by)
    assert len(rows) == len(groups)
    for row in rows:
        wanted = summed(groups[row[column] if column else None])
        assert {name: row[name] for name in wanted} == pytest.approx(wanted, nan_ok=True)
    if by is None:
        assert [name for name, value in rows[0].items() if value is None] == ["duplicates_by_iwant"]


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        (Where(2, 5), lambda row: 2 <= row["interval"] <= 5),
        (Where(topic="u"), lambda row: row["topic"] == 1),
        (Where(peer="p7"), lambda row: row["peer"] == 7),
        (Where(0, 0), lambda row: row["interval"] == 0),
    ],
)
def test_duplicates_of_a_part_are_of_its_messages_and_receivers(
    run: Run, arrived: Played, where: Where, chosen: Callable[[Row], bool]
) -> None:
    [row] = run.duplicates(where=where).to_pylist()
    wanted = summed([copy for copy in copies_of(arrived) if chosen(copy)])
    assert row == pytest.approx(wanted)


def test_duplicate_before_the_delivery_of_the_first_copy_has_a_negative_time(run: Run) -> None:
    rows = run.duplicates("peer").to_pylist()
    assert any((row["first_duplicate_us_p50"] or 0) < 0 for row in rows)


def without(run: Run, *names: str) -> Run:
    """The run as if its source did not report these."""
    return Run(replace(run.stored, manifest=replace(run.stored.manifest, unknown=names)))


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda run: without(run, DUPLICATES).duplicates(), UseError, NO_DATA),
        (lambda run: run.duplicates("colour"), UnknownName, unknown("attribute", "colour")),
    ],
)
def test_duplicates_that_are_unknown_are_refused(
    run: Run, ask: Callable[[Run], object], error: type[UseError], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(run)


def test_command_prints_duplicates(run: Run) -> None:
    workspace = str(run.stored.directory.parents[1])
    call = ["--workspace", workspace, "metrics", run.facts.name, "duplicates"]
    result = CliRunner().invoke(app, [*call, "--by", "topic", "--from", "3", "-f", "json"])
    assert json.loads(result.stdout) == run.duplicates("topic", Where(3)).to_pylist()
    chosen = CliRunner().invoke(app, [*call, "--by", "topic", "-f", "json", "--columns=duplicates"])
    columns = "topic", "topic_name", "duplicates"
    rows = run.duplicates("topic").to_pylist()
    assert json.loads(chosen.stdout) == [{name: row[name] for name in columns} for row in rows]
    for option in ("--totals", "--layers=mesh"):
        refused = CliRunner().invoke(app, [*call, option])
        assert refused.exit_code == 2
        tells(refused.stderr, option.partition("=")[0], "duplicates")
