"""Objects in a store: conditions, lost answers, lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.few import few
from tests.support.object_store import Fault, S3Server, Server, in_s3
from vizpub.model.errors import ServiceError
from vizpub.runstore.stores.objects import Changed, Objects
from vizpub.runstore.stores.place import store_of
from vizpub.runstore.stores.s3 import S3Objects


@pytest.fixture
def store(workspace: Path) -> Objects:
    found = store_of(workspace)
    assert found
    return found


def test_write_on_a_condition_fails_if_the_object_is_another(store: Objects) -> None:
    version = store.put_if("a", b"1", None)
    with pytest.raises(Changed) as error:
        store.put_if("a", b"2", None)
    assert error.value.there == (b"1", version)
    newer = store.put_if("a", b"3", version)
    with pytest.raises(Changed):
        store.put_if("a", b"4", version)
    assert store.find("a") == (b"3", newer)
    store.delete(["a", "b"])
    with pytest.raises(Changed):
        store.put_if("a", b"5", newer)
    assert store.find("a") is None


LOST = [(fault, times) for fault in ("lost", "half", "cut", "503") for times in (1, 6)]


@pytest.mark.parametrize(("fault", "times"), few(LOST, [("lost", 1), ("half", 1), ("lost", 6)]))
def test_lost_answer_of_a_write_on_a_condition_is_found_out(
    store: Objects, server: Server, fault: Fault, times: int
) -> None:
    """After it the same write fails, by its own success."""
    version, left = store.put_if("a", b"1", None), [fault] * times
    writes = ("PUT", "WRITE", "RENAME")
    with server.failing(
        lambda request: left.pop() if request.startswith(writes) and left else None
    ):
        store.put_if("a", b"2", version)
    found = store.find("a")
    assert found
    assert found.content == b"2"


def test_large_object_is_read_by_ranges(store: Objects, tmp_path: Path, server: Server) -> None:
    content = bytes(range(256)) * (9 * 2**12)
    (tmp_path / "from").write_bytes(content)
    store.put("a/b", tmp_path / "from")
    with server.counting() as requests:
        store.fetch("a/b", len(content), tmp_path / "to")
    assert (tmp_path / "to").read_bytes() == content
    assert sum(request.startswith(("GET", "READ")) for request in requests) == 2


def test_walk_lists_what_is_below_and_folders_what_is_in_it(store: Objects, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"xyz")
    for name in ("runs/a/1", "runs/a/b/2", "runs/ab/3", "other/4"):
        store.put(name, tmp_path / "file")
    found = store.find("runs/a/1")
    assert found
    assert found.content == b"xyz"
    assert sorted(one.name for one in store.walk("runs/a")) == ["runs/a/1", "runs/a/b/2"]
    assert {one.size for one in store.walk("runs")} == {3}
    assert sorted(store.folders("runs")) == ["a", "ab"]


@in_s3
def test_refusal_is_no_reason_to_try_again(server: S3Server) -> None:
    missing = S3Objects("no-such-bucket", endpoint=server.endpoint)
    with pytest.raises(ServiceError, match="s3://no-such-bucket"):
        missing.put_if("a", b"", None)


@pytest.mark.parametrize("call", ["find", "put_if"])
def test_expired_token_says_what_to_do(store: Objects, server: Server, call: str) -> None:
    arguments = {"find": ("a",), "put_if": ("a", b"", None)}[call]
    with (
        server.failing(lambda _: "expired"),
        server.counting() as requests,
        pytest.raises(ServiceError, match="expired"),
    ):
        getattr(store, call)(*arguments)
    assert len(requests) <= 3, "to try again changes nothing"
