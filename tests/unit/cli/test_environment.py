"""Variables VIZPUB_… that set nothing are errors, with the nearest name."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.words import tells
from vizpub.cli.environment import OF_NO_OPTION
from vizpub.cli.main import app

Call = Callable[..., Result]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def vizpub(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    for name in [name for name in os.environ if name.startswith("VIZPUB_")]:
        monkeypatch.delenv(name)

    def call(*words: str, **variables: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), *words], env=variables)

    return call


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("VIZPUB_METRICS_LIMT", "VIZPUB_METRICS_LIMIT"),
        ("VIZPUB_INGEST_NOLOAD", "VIZPUB_INGEST_NO_LOAD"),
        ("VIZPUB_WORKSPCE", "VIZPUB_WORKSPACE"),
        ("VIZPUB_LIVE_COLECT_NO_LOAD", "VIZPUB_LIVE_COLLECT_NO_LOAD"),
        ("VIZPUB_GRAPHFRAME_JARS", "VIZPUB_GRAPHFRAMES_JARS"),
        ("VIZPUB_TOPIC_FROMAT", "VIZPUB_TOPIC_FORMAT"),
    ],
)
def test_misspelt_variable_is_refused_with_the_nearest(
    vizpub: Call, name: str, nearest: str
) -> None:
    for words in (("runs", "list"), ("config", "show"), ("metrics", "monday")):
        refused = vizpub(*words, **{name: "1"})
        assert (refused.exit_code, refused.stdout) == (2, "")
        tells(refused.stderr, name, nearest)


def test_variable_near_to_none_is_refused(vizpub: Call) -> None:
    refused = vizpub("runs", "list", VIZPUB_XYZ="1")
    assert refused.exit_code == 2
    tells(refused.stderr, "VIZPUB_XYZ", "unset")


@pytest.mark.parametrize(
    "name",
    [
        *("VIZPUB_TOPICS_FORMAT", "VIZPUB_SETTLE_NO_LOAD", "VIZPUB_LAB_SIMULATE_MODELS_FORMAT"),
        # An option of a command that is created on use, and one of a user's own system.
        *("VIZPUB_LAB_SIMULATE_CYCLON_PEERS", "VIZPUB_LAB_SIMULATE_MINE_PY_MINE_PEERS"),
        *("VIZPUB_SERVICE_HOST", "VIZPUB_COLLECTOR_PORT_7000_TCP_ADDR"),
    ],
)
def test_variable_that_another_call_uses_is_accepted(vizpub: Call, name: str) -> None:
    assert vizpub("runs", "list", **{name: "json"}).exit_code == 0


def test_empty_variable_sets_nothing_and_is_accepted(vizpub: Call) -> None:
    assert vizpub("runs", "list", VIZPUB_METRICS_LIMT="").exit_code == 0


def test_variables_of_a_command_created_on_use_are_checked_in_its_calls(vizpub: Call) -> None:
    words = ("lab", "simulate", "scribe", "--help")
    refused = vizpub(*words, VIZPUB_LAB_SIMULATE_SCRIBE_PERS="9")
    assert refused.exit_code == 2
    tells(refused.stderr, "VIZPUB_LAB_SIMULATE_SCRIBE_PERS", "VIZPUB_LAB_SIMULATE_SCRIBE_PEERS")
    for name in ("SCRIBE_PEERS", "SCRIBE_CHORD_PEERS", "CYCLON_PEERS"):
        assert vizpub(*words, **{f"VIZPUB_LAB_SIMULATE_{name}": "9"}).exit_code == 0


def test_variables_of_the_project_are_known(vizpub: Call) -> None:
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    texts = (
        (ROOT / name).read_text(errors="replace")
        for name in tracked
        if "tests/" not in name and (ROOT / name).suffix != ".gz" and (ROOT / name).is_file()
    )
    names = {name for text in texts for name in re.findall(r"\bVIZPUB_[A-Z0-9_]*[A-Z0-9]", text)}
    # Beginnings, the form, and the misspelling that docs explain.
    names -= {
        "VIZPUB_METRICS_LIMT",
        "VIZPUB_SPARK",
        "VIZPUB_COMMAND_OPTION",
        "VIZPUB_LAB_SIMULATE",
        "VIZPUB_SIMULATE",
    }
    assert names >= OF_NO_OPTION - {"VIZPUB_PICTURES", "VIZPUB_WATCHED"}
    values = {**dict.fromkeys(names, "1"), "VIZPUB_CONFIG": os.devnull}
    done = vizpub("doctor", "--help", **values)
    assert done.exit_code == 0, done.stderr


def test_error_about_a_file_of_the_environment_names_its_variable(
    vizpub: Call, tmp_path: Path
) -> None:
    for text in (None, "x ="):
        file = tmp_path / "mine.toml"
        if text:
            file.write_text(text)
        refused = vizpub("runs", "list", VIZPUB_CONFIG=str(file))
        assert refused.exit_code == 2
        tells(refused.stderr, "VIZPUB_CONFIG", file)
