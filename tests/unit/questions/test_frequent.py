"""Questions answered from the files of a run that is known by heart."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.model.errors import UseError
from vizpub.questions import frequent
from vizpub.questions.frequent import ABSENT
from vizpub.questions.names import NamedRun
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
