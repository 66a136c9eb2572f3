"""Where the log of a collection is, if its run is in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import UseError
from vizpub.runstore.stores.place import folder_of


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CollectionPlace:
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return CollectionPlace(folder_of("s3://bucket/study"), "lab")


@pytest.mark.parametrize("is_named", [False, True])
def test_log_is_outside_the_cache(place: CollectionPlace, tmp_path: Path, is_named: bool) -> None:
    place.place_log(tmp_path / "logs" if is_named else None)
    place.make()
    where = tmp_path / "logs" if is_named else tmp_path / "data" / "vizpub" / "collected"
    assert place.log.resolve() == where / place.workspace.name / "lab" / "log"
    place.place_log(None)
    assert place.log.exists()


def test_log_that_is_elsewhere_is_not_left_behind(place: CollectionPlace, tmp_path: Path) -> None:
    place.place_log(tmp_path / "a")
    place.place_log(tmp_path / "b")  # nothing was collected yet
    place.make()
    with pytest.raises(UseError, match=f"--log {tmp_path / 'b'}"):
        place.place_log(tmp_path / "a")
    assert place.log.resolve().is_relative_to(tmp_path / "b")


def test_log_of_a_run_in_a_folder_is_beside_it(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.place_log(None)
    with pytest.raises(UseError, match="--log"):
        place.place_log(tmp_path / "logs")
