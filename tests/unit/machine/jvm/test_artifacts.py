"""Jars are what the lock says or they are not taken; fetched from a repository on loopback."""

from __future__ import annotations

import gc
import hashlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import pytest
from tenacity import wait_none

from tests.support.words import naming
from vizpub.machine.jvm import artifacts
from vizpub.machine.jvm.artifacts import cache_path, graphframes_jars, jars, missing
from vizpub.machine.jvm.lock import LOCK, Artifact, JarSet, read_lock, write_lock
from vizpub.machine.jvm.maven import make_lock
from vizpub.model.errors import ArtifactsMissing, UnknownName, UseError

# jgo does not close the answers it gives up, which Python notices when it collects them.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CONTENTS = {
    "org.one:alpha:1.0": b"alpha" * 10_000,
    "org.one:beta:2.1": b"beta" * 50_000,
    "org.two:gamma:0.1:all": b"gamma" * 3,
}


def _locked(at: str, content: bytes) -> Artifact:
    return Artifact(at, len(content), hashlib.sha256(content).hexdigest())


SET = JarSet(
    "small", "1", ("org.one:alpha:1.0",), (), True, tuple(_locked(*i) for i in CONTENTS.items())
)
NAMES = ["alpha-1.0.jar", "beta-2.1.jar", "gamma-0.1-all.jar"]


