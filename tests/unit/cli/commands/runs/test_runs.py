"""What `vizpub runs` says of a collection, and what other commands say of its run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.support.reserved import Reserved
from tests.support.tables import everything
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.runstore.collection import RETIRED

Call = Callable[..., Result]


@pytest.fixture
def case(tmp_path: Path) -> Reserved:
    return Reserved(tmp_path)


@pytest.fixture
def vizpub(case: Reserved, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.delenv("NEO4J_URI", raising=False)

    def call(*arguments: str, **given: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(case.workspace), *arguments], **given)

    return call


def states(vizpub: Call) -> list[tuple[str, str]]:
    listed = json.loads(vizpub("runs", "list", "--format", "json").stdout)
    return [(run["run"], run["state"]) for run in listed]


def test_states_of_a_collected_run_are_listed(vizpub: Call, case: Reserved) -> None:
    assert states(vizpub) == [("lab", "collecting")]
    case.append()
    assert states(vizpub) == [("lab", "complete")]
    assert vizpub("runs", "remove", "lab", "--yes").exit_code == 0
    assert states(vizpub) == [("lab", "retired")]
    size = case.workspace / "collected/lab/batches/1"
    size.write_bytes(bytes(5_000_000))
    listed = vizpub("runs", "list")
    tells(listed.stderr, str(case.of.folder), "5 MB", "vizpub live collect lab --revive")


def test_removal_says_what_stays(vizpub: Call, case: Reserved) -> None:
    case.append()
    asked = vizpub("runs", "remove", "lab", input="n\n")
    assert asked.exit_code != 0
    tells(asked.stderr, str(case.of.folder), "stays")
    done = vizpub("runs", "remove", "lab", "--yes")
    assert done.exit_code == 0
    ways = "vizpub live collect lab --revive", "vizpub runs remove lab --with-log"
    tells(done.stderr, str(case.of.folder), *ways)
    for option in ([], ["--yes"]):
        again = vizpub("runs", "remove", "lab", *option)
        assert again.exit_code == 2
        tells(again.stderr, "vizpub runs remove lab --with-log")
    for command in (
        ["live", "collect", "lab", "--no-load"],
        ["live", "collect", "lab", "--stop", "--no-load"],
    ):
        refused = vizpub(*command)
        assert refused.exit_code == 2
        tells(refused.stderr, RETIRED, *ways)
    for command in (["live", "watch", "lab"], ["live", "tell", "lab", "a", "leave"]):
        tells(vizpub(*command).stderr, RETIRED)
    gone = vizpub("runs", "remove", "lab", "--with-log", input="y\n")
    assert gone.exit_code == 0, gone.output
    tells(gone.stderr, str(case.of.folder), "deleted")
    assert everything(case.workspace) == set()
    assert states(vizpub) == []


def test_run_stays_while_it_is_collected(vizpub: Call, case: Reserved) -> None:
    case.append()
    before = everything(case.workspace)
    with case.of.hold():
        for option in ([], ["--with-log"]):
            refused = vizpub("runs", "remove", "lab", "--yes", *option)
            assert refused.exit_code == 2
            tells(refused.stderr, "lab", "vizpub live collect lab --stop")
        for command in (
            ["runs", "settle", "lab", "--no-load"],
            ["lab", "simulate", "cyclon", "--ingest", "lab"],
        ):
            refused = vizpub(*command)
            assert refused.exit_code == 2, refused.output
            tells(refused.stderr, "lab", "vizpub live collect lab --stop")
        assert vizpub("runs", "show", "lab").exit_code == 0
    assert everything(case.workspace) == before


@pytest.mark.parametrize("command", ["metrics", "sql", "runs summary", "neo4j load"])
def test_collected_run_without_interval_is_told_as_that(vizpub: Call, command: str) -> None:
    told = vizpub(*command.split(), "lab", *(["SELECT 1"] if command == "sql" else []))
    assert told.exit_code == 1
    tells(told.stderr, "lab", "vizpub live watch lab", "vizpub live collect lab")
    assert "ingest" not in told.stderr


def test_commands_to_a_run_that_has_ended_say_so(vizpub: Call, case: Reserved) -> None:
    case.append(ended=True)
    told = vizpub("live", "tell", "lab", "a", "leave")
    assert told.exit_code == 2
    assert "vizpub live collect" not in told.stderr
    assert vizpub("live", "watch", "lab").exit_code == 0


@pytest.mark.parametrize("number", [4, 6])
@pytest.mark.parametrize(
    "command",
    [
        "runs settle lab --no-load", "runs check lab --mend", "runs export lab -o lab.tar",
        "runs import {archive} --as lab", "live collect lab --no-token --no-load",
        "live collect lab --stop --no-load", "metrics lab percolation", "neo4j load lab",
        "neo4j rebuild lab", "explore lab",
    ],
)  # fmt: skip
def test_run_of_another_version_stays_as_it_is(
    vizpub: Call,
    case: Reserved,
    tmp_path_factory: pytest.TempPathFactory,
    command: str,
    number: int,
) -> None:
    """Also its collection: a collector would accept reports that no run will ever have."""
    case.append()
    archive = tmp_path_factory.mktemp("archives") / "lab.tar"
    assert vizpub("runs", "export", "lab", "-o", str(archive)).exit_code == 0
    stored = case.workspace / "runs/lab/run.json"
    stored.write_text(stored.read_text().replace("vizpub.store/5", f"vizpub.store/{number}"))
    before = {name: (case.workspace / name).read_bytes() for name in everything(case.workspace)}
    refused = vizpub(*command.format(archive=archive).split())
    assert refused.exit_code != 0
    if "import" not in command:  # an import needs another name, or --replace
        tells(refused.stderr, stored, f"vizpub.store/{number}", "vizpub.store/5")
    if "collect" in command:
        tells(refused.stderr, "vizpub runs remove lab", "vizpub live collect lab --revive")
    assert before == {
        name: (case.workspace / name).read_bytes() for name in everything(case.workspace)
    }
