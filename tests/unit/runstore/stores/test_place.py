"""Addresses of workspaces in stores, and the folders that stand for them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from vizpub.model.errors import UseError
from vizpub.runstore.stores.hdfs import HdfsObjects
from vizpub.runstore.stores.place import STORES, folder_of, name_of, store_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path))
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_folder_of_a_store_is_private_and_known_to_other_processes(tmp_path: Path) -> None:
    folder = folder_of("s3://bucket/a/b/", "http://127.0.0.1:9000", "eu-west-1")
    assert folder.parent == tmp_path / STORES
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    store = store_of(folder)
    assert store
    facts = (store.bucket, store.prefix, store.endpoint, store.region)
    assert facts == ("bucket", "a/b", "http://127.0.0.1:9000", "eu-west-1")
    assert name_of(folder) == "s3://bucket/a/b"
    assert folder_of(folder) == folder


def test_address_has_one_folder_however_it_is_written() -> None:
    same = {folder_of(uri) for uri in ("s3://bucket/a", "s3://bucket/a/", Path("s3://bucket/a"))}
    assert len(same) == 1
    others = {folder_of("s3://bucket"), folder_of("s3://bucket/a", "http://127.0.0.1:9000")}
    assert len(same | others) == 3


def test_folder_of_a_path_in_hdfs_knows_its_name_node() -> None:
    folder = folder_of(Path("hdfs://name-node.lab:8020/users/a/"))
    store = store_of(folder)
    assert isinstance(store, HdfsObjects)
    assert (store.authority, store.prefix) == ("name-node.lab:8020", "users/a")
    assert name_of(folder) == "hdfs://name-node.lab:8020/users/a"
    assert store_of(folder_of("hdfs://service")) == HdfsObjects("service")


@pytest.mark.parametrize(
    "uri",
    [
        *("s3://b", "s3://", "s3://bucket/../x", "s3://bucket/a b", "s3:///x"),
        *("hdfs://", "hdfs://host:port/x", "hdfs://host/a/../b", "hdfs://no host/x"),
    ],
)
def test_address_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(UseError, match=r"s3://BUCKET|hdfs://HOST:PORT"):
        folder_of(uri)


@pytest.mark.parametrize("uri", ["s3://b/p", "hdfs://host:port/x", "gs://bucket/x"])
def test_refused_address_is_printed_as_it_was_typed(uri: str) -> None:
    with pytest.raises(UseError, match=f"{uri} is no"):
        folder_of(Path(uri))


def test_folder_of_the_users_own_is_no_store(tmp_path: Path) -> None:
    own = tmp_path / "mine" / STORES / "lab"
    own.mkdir(parents=True)
    (own / "store.json").write_text('{"bucket": "other"}')
    assert store_of(own) is None
    assert name_of(own) == str(own)
