"""What paths stand for, in folders made to lead astray."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyarrow import fs

from tests.support.permissions import as_a_user
from tests.support.words import naming, tells
from vizpub.ingest.inputs.files import (
    CHANGED,
    EMPTY_PATH,
    FROM_THE_WEB,
    NO_FILES_IN,
    NO_SUCH_PATH,
    check_unchanged,
    find_files,
    locate,
)
from vizpub.ingest.sources.tables.folders import folder_columns
from vizpub.model.errors import InputError, ServiceError


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(*paths: str) -> dict[str, int]:
    """Files by path, with their sizes."""
    founds = find_files(paths).values()
    return {name: stamp.size for found in founds for name, stamp in found.files.items()}


def skipped(*paths: str) -> dict[str, str]:
    """What is skipped, by its path from here."""
    founds = find_files(paths).values()
    told = {name: why for found in founds for name, why in found.skipped.items()}
    return {os.path.relpath(name): why for name, why in told.items()}


def put(path: str, text: str = "red") -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return os.path.abspath(path)


def test_file_of_many_names_is_found_once() -> None:
    real = put("in/deep/b.txt")
    os.symlink("deep/b.txt", "in/a.txt")
    os.link(real, "in/deep/c.txt")
    os.symlink("../../in", "in/deep/up")
    os.symlink(".", "in/self")
    assert files("in") == files("in/**") == {real: 3}
    assert skipped("in") == {
        "in/a.txt": f"the same file as {real}",
        "in/deep/c.txt": f"the same file as {real}",
        "in/deep/up": "a link to a folder: name the folder to read it",
        "in/self": "a link to a folder: name the folder to read it",
    }
    assert files("in/self") == {os.path.abspath("in/self/deep/b.txt"): 3}
    assert files("in/a.txt") == {os.path.abspath("in/a.txt"): 3}
    assert files("in/deep", "in/self", "in/a.txt") == {real: 3}


@pytest.mark.parametrize("pattern", ["in/*", "in/li*"])
def test_link_to_a_folder_that_a_glob_matches_is_skipped(pattern: str) -> None:
    put("out/a.txt")
    real = put("in/b.txt")
    os.symlink("../out", "in/linked")
    assert files(pattern) == ({real: 3} if pattern == "in/*" else {})
    assert skipped(pattern) == {"in/linked": "a link to a folder: name the folder to read it"}


def test_hidden_folder_is_skipped_unless_it_is_named() -> None:
    """Editors and notebooks keep older copies there, which would count beside the files."""
    put("in/a.csv")
    copy = put("in/.ipynb_checkpoints/a-checkpoint.csv")
    assert files("in").keys() == {os.path.abspath("in/a.csv")}
    tells(skipped("in")["in/.ipynb_checkpoints"], "hidden")
    assert files("in/.ipynb_checkpoints").keys() == {copy}


def test_pipe_and_broken_link_are_skipped_with_their_kind() -> None:
    real = put("in/a.txt")
    os.mkfifo("in/pipe")
    os.symlink("nowhere", "in/dangling")
    os.symlink("loop", "in/loop")
    os.symlink("/dev/null", "in/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("in/socket")
    assert files("in") == files("in/*") == {real: 3}
    assert (
        skipped("in")
        == skipped("in/*")
        == {
            "in/pipe": "a pipe",
            "in/dangling": "a link to nowhere, which does not exist",
            "in/loop": "a link to itself",
            "in/null": "a device",
            "in/socket": "a socket",
        }
    )


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: os.mkfifo("x"),
            naming("x: a pipe", "vizpub ingest - --run NAME"),
        ),
        (lambda: os.symlink("/dev/zero", "x"), naming("x: a device", "vizpub ingest - --run NAME")),
        (lambda: os.symlink("nowhere", "x"), naming("x: a link to nowhere")),
        (lambda: os.symlink("x", "x"), "x: a link to itself"),
        (lambda: os.mkdir("x"), f"x {NO_FILES_IN}"),
    ],
    ids=["pipe", "device", "dangling", "itself", "empty"],
)
def test_path_of_no_file_is_refused_with_its_kind(make, why: str) -> None:  # type: ignore[no-untyped-def]
    make()
    with pytest.raises(InputError, match=why):
        find_files(["x"])


def test_folder_of_pipes_is_refused_with_the_reasons() -> None:
    Path("in").mkdir()
    os.mkfifo("in/x")
    with pytest.raises(InputError, match=naming(f"in {NO_FILES_IN}", "/in/x: a pipe")):
        find_files(["in"])


def test_name_that_is_not_utf8_is_skipped_or_refused() -> None:
    real = put("in/a.txt")
    odd = os.fsdecode(b"in/\xff.txt")
    put(odd)
    put(os.fsdecode(b"in/folder \xfe/b.txt"))
    assert files("in") == {real: 3}
    why = "its name is not UTF-8: rename it"
    assert skipped("in") == {r"in/\xff.txt": why, r"in/folder \xfe": why}
    with pytest.raises(InputError, match=naming(r"in/\xff.txt", "UTF-8")):
        find_files([odd])
    with pytest.raises(InputError, match=naming(r"in/\xfd")):
        find_files([os.fsdecode(b"in/\xfd")])


def test_path_that_is_too_long_is_skipped_or_refused(tmp_path: Path) -> None:
    real, name = put("in/a.txt"), "long" * 50
    os.chdir("in")
    for _ in range(25):
        Path(name).mkdir()
        os.chdir(name)
    Path("b.txt").touch()
    os.chdir(tmp_path)
    assert files("in") == {real: 3}
    ((path, why),) = skipped("in").items()
    assert (name in path, why) == (True, "cannot be read: File name too long")
    with pytest.raises(InputError, match="File name too long"):
        find_files(["x" * 5000])


def test_folder_that_may_not_be_read_is_skipped_or_refused() -> None:
    real = put("in/a.txt")
    put("in/closed/b.txt")
    Path("in/closed").chmod(0)
    with as_a_user():
        assert files("in") == {real: 3}
        assert skipped("in") == {"in/closed": "cannot be read: Permission denied"}
        with pytest.raises(InputError, match=naming("in/closed", "Permission denied")) as told:
            find_files(["in/closed"])
        Path("in/closed").chmod(0o600)  # it may be listed, and nothing in it read
        with pytest.raises(InputError, match=naming("in/closed/b.txt", "Permission denied")):
            find_files(["in/closed"])
    assert NO_FILES_IN not in str(told.value)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda file: file.write_text("reds"), "it had 3 bytes, and has 4"),
        (lambda file: os.utime(file, ns=(0, 1)), "it was written again"),
        (lambda file: file.unlink(), "it was removed"),
        (
            lambda file: shutil.copy(file, "b") and os.replace("b", file),
            "another file has replaced",
        ),
        (lambda file: file.read_text(), None),
    ],
    ids=["grown", "written", "gone", "replaced", "read"],
)
def test_changed_file_is_refused(
    change: Callable[[Path], object], difference: str | None, tmp_path: Path
) -> None:
    path = put("a.txt")
    ((_, found),) = find_files([path]).items()
    change(tmp_path / "a.txt")
    told = nullcontext()
    if difference:
        told = pytest.raises(InputError, match=naming(f"a.txt {CHANGED}", difference))  # type: ignore[assignment]
    with told:
        check_unchanged(found.files)


def test_folders_to_leave_out_are_skipped_unless_named(tmp_path: Path) -> None:
    put("in/a.txt")
    put("in/own/runs/b.txt")
    put("in/own/c.txt")
    (tmp_path / "link").symlink_to("in")
    ours = ["in/own/runs"]
    for given in ("in", "link", "in/own/../../in", "i*"):
        found = find_files([given], ours)[given]
        assert sorted(map(os.path.basename, found.files)) == ["a.txt", "c.txt"], given
        assert found.skipped == {
            str(tmp_path / "in/own/runs"): "the workspace's own: name it to read it"
        }
    for given in ("in/own/runs", "in/own/runs/*.txt", "in/own/runs/b.txt"):
        assert sorted(map(os.path.basename, find_files([given], ours)[given].files)) == ["b.txt"], (
            given
        )


def test_empty_path_is_not_the_working_directory() -> None:
    """As of a variable of the shell that is not set."""
    put("a.txt")
    with pytest.raises(InputError, match=EMPTY_PATH):
        find_files([""])


FIND = (
    "import sys; from vizpub.ingest.inputs.files import find_files; "
    "print(*find_files(sys.argv[1:])[sys.argv[1]].files)"
)


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
def test_standard_input_is_a_file_or_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("red")
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def found(**given: object) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", FIND, name]
        return subprocess.run(words, capture_output=True, text=True, env=path, check=False, **given)  # type: ignore[call-overload,no-any-return]

    with (tmp_path / "a.txt").open() as file:
        assert found(stdin=file).stdout == f"{tmp_path}/a.txt\n"
    assert f"{name}: a pipe" in found(input="red").stderr


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system of buckets stands behind every URI."""
    (tmp_path / "bucket" / "some reports").mkdir(parents=True)
    (tmp_path / "bucket" / "some reports" / "a.csv").write_text("red 1")
    buckets = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        "vizpub.ingest.inputs.files.locate", lambda _: (buckets, "bucket/some reports")
    )