class Repository(BaseHTTPRequestHandler):
    """Serves `files` by their paths, with the faults of `faults`, and notes what is asked."""

    faults: ClassVar[dict[str, list[str]]] = {}
    asked: ClassVar[list[str]] = []
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[-1]
        self.asked.append(name)
        content = self.files.get(self.path[1:])
        fault = self.faults[name].pop(0) if self.faults.get(name) else ""
        if content is None or fault == "absent":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "other":
            content = content[::-1]
        self.wfile.write(content[: len(content) // 2] if fault == "cut" else content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _path(at: str, file_name: str) -> str:
    group, name, version, *_ = at.split(":")
    return "/".join((*group.split("."), name, version, file_name))


def _pom(at: str, *needs: str) -> bytes:
    """The description of an artifact that needs others."""

    def tags(at: str) -> str:
        names = ("groupId", "artifactId", "version")
        return "".join(f"<{n}>{v}</{n}>" for n, v in zip(names, at.split(":"), strict=True))

    dependencies = "".join(f"<dependency>{tags(other)}</dependency>" for other in needs)
    return (
        f"<project><modelVersion>4.0.0</modelVersion>{tags(at)}"
        f"<dependencies>{dependencies}</dependencies></project>"
    ).encode()


@pytest.fixture(autouse=True)
def _small_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(artifacts, "read_lock", lambda: {"small": SET})
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VIZPUB_JARS", raising=False)
    monkeypatch.setattr("vizpub.machine.jvm.maven._try_fetch.retry.wait", wait_none())


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Repository]]:
    """The repository jgo is configured for, by the file a user would write."""
    monkeypatch.setattr(Repository, "faults", {})
    monkeypatch.setattr(Repository, "asked", [])
    served = {_path(at, Artifact(at, 0, "").file_name): data for at, data in CONTENTS.items()}
    monkeypatch.setattr(Repository, "files", served)
    with ThreadingHTTPServer(("127.0.0.1", 0), Repository) as server:
        # It looks that often whether it shall end.
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        config = tmp_path / "jgo.conf"
        config.write_text(f"[repositories]\ncentral = http://127.0.0.1:{server.server_port}\n")
        monkeypatch.setenv("JGO_CONFIG_FILE", str(config))
        yield Repository
        server.shutdown()


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """Here, where it is expected, and not in tests of other files."""
    yield
    gc.collect()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory of the right jars, given by VIZPUB_JARS."""
    folder = tmp_path / "my jars"
    folder.mkdir()
    for name, content in zip(NAMES, CONTENTS.values(), strict=True):
        (folder / name).write_bytes(content)
    monkeypatch.setenv("VIZPUB_JARS", str(folder))
    return folder


def _downloads(repository: type[Repository]) -> list[str]:
    return sorted(name for name in repository.asked if name.endswith(".jar"))


def test_missing_jars_are_fetched_once(repository: type[Repository]) -> None:
    assert [a.file_name for a in missing("small")] == NAMES
    paths = jars("small")
    assert [p.name for p in paths] == NAMES
    assert [p.read_bytes() for p in paths] == list(CONTENTS.values())
    assert jars("small") == paths
    assert _downloads(repository) == NAMES
    assert missing("small") == []
    assert sorted(p.name for p in (cache_path() / "jars").iterdir()) == [".lock", *NAMES]


def test_missing_and_truncated_jars_alone_are_fetched(repository: type[Repository]) -> None:
    alpha, beta, _ = jars("small")
    alpha.unlink()
    beta.write_bytes(b"be")
    repository.asked.clear()
    assert jars("small")[1].read_bytes() == CONTENTS["org.one:beta:2.1"]
    assert _downloads(repository) == NAMES[:2]


def test_progress_ends_at_the_total_bytes_after_a_retry(repository: type[Repository]) -> None:
    repository.faults["beta-2.1.jar"] = ["cut"]
    seen: list[tuple[int, int]] = []
    jars("small", lambda *counts: seen.append(counts))
    total = sum(map(len, CONTENTS.values()))
    assert {t for _, t in seen} == {total}
    assert seen[-1][0] == total
    assert max(done for done, _ in seen) == total


def test_broken_transfer_is_tried_again(repository: type[Repository]) -> None:
    repository.faults["alpha-1.0.jar"] = ["cut", "absent"]
    assert jars("small")[0].read_bytes() == CONTENTS["org.one:alpha:1.0"]
    assert _downloads(repository).count("alpha-1.0.jar") == 3


def test_jar_with_other_contents_is_refused(repository: type[Repository]) -> None:
    repository.faults["beta-2.1.jar"] = ["other"] * 9
    with pytest.raises(ArtifactsMissing, match=naming("org.one:beta:2.1", "sha256")):
        jars("small")
    assert "beta-2.1.jar" in [a.file_name for a in missing("small")]


def test_artifact_missing_from_the_repository_is_named(repository: type[Repository]) -> None:
    repository.faults["gamma-0.1-all.jar"] = ["absent"] * 9
    with pytest.raises(ArtifactsMissing, match=naming("org.two:gamma:0.1:all")):
        jars("small")


def test_concurrent_calls_fetch_each_jar_once(repository: type[Repository]) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(jars, ["small"] * 2)
    assert first == second
    assert _downloads(repository) == NAMES


def test_closed_network_error_names_vizpub_jars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "jgo.conf").write_text("[repositories]\ncentral = http://127.0.0.1:9\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(tmp_path / "jgo.conf"))
    with pytest.raises(ArtifactsMissing, match="VIZPUB_JARS"):
        jars("small")


def test_unusable_cache_is_an_error_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "file"))
    with pytest.raises(ArtifactsMissing, match="Not a directory"):
        jars("small")


@pytest.fixture
def unpinned(monkeypatch: pytest.MonkeyPatch) -> JarSet:
    """GraphFrames as long as the lock has no sums: its roots alone."""
    unpinned = JarSet("graphframes", "1", tuple(CONTENTS)[:2], (), False, ())
    monkeypatch.setattr(artifacts, "read_lock", lambda: {"graphframes": unpinned})
    monkeypatch.delenv("VIZPUB_GRAPHFRAMES_JARS", raising=False)
    return unpinned


@pytest.mark.usefixtures("unpinned")
def test_unpinned_jars_are_fetched_once(repository: type[Repository]) -> None:
    assert [a.file_name for a in missing("graphframes")] == NAMES[:2]
    assert [p.read_bytes() for p in graphframes_jars()] == list(CONTENTS.values())[:2]
    assert missing("graphframes") == []
    graphframes_jars()
    assert _downloads(repository) == NAMES[:2]


def test_graphframes_jar_unlike_its_pinned_sum_is_refused(
    unpinned: JarSet, repository: type[Repository], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = replace(unpinned, artifacts=SET.artifacts[:2])
    monkeypatch.setattr(artifacts, "read_lock", lambda: {"graphframes": pinned})
    repository.faults["beta-2.1.jar"] = ["other"] * 9
    with pytest.raises(ArtifactsMissing, match=naming("beta", "sha256")):
        graphframes_jars()


@pytest.mark.usefixtures("unpinned")
def test_missing_graphframes_error_names_the_variables_to_set(
    repository: type[Repository],
) -> None:
    repository.files.clear()
    with pytest.raises(ArtifactsMissing, match=r"alpha.*VIZPUB_GRAPHFRAMES_JARS.*VIZPUB_JARS"):
        graphframes_jars()


@pytest.mark.usefixtures("unpinned")
def test_jars_named_for_graphframes_come_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert graphframes_jars() == [folder / name for name in NAMES[:2]]
    own = [folder / NAMES[2], folder / NAMES[0]]
    monkeypatch.setenv("VIZPUB_GRAPHFRAMES_JARS", ",".join(map(str, own)))
    assert graphframes_jars() == own
    own[0].unlink()
    with pytest.raises(UseError, match=naming("VIZPUB_GRAPHFRAMES_JARS", own[0])):
        graphframes_jars()


def test_given_jars_are_used_where_they_lie(folder: Path) -> None:
    assert jars("small") == [folder / name for name in NAMES]
    assert missing("small") == []
    assert not cache_path().exists()


def test_missing_or_different_given_jars_are_refused_by_name(folder: Path) -> None:
    (folder / "alpha-1.0.jar").write_bytes(CONTENTS["org.one:alpha:1.0"][::-1])
    with pytest.raises(ArtifactsMissing, match=naming("alpha-1.0.jar")):
        jars("small")
    (folder / "beta-2.1.jar").unlink()
    with pytest.raises(ArtifactsMissing, match=naming("beta-2.1.jar")):
        jars("small")


def test_given_jar_folder_that_is_no_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VIZPUB_JARS", str(tmp_path / "none"))
    with pytest.raises(UseError, match=naming(f"VIZPUB_JARS={tmp_path / 'none'}")):
        jars("small")


def test_unknown_jar_set_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="small"):
        jars("smal")


def test_shipped_lock_is_consistent() -> None:
    sets = read_lock()
    assert set(sets) >= {"neo4j", "gephi", "graphframes"}
    for jar_set in sets.values():
        names = [a.file_name for a in jar_set.files]
        assert len(set(names)) == len(names) > 0
        assert all(re.fullmatch("[0-9a-f]{64}", a.sha256) for a in jar_set.artifacts)
        assert set(jar_set.roots) <= {a.at for a in jar_set.files}
        without = tuple(f"{name}:" for name in jar_set.without)
        assert not [a.at for a in jar_set.artifacts if a.at.startswith(without or "-")]
    assert all(root.endswith(f":{sets['neo4j'].version}") for root in sets["neo4j"].roots[:-1])
    assert "://" not in LOCK.read_text("utf-8")


def test_graphframes_jars_have_the_version_of_its_python_package() -> None:
    locked = read_lock()["graphframes"]
    assert locked.version == version("graphframes-py")
    assert all(root.endswith(f"_2.13:{locked.version}") for root in locked.roots)


def test_lock_survives_write_and_read(tmp_path: Path) -> None:
    sets = read_lock()
    write_lock(sets.values(), tmp_path / "lock")
    assert read_lock(tmp_path / "lock") == sets
    assert (tmp_path / "lock").read_text("utf-8") == LOCK.read_text("utf-8")


def test_lock_is_made_from_the_roots(repository: type[Repository], tmp_path: Path) -> None:
    alpha, beta, _ = CONTENTS
    unwanted = "org.three:delta:3.0"
    for at, needs in ((alpha, (beta, unwanted)), (beta, ()), (unwanted, ())):
        repository.files[_path(at, "-".join(at.split(":")[1:]) + ".pom")] = _pom(at, *needs)
    gamma = replace(SET, name="gamma", roots=("org.two:gamma:0.1:all",), transitive=False)
    empty = replace(SET, without=("org.three:delta",), artifacts=())
    write_lock([empty, replace(gamma, artifacts=())], tmp_path / "lock")
    make_lock(path=tmp_path / "lock")
    made = read_lock(tmp_path / "lock")
    assert made["small"].artifacts == SET.artifacts[:2]
    assert made["gamma"].artifacts == SET.artifacts[2:]


def test_named_jar_sets_alone_are_resolved_again(
    repository: type[Repository], tmp_path: Path
) -> None:
    gamma = replace(SET, name="gamma", roots=("org.two:gamma:0.1:all",), transitive=False)
    write_lock([replace(SET, artifacts=()), gamma], tmp_path / "lock")
    make_lock(["gamma"], tmp_path / "lock")
    assert read_lock(tmp_path / "lock")["small"].artifacts == ()
    assert _downloads(repository) == [NAMES[2]]
