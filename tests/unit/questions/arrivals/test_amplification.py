"""Bytes of copies, against plain loops over the arrivals of a run made at random."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.played import Played
from tests.support.words import unknown
from tests.unit.questions.arrivals.test_duplicates import doubled
from vizpub.cli.main import app
from vizpub.model.errors import UnknownName
from vizpub.questions.run import Run, Where

Row = dict[str, Any]
COLUMNS = {None: None, "size": "size_at_most", "client": "group"}


def client_of(made: Played, published: Row) -> str | None:
    values = [
        row["value"]
        for row in made.holding("attributes", published["tick"])
        if (row["peer"], row["key"]) == (published["publisher"], "client")
    ]
    return values[0] if values else None


def summed(made: Played, messages: list[Row]) -> Row:
    sized = {row["message"]: row for row in messages if row["bytes"] is not None}
    sums: dict[str, int | None] = dict.fromkeys(("received", "needed", "of_duplicates"), 0)
    senders = [0, 0]
    is_known = True
    for table in ("receptions", "rejections"):
        for row in made.rows[table]:
            if (published := sized.get(row["message"])) is None:
                continue
            size = published["bytes"]
            sums["received"] += size
            if table == "receptions":
                sums["needed" if row["first"] else "of_duplicates"] += size
            is_known = is_known and row["previous_hop"] is not None
            senders[row["previous_hop"] == published["publisher"]] += size
    known = senders if is_known else [None, None]
    of = {**sums, "of_publishers": known[1], "of_relays": known[0]}
    return {
        "messages": len(messages),
        "sized_messages": len(sized),
        **{f"bytes_{name}": value if sized else None for name, value in of.items()},
        "amplification": sums["received"] / sums["needed"] if sums["needed"] else None,
    }


@pytest.mark.parametrize("by", [None, "message", "topic", "interval", "size", "client"])
def test_bytes_are_those_of_a_loop_over_the_arrivals(
    run: Run, arrived: Played, by: str | None
) -> None:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in arrived.rows["publications"]:
        more = {"size": doubled(row["bytes"]), "client": client_of(arrived, row), None: None}
        groups[{**row, **more}[by]].append(row)
    rows = run.amplification(by).to_pylist()
    column = COLUMNS.get(by, by)
    assert [row.get(column) for row in rows] == sorted(groups, key=lambda of: (of is None, of))
    for row in rows:
        wanted = summed(arrived, groups[row.get(column)])
        assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    if by == "message":
        assert [row["bytes_of_relays"] is None for row in rows][8:10] == [True, False]


def test_bytes_of_a_part_are_of_the_messages_published_in_it(run: Run, arrived: Played) -> None:
    published = arrived.rows["publications"]
    publisher = published[0]["publisher"]
    for where, chosen in (
        (Where(4, 8), [row for row in published if 4 <= row["interval"] <= 8]),
        (Where(topic="u"), [row for row in published if row["topic"] == 1]),
        (
            Where(peer=arrived.peers[publisher]),
            [row for row in published if row["publisher"] == publisher],
        ),
    ):
        [row] = run.amplification(where=where).to_pylist()
        assert row == pytest.approx(summed(arrived, chosen))
    with pytest.raises(UnknownName, match=unknown("attribute", "peer")):
        run.amplification("peer")


def test_command_prints_amplification(run: Run) -> None:
    call = ["--workspace", str(run.stored.directory.parents[1]), "metrics", run.facts.name]
    result = CliRunner().invoke(app, [*call, "amplification", "--by", "size", "-f", "json"])
    assert json.loads(result.stdout) == run.amplification("size").to_pylist()
