"""`vizpub lab channels`, beside the paper's printed mapping."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from tests.support.channels import PRINTED, printed_layout
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.experiments.channels import measuring
from vizpub.simulators.channels import liftoff
from vizpub.simulators.channels.parameters import READINGS

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
    rows = json.loads(vizpub(f"lab channels mapping {printed} -f json").stdout)
    assert [row["total_p"] for row in rows] == pytest.approx(PRINTED)
    assert [row["pages"] for row in rows] == [1] * 8
    assert rows[0]["breaking_gap_ms"] == pytest.approx(202.219)


def test_figure_that_cannot_be_written_is_refused_before_the_computation(
    printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liftoff, "liftoff", None)
    line = f"lab channels gdfr {printed} --figure {tmp_path}/gdfr.jpg"
    refused = CliRunner().invoke(app, shlex.split(line))
    assert refused.exit_code == 2
    tells(refused.output, "gdfr.jpg", ".png")


def test_rates_are_shown_though_their_figure_cannot_be_written(
    printed: str, tmp_path: Path
) -> None:
    line = f"lab channels gdfr {printed} --updates 9000 --steps 2 -f csv"
    line += f" --figure {tmp_path}/no/gdfr.png"
    refused = CliRunner().invoke(app, shlex.split(line))
    assert refused.exit_code == 2
    assert len(refused.stdout.splitlines()) == 3
    tells(refused.stderr, "no/gdfr.png", "there is no folder")


def test_utal_is_near_what_the_mapping_predicts(printed: str) -> None:
    result = vizpub(f"lab channels utal {printed} --updates 100000 -f json")
    (row,) = json.loads(result.stdout)
    assert row["predicted_ms"] == pytest.approx(202.219)
    assert row["utal_ms"] == pytest.approx(202.219, rel=0.02)
    tells(result.stderr, "0.005", "100,000")


def test_measures_of_a_single_channel_are_those_of_a_queue() -> None:
    """M/D/1 at half load: 1.5 transmissions of 10 ms, a quarter of a page waits."""
    single = "--channels 1 --listen 1 --peers 5 --profile uniform:pages=100"
    line = f"lab channels measure {single} --gap 20ms --updates 50000 --of"
    (row,) = json.loads(vizpub(f"{line} run -f json").stdout)
    assert row["updates"] == row["passed"] == 50_000
    assert row["flow_rate"] == pytest.approx(50, rel=0.05)
    assert row["staleness_ms"] == pytest.approx(15, rel=0.05)
    assert row["staleness_p50_ms"] < row["staleness_ms"] < row["staleness_p99_ms"]
    assert row["queue_mean"] == pytest.approx(0.25, rel=0.1)
    assert row["fluff"] == row["lost"] == row["superseded"] == 0
    (channel,) = json.loads(vizpub(f"{line} channel -f json").stdout)
    assert channel["load"] == pytest.approx(0.5, rel=0.05)
    assert channel["queue_mean"] == row["queue_mean"]
    assert channel["offered"] == 50_000
    clients = json.loads(vizpub(f"{line} client -f json").stdout)
    assert [client["client"] for client in clients] == [0, 1, 2]
    assert {client["heard"] for client in clients} == {channel["sent"]}
    for measure in ("staleness_ms", "staleness_p50_ms", "staleness_p99_ms"):
        assert {client[measure] for client in clients} == {row[measure]}


def test_gdfr_is_flat_and_then_lifts_off(tmp_path: Path) -> None:
    mappings = "--mappings c,perfect-c --updates 10000 --steps 8"
    result = vizpub(f"lab channels gdfr {mappings} --figure {tmp_path}/gdfr.svg -f csv")
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert len(rows) == 16
    for mapping in ("c", "perfect-c"):
        curve = [float(row["gdfr"]) for row in rows if row["mapping"] == mapping]
        assert max(curve[:4]) < curve[-1] / 10
    assert "<svg" in (tmp_path / "gdfr.svg").read_text("utf-8")
    tells(result.stderr, READINGS["perfect-c"])


def test_mapping_on_the_fly_is_refused_with_those_that_are_static() -> None:
    result = CliRunner().invoke(app, shlex.split("lab channels mapping --mapping cd"))
    assert result.exit_code == 2
    assert "perfect-c" in result.output


def test_experiment_on_channels_reports_its_combinations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them, with few updates, and in this process."""
    for module in ("measured", "workers"):
        monkeypatch.setattr(f"vizpub.experiments.{module}.worker_pool", ThreadPoolExecutor)
    monkeypatch.setitem(measuring.UPDATES, "small", 500)
    monkeypatch.setattr(measuring, "ASSIGNMENTS", ("pc", "lc"))
    monkeypatch.setattr(measuring, "MAPPINGS", ("c", "offline-c"))
    look = "--style dark --size 18x12cm"
    told = vizpub(f"lab experiment run channels --runs 1 --out {tmp_path} {look}").stderr
    tells(told, "of 2", "8 unknown")
    for picture in (tmp_path / "figures").glob("*.png"):
        with Image.open(picture) as image:
            assert image.size == pytest.approx((18 / 2.54 * 150, 12 / 2.54 * 150), abs=1)
            assert max(image.convert("RGB").getpixel((1, 1))) < 60  # a dark ground
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.count("\n| pc | offline-c |") == 6
    assert len((tmp_path / "measured.jsonl").read_text("utf-8").splitlines()) == 8
    refused = CliRunner().invoke(app, shlex.split("lab experiment run channels --only c"))
    assert refused.exit_code == 2
    tells(refused.output, "channels", "--only", "--load", "--keep-reports")
    assert "our reading" in vizpub("lab experiment show channels").stdout
