"""Questions answered from the files of a run that is known by heart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.rewriting import rewrite
from vizpub.model.errors import UseError
from vizpub.questions import frequent
from vizpub.questions.frequent import ABSENT
from vizpub.questions.names import NamedRun
from vizpub.questions.run import Run
from vizpub.runstore.store import open_run


@pytest.fixture
def monday(workspace: Path) -> NamedRun:
    return NamedRun(open_run(workspace, "monday"))


@pytest.mark.parametrize(
    ("ends", "at", "layers", "path"),
    [
        (("alice", "bob"), 0, None, ["alice", "bob"]),
        (("alice", "carol"), 0, None, ["alice", "dave", "carol"]),
        (("alice", "carol"), 2, None, None),
        (("bob", "alice"), 0, None, None),
        (("#0", "car"), 0, ("mesh",), None),
        (("alice", "alice"), 0, None, ["alice"]),
    ],
)
def test_path_follows_the_links_of_the_time(
    monday: NamedRun,
    ends: tuple[str, str],
    at: int,
    layers: tuple[str, ...] | None,
    path: list[str] | None,
) -> None:
    expected = [(len(path) - 1, path)] if path else []
    assert frequent.paths(monday, ends, at, layers) == expected
    assert frequent.paths(monday, ends, at, layers, every=True) == expected


def test_path_to_an_absent_peer_is_refused(monday: NamedRun) -> None:
    with pytest.raises(UseError, match=rf"peer 'dave' {ABSENT} interval 3 .*; it is prese"):
        frequent.paths(monday, ("alice", "dave"), 3)


@pytest.mark.parametrize(
    ("layers", "links"),
    [(None, [("x", "y", ["overlay"])]), (("mesh",), [("y", None, []), ("x", None, [])])],
)
def test_topic_has_its_links_and_lone_subscribers_in_the_order_of_peers(
    workspace: Path, layers: tuple[str, ...] | None, links: list[tuple[str, str | None, list[str]]]
) -> None:
    """Whatever their names are."""
    peers = Run.open(workspace, "monday").table("peers")
    place = peers.column_names.index("name")
    renamed = peers.set_column(place, peers.schema.field(place), pa.array(["z", "y", "x", "w"]))
    rewrite(workspace, "monday", "peers", renamed)
    rows = frequent.topic(Run.open(workspace, "monday"), "news", 1, layers).to_pylist()
    assert [(row["src"], row["dst"], row["layers"]) for row in rows] == links
