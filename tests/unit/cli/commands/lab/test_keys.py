"""`vizpub lab keys`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from vizpub.cli.main import app


def test_keys_of_consecutive_rings_are_shown() -> None:
    line = "lab keys --peers 100 --keys 1000 --runs 2 --seed 5 -f json"
    result = CliRunner().invoke(app, line.split())
    rows = json.loads(result.stdout)
    assert [row["seed"] for row in rows] == [5, 6]
    assert [row["mean"] for row in rows] == [10, 10]
    assert rows[0]["p99/mean"] == pytest.approx(rows[0]["p99"] / 10)
    assert rows[0]["p1"] <= rows[0]["p99"] <= rows[0]["max"]
    assert rows[0] != rows[1]
