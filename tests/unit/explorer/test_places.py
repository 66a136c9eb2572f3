"""Positions of a run's peers, and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vizpub.explorer import places
from vizpub.explorer.history import History
from vizpub.model.errors import UnknownName
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run


@pytest.fixture
def history(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> History:
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    return History(NamedRun(open_run(workspace, "monday")))


def test_pairs_weigh_the_share_of_time_in_which_they_are_linked(history: History) -> None:
    src, dst, weight = places.weighted_pairs(history)
    pairs = zip(src.tolist(), dst.tolist(), strict=True)
    assert dict(zip(pairs, weight.tolist(), strict=True)) == {
        (0, 1): 1,
        (0, 3): 0.5,
        (2, 3): 0.5,
        (1, 2): 0.625,
    }


def test_places_are_computed_once_and_read_then(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = places.places(history, "force")
    monkeypatch.setattr(places, "weighted_pairs", lambda _: pytest.fail("it is kept"))
    np.testing.assert_array_equal(places.places(history, "force"), first)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_damaged_cache_is_made_anew(history: History, tmp_path: Path, content: bytes) -> None:
    first = places.places(history, "force")
    (kept,) = (tmp_path / "cache/layouts").glob("*.npy")
    kept.write_bytes(content)
    np.testing.assert_array_equal(places.places(history, "force"), first)


def test_places_come_where_nothing_can_be_kept(
    history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "file"))
    assert places.places(history, "force").shape == (4, 2)


def test_cache_is_bounded(
    history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "_MOST", 3)
    folder = tmp_path / "cache/layouts"
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"{number}.npy").touch()
    places.places(history, "force")
    assert len(list(folder.iterdir())) == 3


def test_unknown_layout_is_refused(history: History) -> None:
    with pytest.raises(UnknownName, match="circle"):
        places.places(history, "square")
