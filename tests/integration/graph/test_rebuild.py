"""A copy that was made anew is the one that was there, and nothing else was touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphstore.connection import Connection
from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.everything import awkward_history, everything, stored
from tests.integration.test_cli import Shell

pytestmark = pytest.mark.neo4j

HISTORY = awkward_history(83, "rebuilt")


@pytest.fixture
def vizpub(tmp_path: Path, neo4j_server: Connection, graph: Graph) -> Iterator[Shell]:
    """Calls in a workspace with the run."""
    stored(HISTORY, tmp_path)
    yield Shell(tmp_path, neo4j_server)
    graph.remove(HISTORY.facts.name)


def test_all_is_as_it_was(
    vizpub: Shell, graph: Graph, loaded: Callable[[History], History]
) -> None:
    loaded(random_history(84, name="beside"))
    assert vizpub("load", "rebuilt").code == 0
    before = everything(graph)
    graph.ask("MATCH (:Peer {run: 'rebuilt'})-[r:LINK]->() SET r.vf = r.vf + 1")
    assert vizpub("verify", "rebuilt").code == 1
    rebuilt = vizpub("rebuild", "rebuilt")
    assert rebuilt.code == 0, rebuilt.err
    assert everything(graph) == before
    assert vizpub("verify", "rebuilt").code == 0
    refused = vizpub("rebuild", "rebuilt", "--bulk")
    assert refused.code == 2
    assert everything(graph) == before
