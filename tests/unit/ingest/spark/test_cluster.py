from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.object_store import BUCKET, S3Server, in_s3, one_server, server
from vizpub.ingest.spark.cluster import (
    _find_faults,
    _probe_from_executor,
    _probe_store,
    is_local,
)
from vizpub.runstore.stores import objects
from vizpub.runstore.stores.s3 import S3Objects

__all__ = ["one_server", "server"]

SEEN_BY_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("master", [None, "local", "local[4]", "local[*]", "local[2,3]"])
def test_local_master_is_local(master: str | None) -> None:
    assert is_local(master)


@pytest.mark.parametrize(
    "master", ["spark://localhost:7077", "local-cluster[2,1,1024]", "yarn", "k8s://https://local"]
)
def test_cluster_master_is_not_local(master: str) -> None:
    assert not is_local(master)


def faults(probe: Path, answers: list[tuple[str, str]]) -> list[str]:
    return [fault.partition(": ")[2] for fault in _find_faults(probe, answers)]


def test_folder_seen_by_driver_and_executor_has_no_fault(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.touch()
    assert faults(probe, [_probe_from_executor(str(probe), task) for task in range(3)]) == []


def test_folder_missing_on_an_executor_is_a_fault(tmp_path: Path) -> None:
    probe = tmp_path / "elsewhere" / "probe"
    assert faults(probe, [_probe_from_executor(str(probe), 0)]) == ["No such file or directory"]


def test_folder_of_equal_name_on_another_disk_is_faulty(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "probe").touch()
    answer = _probe_from_executor(str(there / "probe"), 0)
    assert faults(here / "probe", [answer]) == ["the files it writes are not visible here"]


@SEEN_BY_ROOT
def test_folder_that_an_executor_cannot_write_is_a_fault(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.touch()
    tmp_path.chmod(0o500)
    assert faults(probe, [_probe_from_executor(str(probe), 0)]) == ["Permission denied"]


@in_s3
def test_store_that_an_executor_cannot_use_is_a_fault(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_PAUSES_S", ())
    store = S3Objects(BUCKET, "ws", server.endpoint)
    assert _probe_store(store, "probe", 1)[1] == ""
    assert store.find("probe-1")
    with server.failing(lambda _: "expired"):
        assert store.url in _probe_store(store, "probe", 2)[1]