@pytest.mark.usefixtures("store")
def test_store_uri_is_kept_without_secrets() -> None:
    found = files("s3://name:secret@bucket/some%20reports?region=here")
    assert found == {"s3://bucket/some%20reports/a.csv?region=here": 5}


@pytest.mark.usefixtures("store")
def test_folder_in_a_store_gives_its_column(tmp_path: Path) -> None:
    folder = tmp_path / "bucket" / "some reports" / "interval=3" / "layer=a%3Ab"
    folder.mkdir(parents=True)
    (folder / "b.csv").write_text("src,dst")
    _, path = files("s3://bucket/some%20reports?endpoint_override=a/b=c/d")
    assert folder_columns(path) == {"interval": "3", "layer": "a:b"}


def test_local_uri_becomes_a_path(tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("red 1")
    assert files((tmp_path / "a b.csv").as_uri()) == {str(tmp_path / "a b.csv"): 5}


@pytest.mark.parametrize("uri", ["hdfs://unknown-service/a.csv", "hdfs:///a.csv"])
def test_address_of_no_name_node_is_an_error(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(InputError, match=naming(uri)):
        files(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "hdfs://127.0.0.1:1/a.csv",
        pytest.param(
            "s3://bucket/a.csv?scheme=http&endpoint_override=127.0.0.1:1&region=eu-west-1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_store_that_is_away_is_an_error_that_names_it(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "vizpub.ingest.inputs.files.FEW_ATTEMPTS", {"dfs.client.failover.max.attempts": "0"}
    )
    with pytest.raises(ServiceError, match=naming(uri, "cannot be reached")):
        find_files([uri])


@pytest.mark.parametrize(
    ("uri", "limit_s"),
    [
        ("gs://bucket/a%20b", 30),
        ("gs://b/a?project_id=x", 30),
        ("gs://b/a?retry_limit_seconds=7", 7),
    ],
)
def test_store_of_google_has_half_a_minute_to_answer(uri: str, limit_s: int) -> None:
    filesystem, path = locate(uri)
    assert path == unquote(urlsplit(uri).netloc + urlsplit(uri).path)
    _, (settings,) = filesystem.__reduce__()  # no attribute tells the limit
    assert settings["retry_time_limit"] == timedelta(seconds=limit_s)


@pytest.mark.parametrize("uri", ["http://host/a.csv", "HTTPS://host/a.csv?x=1"])
def test_address_in_the_web_is_refused_with_a_way_to_read_it(uri: str) -> None:
    with pytest.raises(InputError, match=naming(uri, FROM_THE_WEB)) as told:
        find_files([uri])
    tells(told.value.hint, f"curl -fsSL '{uri}' | vizpub ingest - --run NAME")
    put("http")
    assert files("http")


@pytest.mark.parametrize("uri", ["gopher://host/reports", "hdfs://no host/reports"])
def test_uri_of_an_unknown_file_system_is_refused(uri: str) -> None:
    with pytest.raises(InputError, match=f"{NO_SUCH_PATH}: {uri}"):
        find_files([uri])


def test_deep_pattern_takes_folders_of_any_name() -> None:
    named = [put(f"in/{name}/x.json") for name in ("plain", "run[1]", "what?", "a*b")]
    assert files("in/**/*.json") == dict.fromkeys(named, 3)
