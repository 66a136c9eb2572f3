"""What is to be done about a copy in Neo4j that differs."""

from __future__ import annotations

import pytest

from vizpub.graphstore.verify.verify import Difference, remedy

INDEX = Difference("schema", "Peer(key)", "ONLINE", "missing")
ROW = Difference("peers", "7/3 name", "a", "b")


@pytest.mark.parametrize(
    ("differences", "command"),
    [
        ([INDEX, INDEX], "vizpub neo4j load 7"),
        ([ROW], "vizpub neo4j rebuild 7"),
        ([INDEX, ROW], "vizpub neo4j rebuild 7"),
    ],
)
def test_remedy_is_a_load_where_indexes_alone_are_missing(
    differences: list[Difference], command: str
) -> None:
    assert remedy("7", differences).endswith(f"with: {command}")
