"""The small clients of examples/clients report to a real collector, each in its own language."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.collecting import Options, Served, collector_in, serving

CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
LANGUAGES = ["JavaScript", pytest.param("Go", marks=pytest.mark.long), "Rust"]  # Go's is built long
PEERS, INTERVALS = 3, 2


def program(language: str, folder: Path) -> list[str]:
    """The command of a client, compiled in the folder; skips the test without its compiler."""
    tool = {"JavaScript": "node", "Go": "go", "Rust": "rustc"}[language]
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"no {tool}: the client in {language} is not run")
    if language == "JavaScript":
        return [path, str(CLIENTS / "peer.mjs")]
    built = folder / "peer"
    words = {"Go": ["build", "-o", built, "peer.go"], "Rust": ["-o", built, "peer.rs"]}[language]
    subprocess.run([path, *words], cwd=CLIENTS, check=True)
    return [str(built)]


def reports_of(command: list[str], served: Served) -> list[dict[str, object]]:
    """Run a client to its end; the reports in the collector's log."""
    done = subprocess.run(
        [*command, served.url, str(PEERS), str(INTERVALS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"{PEERS} taken, 0 refused\n") == INTERVALS
    return [json.loads(line) for line in served.lines()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_client_reports_every_peer_in_every_interval(language: str, tmp_path: Path) -> None:
    command = program(language, tmp_path)
    with serving(collector_in(tmp_path, Options(began=datetime.now(UTC)))) as served:
        reports = reports_of(command, served)
        first = min(int(str(report["interval"])) for report in reports)
        assert {(report["peer"], report["interval"]) for report in reports} == {
            (f"peer-{peer}", first + number) for peer in range(PEERS) for number in range(INTERVALS)
        }
        for report in reports:
            follower = (int(str(report["peer"]).removeprefix("peer-")) + 1) % PEERS
            assert report["neighbors"] == [f"peer-{follower}"]
            assert report["left"] == (report["interval"] == first + INTERVALS - 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_client_ends_with_the_collectors_reason_without_a_token(
    language: str, tmp_path: Path
) -> None:
    command = program(language, tmp_path)
    with serving(collector_in(tmp_path, Options(tokens=True))) as served:
        words = [*command, served.url, str(PEERS), str(INTERVALS)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode != 0
        assert "401" in done.stderr
        assert served.lines() == []
