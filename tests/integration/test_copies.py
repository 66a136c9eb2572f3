"""The copy of a run in Neo4j: not there yet, of an earlier run, or of a source that tells less."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.graph.conftest import Calls
from tests.support.ingested import Store, copied, ingested
from tests.support.words import tells
from vizpub.cli.commands.neo4j.load import EARLIER_COPY, load_stored
from vizpub.cli.service import connected, remove_stale, stale_copy_message
from vizpub.cli.settings import Settings
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.ingest import pipeline
from vizpub.ingest.pipeline import IngestOutcome
from vizpub.ingest.request import IngestRequest
from vizpub.model.progress import Progress
from vizpub.model.run import NO_DATA
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

RUN = f"copy-{uuid4().hex[:8]}"


@pytest.fixture
def vizpub(
    tmp_path: Path,
    neo4j_server: Connection,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Calls]:
    """Whose ingests are done in the session of the tests."""

    def ingest(wanted: IngestRequest, progress: Progress) -> IngestOutcome:
        return ingested(request.getfixturevalue("spark"), wanted)

    monkeypatch.setattr(pipeline, "ingest", ingest)
    calls = Calls(tmp_path / "workspace", neo4j_server)
    yield calls
    calls("runs", "remove", RUN, "--yes")


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.csv"
    path.write_text("interval,src,dst\n0,a,b\n1,a,b\n1,b,c\n")
    return path


def fed(vizpub: Calls, folder: Path, number: int, *more: str) -> StoredRun:
    """The run after a report of that interval was appended."""
    file = folder / f"{number}.ndjson"
    record = {"format": "vizpub.report/1", "peer": "a", "interval": number, "neighbors": []}
    file.write_text(json.dumps(record) + "\n")
    made = vizpub("ingest", str(file), "--run", RUN, "--append", *more)
    assert made.exit_code == 0, made.stderr
    return open_run(vizpub.workspace, RUN)


@pytest.mark.long
def test_copy_in_the_middle_of_a_growth_is_not_told_to_differ(
    vizpub: Calls, tmp_path: Path
) -> None:
    """Nothing of it is wrong: it is half of what comes next."""
    fed(vizpub, tmp_path, 0)
    run = fed(vizpub, tmp_path, 1, "--no-load")

    def stop(step: str, done: int, total: int, note: str = "") -> None:
        if step == "grow what ended":
            raise KeyboardInterrupt

    with connected(vizpub.connection) as neo4j, pytest.raises(KeyboardInterrupt):
        load_run(neo4j.driver, neo4j.database, run.facts, run, stop)
    for words in (("neo4j", "verify", RUN), ("neo4j", "verify", RUN, "--full")):
        refused = vizpub(*words)
        assert refused.exit_code == 1
        assert "rebuild" not in refused.stderr
        assert f"vizpub neo4j load {RUN}" in refused.stderr
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    assert vizpub("neo4j", "verify", RUN).exit_code == 0


@pytest.mark.long
def test_load_that_waited_for_a_later_append_loads_that(
    vizpub: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two appends end at once: the run is opened, and then another command grows the copy.
    Neither a load of the generation before nor the removal of an old copy undoes that.
    """
    for name, value in vizpub.environment.items():
        monkeypatch.setenv(name, value)
    older, _ = (fed(vizpub, tmp_path, number) for number in range(2))
    settings = Settings(vizpub.workspace)
    for command in (remove_stale, load_stored):
        command(settings, older)
        with connected(vizpub.connection) as neo4j:
            assert neo4j.open_run(RUN).facts.generation == 1, command
    assert vizpub("neo4j", "verify", RUN, "--full").exit_code == 0


OVERLAY = ("query", RUN, "overlay", "-p", "at=0")


def test_copy_in_neo4j_follows_load_and_replaced_ingest(
    stored: Store, vizpub: Calls, edges: Path
) -> None:
    copied(stored("copies", edges), vizpub.workspace, RUN)
    for words in (OVERLAY, ("neo4j", "verify", RUN)):
        absent = vizpub(*words)
        assert absent.exit_code == 2
        tells(absent.stderr, f"'{RUN}'", f"vizpub neo4j load {RUN}")
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    assert [(row["src"], row["dst"]) for row in vizpub.json(*OVERLAY)] == [("a", "b")]

    edges.write_text("interval,src,dst\n0,a,x\n1,a,b\n")
    kept = vizpub("ingest", str(edges), "--run", RUN, "--replace")
    assert kept.exit_code == 0, kept.stderr
    tells(kept.stderr, stale_copy_message(RUN))
    assert [(row["src"], row["dst"]) for row in vizpub.json(*OVERLAY)] == [("a", "x")]
    assert vizpub("neo4j", "verify", RUN).exit_code == 0


def test_copy_of_a_run_that_is_being_written_is_not_removed(
    stored: Store, vizpub: Calls, edges: Path
) -> None:
    copied(stored("copies", edges), vizpub.workspace, RUN)
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    with writing(vizpub.workspace, RUN):
        refused = vizpub("runs", "remove", RUN, "--yes")
    assert refused.exit_code == 2
    tells(refused.stderr, f"'{RUN}'", f"process {os.getpid()}")
    assert [(row["src"], row["dst"]) for row in vizpub.json(*OVERLAY)] == [("a", "b")]


@pytest.mark.long
def test_copy_of_a_replaced_run_is_removed_without_load(
    stored: Store, vizpub: Calls, edges: Path
) -> None:
    copied(stored("copies", edges), vizpub.workspace, RUN)
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    edges.write_text("interval,src,dst\n0,a,y\n")
    unloaded = vizpub("ingest", str(edges), "--run", RUN, "--replace", "--no-load")
    assert unloaded.exit_code == 0, unloaded.stderr
    tells(unloaded.stderr, stale_copy_message(RUN))
    tells(vizpub(*OVERLAY).stderr, f"vizpub neo4j load {RUN}")


def test_copy_of_an_earlier_run_is_named_by_verify(
    stored: Store, vizpub: Calls, edges: Path, tmp_path: Path
) -> None:
    copied(stored("copies", edges), vizpub.workspace, RUN)
    copied(stored("copies-elsewhere", edges), tmp_path / "elsewhere", RUN)
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    elsewhere = ("--workspace", str(tmp_path / "elsewhere"))
    found = vizpub(*elsewhere, "neo4j", "verify", RUN)
    assert (found.exit_code, found.stdout) == (1, "")
    tells(found.stderr, EARLIER_COPY, f"vizpub neo4j load {RUN}")
    for words, unknown in (
        (("query", RUN, "relays", "-p", "topic=news"), "subscriptions and receptions"),
        (("topic", RUN, "news", "--at", "0"), "subscriptions"),
        (("message", RUN, "m"), "receptions"),
    ):
        refused = vizpub(*words)
        assert (refused.exit_code, refused.stdout) == (2, "")
        tells(refused.stderr, f"'{RUN}' {NO_DATA} {unknown}")
