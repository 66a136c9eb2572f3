"""What Tab offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vizpub.analytics import options
from vizpub.cli.completion import ENGINES, SOURCES
from vizpub.cli.main import app
from vizpub.ingest.sources import SOURCES as INGESTED

ROOT = Path(__file__).parents[3]


ASK = "_VIZPUB_COMPLETE"


def asked(line: str, workspace: Path) -> dict[str, str]:
    """What a shell tells by the environment."""
    return {
        ASK: "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "VIZPUB_WORKSPACE": str(workspace),
    }


def offered(line: str, workspace: Path) -> list[str]:
    done = CliRunner().invoke(app, [], prog_name="vizpub", env=asked(line, workspace))
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


def test_completion_answers_a_shell_by_a_process(workspace: Path) -> None:
    line = "vizpub metrics m"
    done = subprocess.run(
        [sys.executable, "-c", "from vizpub.cli.main import app; app(prog_name='vizpub')"],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env=os.environ | asked(line, workspace),
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (offered(line, workspace), "")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("vizpub met", ["metrics"]),
        ("vizpub se", ["session"]),
        ("vizpub settle m", ["monday"]),
        ("vizpub missed monday m", ["m0", "m1"]),
        ("vizpub runs se", ["settle"]),
        ("vizpub metrics m", ["monday"]),
        ("vizpub metrics monday t", ["topics", "turnover"]),
        ("vizpub metrics monday topics --topic s", ["sport/日本"]),
        ("vizpub metrics monday --columns dia", ["diameter"]),
        ("vizpub topic monday n", ["news"]),
        ("vizpub path monday alice da", ["dave"]),
        ("vizpub message monday m", ["m0", "m1"]),
        ("vizpub runs tables metrics/m", ["metrics/messages"]),
        ("vizpub query m", ["monday"]),
        ("vizpub query monday shortest", ["shortest-path"]),
        ("vizpub query monday shortest-path -p f", ["from="]),
        ("vizpub query monday shortest-path 1 alice da", ["dave"]),
        ("vizpub query monday history c", ["contained-in", "created-in"]),
        ("vizpub query monday missed-subscribers m", ["m0", "m1"]),
        ("vizpub query monday history -p mode=c", ["mode=contained-in", "mode=created-in"]),
        ("vizpub metrics monday --format js", ["json", "jsonl"]),
        ("vizpub plot monday --kind e", ["ecdf"]),
        ("vizpub plot monday --peer d", ["dave"]),
        ("vizpub plot monday m0 --kind tree --layout l", ["layers"]),
        ("vizpub ingest x --source lib", ["libp2p"]),
        ("vizpub topic monday news --layers m", ["mesh"]),
        ("vizpub metrics nosuch --topic n", []),
    ],
)
def test_completion_offers_matching_names(workspace: Path, line: str, names: list[str]) -> None:
    assert offered(line, workspace) == names


def test_completion_in_an_empty_workspace_offers_nothing(tmp_path: Path) -> None:
    assert offered("vizpub metrics ", tmp_path) == []


def test_completion_knows_every_source_and_engine() -> None:
    assert set(SOURCES) == {"auto", *(source.name for source in INGESTED)}
    assert ENGINES == options.ENGINES
