"""A run in a notebook shows the page, or says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vizpub
from tests.support.widgets import FrontEnd

SHOWN = """
import sys, vizpub
run = vizpub.Run.open(sys.argv[1], "monday")
overlay = run.overlay(1)
for one in (run, overlay, overlay.peers, run.metrics("overlay"), run.sql("FROM links")):
    assert one._repr_html_().startswith("<table>"), one
assert not {"pyspark", "neo4j"} & {*sys.modules}
"""


def test_run_is_explored_at_the_address_that_is_given(workspace: Path) -> None:
    run = vizpub.Run.open(workspace, "monday")
    assert run.explore().state == "#/run/monday/overlay"
    view = run.explore("#/run/monday/messages", height=500)
    assert (view.state, view.height) == ("#/run/monday/messages", 500)
    assert FrontEnd(view).ask({"id": 1, "path": "api/runs/monday"}).status == 200


def test_run_of_a_relative_workspace_is_explored_from_elsewhere(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.parent)
    view = vizpub.Run.open(workspace.name, "monday").explore()
    monkeypatch.chdir("/")
    assert FrontEnd(view).ask({"id": 1, "path": "api/runs/monday"}).status == 200


def test_missing_anywidget_is_said_in_one_line(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "vizpub.explorer.notebook", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(vizpub.VizpubError) as raised:
        vizpub.Run.open(workspace, "monday").explore()
    assert "pip install 'vizpub[notebook]'" in str(raised.value)


def test_run_and_its_tables_are_shown_without_spark_or_neo4j(workspace: Path) -> None:
    subprocess.run([sys.executable, "-c", SHOWN, str(workspace)], check=True)
