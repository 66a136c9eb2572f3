"""What is HDFS' own: writes on a condition by renames, and what killed writers leave of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.few import few
from tests.support.hdfs import Cluster
from tests.support.object_store import Machine, ingest_links
from tests.support.tables import links
from vizpub.model.errors import ServiceError
from vizpub.runstore.store import open_run, run_names
from vizpub.runstore.stores import objects
from vizpub.runstore.stores.hdfs import HdfsObjects
from vizpub.runstore.stores.objects import Changed
from vizpub.runstore.stores.place import store_of
from vizpub.runstore.writer import remove_run

pytestmark = pytest.mark.parametrize("server", ["hdfs"], indirect=True)


@pytest.fixture
def store(workspace: Path) -> HdfsObjects:
    found = store_of(workspace)
    assert isinstance(found, HdfsObjects)
    return found


class Killed(BaseException):
    """The process is gone."""


def dying_at(step: int, *, after: bool) -> Callable[..., object]:
    """Requests of a process that ends at one of them, before or `after` it took effect."""
    made, request = [0], Cluster.request

    def dying(self: Cluster, name: str, call: Callable[[], object]) -> object:
        made[0] += 1
        if made[0] > step or (made[0] == step and not after):
            raise Killed
        answer = request(self, name, call)
        if made[0] == step:
            raise Killed
        return answer

    return dying


STEPS = [
    (version, step, after)
    for version, steps in (("", 9), ("1", 9))
    for step in range(1, steps)
    for after in (False, True)
]


@pytest.mark.parametrize(
    ("first", "step", "after"), few(STEPS, [("", 7, False), ("1", 6, False), ("1", 6, True)])
)
def test_killed_write_took_effect_or_not_and_hinders_no_later_one(
    store: HdfsObjects, monkeypatch: pytest.MonkeyPatch, first: str, step: int, after: bool
) -> None:
    version = store.put_if("runs/lab/a", first.encode(), None) if first else None
    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Cluster, "request", dying_at(step, after=after))
        store.put_if("runs/lab/a", b"2", version)
    found = store.find("runs/lab/a")
    assert (found.content.decode() if found else "") in (first, "2")
    newer = store.put_if("runs/lab/a", b"3", found.version if found else None)
    store.put_if("runs/lab/a", b"4", newer)
    assert store.find("runs/lab/a").content == b"4"  # type: ignore[union-attr]
    inside = [*store._client.list_status(store._path("runs/lab/a"))]
    assert len(inside) == 2, "the version and its content"
    store.delete([one.name for one in store.walk("runs/lab")])
    assert store.folders("") == []


def race(
    store: HdfsObjects, contents: list[bytes], version: str | None
) -> tuple[list[str], list[Changed]]:
    """Let all write on the same condition at once: the versions of those who won, and the errors
    of the others.
    """
    start, won, lost = threading.Barrier(len(contents)), list[str](), list[Changed]()

    def write(content: bytes) -> None:
        start.wait()
        try:
            won.append(store.put_if("a", content, version))
        except Changed as error:
            lost.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, lost


@pytest.mark.parametrize("seed", few(range(40), [0]))
def test_race_of_writers_on_a_condition_has_one_winner(store: HdfsObjects, seed: int) -> None:
    """Five times: the object is new, and then that of the winner before."""
    version = None
    for number in range(5):
        won, lost = race(store, [f"{seed} {number} {n}".encode() for n in range(4)], version)
        assert len(won) == 1
        assert [error.there.version if error.there else None for error in lost] == won * 3
        (version,) = won


def test_writer_that_slept_removes_nothing_of_a_later_one(
    store: HdfsObjects, server: Cluster
) -> None:
    """It has listed what was there, and then another one writes."""
    first, left = store.put_if("a", b"1", None), [b"2"]

    def sleep(request: str) -> None:
        if request.startswith("CREATE") and left:
            store.put_if("a", left.pop(), first)

    with server.failing(sleep), pytest.raises(Changed) as error:
        store.put_if("a", b"3", first)
    assert error.value.there == store.find("a")
    assert error.value.there.content == b"2"  # type: ignore[union-attr]


def test_write_that_comes_after_a_removal_leaves_nothing(store: HdfsObjects) -> None:
    version = store.put_if("a", b"1", None)
    store.delete(["a"])
    with pytest.raises(Changed):
        store.put_if("a", b"2", version)
    assert store.folders("") == []
    store.put_if("a", b"3", None)


def test_object_that_is_written_on_no_condition_is_found_and_replaced(
    store: HdfsObjects, tmp_path: Path
) -> None:
    for content in (b"1", b"22"):
        (tmp_path / "file").write_bytes(content)
        store.put("a/log", tmp_path / "file")
        found = store.find("a/log")
        assert found
        assert found.content == content
    assert [(one.name, one.size) for one in store.walk("a")] == [("a/log", 2)]


def test_run_is_written_read_elsewhere_and_removed(machine: Machine) -> None:
    ingest_links(machine("here"), links(100, seed=1))
    elsewhere = machine("elsewhere")
    assert open_run(elsewhere, "monday").read("links").num_rows == 100
    assert run_names(elsewhere) == ["monday"]
    remove_run(elsewhere, "monday")
    store = store_of(elsewhere)
    assert store
    assert store.folders("") == [], "no folder stays either"


def test_name_node_that_is_away_is_an_error_that_names_it(
    server: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(objects, "_PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(
        "vizpub.runstore.stores.hdfs.FEW_ATTEMPTS", {"dfs.client.failover.max.attempts": "0"}
    )
    with pytest.raises(ServiceError, match=r"hdfs://127\.0\.0\.1:1/ws .*refused"):
        HdfsObjects("127.0.0.1:1", "ws").find("a")
    assert [r.getMessage().partition(" ")[0] for r in caplog.records] == ["hdfs://127.0.0.1:1/ws"]


def test_refusal_is_no_reason_to_try_again(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of somebody else."""
    owner = HdfsObjects(f"127.0.0.1:{server.port}")
    owner.put_if("closed/a", b"", None)
    owner._client.inner.set_permission("/closed", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    with server.counting() as requests, pytest.raises(ServiceError, match="denied"):
        HdfsObjects(f"127.0.0.1:{server.port}").find("closed/a")
    assert len(requests) == 1
