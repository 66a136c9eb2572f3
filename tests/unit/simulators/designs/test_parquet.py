"""Overlays as Parquet, read again and checked as those of peers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.designs import check_overlay, example_3
from vizpub.cli.main import app
from vizpub.simulators.designs.algorithms import Design, construct
from vizpub.simulators.designs.stars import Interests


def called(line: str) -> str:
    result = CliRunner().invoke(app, ["lab", "construct", *line.split()])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("algorithm", ["cd-oda-ii", "cd-max", "cd-max-ref"])
def test_file_holds_every_edge_at_both_ends(algorithm: str, tmp_path: Path) -> None:
    workload = "zipf:topics=60,subscriptions=5,exponent=1"
    called(f"{algorithm} --peers 300 --workload {workload} --parquet --out {tmp_path}")
    table = pq.read_table(tmp_path / "reports.parquet")
    header = json.loads(table.schema.metadata[b"vizpub.run"])
    assert header["parameters"]["refine"] == (algorithm == "cd-max-ref")
    rows = table.to_pylist()
    interests = Interests([row["topics"] for row in rows], 60)
    neighbours = [row["neighbors"] for row in rows]
    check_overlay(neighbours, interests, stars=True)
    overlay = construct(Design(algorithm), interests)
    assert neighbours == overlay.neighbours
    roles = {role["topic"]: row["peer"] for row in rows for role in row["roles"]}
    assert roles == overlay.centres


def test_names_of_topics_are_those_of_the_file(tmp_path: Path) -> None:
    pairs = [f"{node},t{topic}" for node, own in enumerate(example_3().of) for topic in own]
    (tmp_path / "example.csv").write_text("\n".join(pairs), "utf-8")
    workload = f"file:{tmp_path}/example.csv"
    called(f"cd-max --peers 8 --workload {workload} --parquet --out {tmp_path}/out")
    table = pq.read_table(tmp_path / "out/reports.parquet")
    assert [len(known) for known in table["neighbors"].to_pylist()] == [3, 6, 4, 3, 3, 3, 5, 5]
    assert sorted(table["topics"][7].as_py()) == ["t1", "t6"]
    metadata = {key: json.loads(text) for key, text in table.schema.metadata.items()}
    assert metadata[b"vizpub.run"]["run"] == "cdmax-1"
    assert metadata[b"vizpub.end"]["last_interval"] == 0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gm --parquet", "use cd-max, cd-oda-ii, cd-max-ref"),
        ("cd-max --parquet --intervals 3", "leave out --intervals"),
        ("cd-max --parquet --churn exponential:4s,down=4s", "leave out --churn"),
        ("cd-max --parquet --runs 2", "leave out --runs"),
        ("cd-max --parquet --near", "leave out --near"),
    ],
)
def test_options_that_do_not_suit_are_refused(line: str, told: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["--workspace", str(tmp_path), "lab", "construct", *line.split()]
    )
    assert result.exit_code == 2, result.output
    assert told in " ".join(result.output.split())
