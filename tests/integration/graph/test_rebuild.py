"""A copy that was made anew is the one that was there, and nothing else was touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.graph.conftest import Calls, Graph, History, random_history
from tests.integration.graph.everything import awkward_history, everything, stored
from vizpub.graphstore.server.address import Connection

pytestmark = pytest.mark.neo4j

HISTORY = awkward_history(83, "rebuilt")


@pytest.fixture
def vizpub(tmp_path: Path, neo4j_server: Connection, graph: Graph) -> Iterator[Calls]:
    """Calls in a workspace with the run."""
    stored(HISTORY, tmp_path)
    yield Calls(tmp_path, neo4j_server)
    graph.remove(HISTORY.facts.name)


def test_rebuild_restores_the_run_and_leaves_others_alone(
    vizpub: Calls, graph: Graph, loaded: Callable[[History], History]
) -> None:
    loaded(random_history(84, name="beside"))
    assert vizpub("neo4j", "load", "rebuilt").exit_code == 0
    before = everything(graph)
    graph.ask("MATCH (:Peer {run: 'rebuilt'})-[r:LINK]->() SET r.valid_from = r.valid_from + 1")
    assert vizpub("neo4j", "verify", "rebuilt").exit_code == 1
    rebuilt = vizpub("neo4j", "rebuild", "rebuilt")
    assert rebuilt.exit_code == 0, rebuilt.stderr
    assert everything(graph) == before
    assert vizpub("neo4j", "verify", "rebuilt").exit_code == 0
    refused = vizpub("neo4j", "rebuild", "rebuilt", "--bulk")
    assert refused.exit_code == 2
    assert everything(graph) == before
