"""`vizpub channels`, beside the paper's printed mapping."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from tests.support.channels import PRINTED, printed_layout

Call = Callable[[str], Result]


@pytest.fixture
def printed(tmp_path: Path) -> str:
    """The options of the printed mapping."""
    given = printed_layout(tmp_path).parameters
    files = f"--pages {given.pages} --mapping {given.mapping} --profile {given.profile}"
    return f"--channels 8 --listen 8 --peers 19 --transmission 1s {files}"


def vizpub(line: str) -> Result:
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.output
    return result


def test_mapping_shows_the_printed_list(printed: str) -> None:
    rows = json.loads(vizpub(f"channels mapping {printed} -f json").stdout)
    assert [row["total_p"] for row in rows] == pytest.approx(PRINTED)
    assert [row["pages"] for row in rows] == [1] * 8
    assert rows[0]["breaking_gap_ms"] == pytest.approx(202.219)


def test_utal_is_near_what_the_mapping_predicts(printed: str) -> None:
    result = vizpub(f"channels utal {printed} --updates 100000 -f json")
    (row,) = json.loads(result.stdout)
    assert row["predicted_ms"] == pytest.approx(202.219)
    assert row["utal_ms"] == pytest.approx(202.219, rel=0.02)
    assert "more than 0.005 copies" in result.stderr


def test_gdfr_is_flat_and_then_lifts_off(tmp_path: Path) -> None:
    mappings = "--mappings c,perfect-c --updates 10000 --steps 8"
    result = vizpub(f"channels gdfr {mappings} --figure {tmp_path}/gdfr.svg -f csv")
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert len(rows) == 16
    for mapping in ("c", "perfect-c"):
        curve = [float(row["gdfr"]) for row in rows if row["mapping"] == mapping]
        assert max(curve[:4]) < curve[-1] / 10
    assert "<svg" in (tmp_path / "gdfr.svg").read_text("utf-8")
    assert "mapping perfect-c: a smallest set" in result.stderr


def test_mapping_on_the_fly_is_refused_with_those_that_are_static() -> None:
    result = CliRunner().invoke(app, shlex.split("channels mapping --mapping cd"))
    assert result.exit_code == 2
    assert "perfect-c" in result.output
