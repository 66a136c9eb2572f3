"""Changes of a run that are begun, by a process that is there or by one that is gone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.tables import EMPTY, add, links, write
from tests.support.words import tells
from vizpub.model.metrics import METRICS_PERCOLATION
from vizpub.runstore.changes import PENDING, describe_unfinished, pending, state
from vizpub.runstore.manifest import read_manifest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import RunWriter, writing


def predict(writer: RunWriter) -> None:
    """Add the table that readers make, as they do."""
    assert writer.stored
    found = writer.entry(write(writer, METRICS_PERCOLATION.name, links(4, seed=3)))
    writer.commit(
        replace(writer.stored, tables={**writer.stored.tables, METRICS_PERCOLATION.name: found})
    )


@pytest.mark.parametrize("append", [True, False])
def test_change_is_told_while_it_goes_on_and_after_its_process_is_gone(
    run: StoredRun, tmp_path: Path, append: bool
) -> None:
    assert (describe_unfinished(run), state(run)) == ("", "complete")
    begun = replace(EMPTY, extends=run.manifest.identity if append else "")
    with writing(tmp_path, "monday") as writer:
        writer.begin(begun)
        goes_on = describe_unfinished(run)
    stopped = describe_unfinished(run)
    assert goes_on != stopped
    tells(goes_on, f"process {os.getpid()}")
    assert all(("append" in told) == append for told in (goes_on, stopped))
    assert state(run) == f"complete; {stopped}"
    with writing(tmp_path, "monday") as writer:
        writer.begin(begun)
        writer.restore()
    assert describe_unfinished(run) == ""


def test_table_that_readers_make_leaves_the_change(run: StoredRun, tmp_path: Path) -> None:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        add(writer, "parse", "staged/parsed.events", links(9, seed=2))
    begun = read_manifest(run.directory, PENDING)
    with writing(tmp_path, "monday") as writer:
        predict(writer)
    now = open_run(tmp_path, "monday")
    assert pending(now.directory, now.manifest) == begun
    assert (now.directory / begun.tables["staged/parsed.events"].directory).is_dir()
    with writing(tmp_path, "monday") as writer:
        add(writer, "again", "links", links(5, seed=3), state="complete")
        assert writer.pending() is None


def test_change_of_another_run_is_none(run: StoredRun, tmp_path: Path) -> None:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
    left = (run.directory / PENDING).read_bytes()
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        add(writer, "again", "links", links(5, seed=3), state="complete")
    (run.directory / PENDING).write_bytes(left)
    assert describe_unfinished(open_run(tmp_path, "monday")) == ""


def test_unfinished_run_has_no_change(tmp_path: Path) -> None:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
    half = open_run(tmp_path, "monday", complete=False)
    assert describe_unfinished(half) == ""
    assert state(half) == f"{EMPTY.state}, not complete"
