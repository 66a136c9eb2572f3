"""Archives of a few hundred classes, made and used by a real Java."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from vizpub.machine.jvm import class_data
from vizpub.machine.jvm.class_data import ClassData, find_archive, make
from vizpub.machine.jvm.java import find_java

FROM_ARCHIVE = "source: shared objects file"
ROOM = SimpleNamespace(free=10**10)
"""On a disk: these tests need little, however full the disk is."""


def java() -> tuple[str, ...]:
    return str(find_java().executable), "-XX:+UseSerialGC"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassData:
    """Of a Java that loads what it needs to tell its version."""
    monkeypatch.setattr(class_data, "_WORTH", 100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: ROOM)
    folder = tmp_path / "kinds of sessions" / "one"
    folder.mkdir(parents=True)
    return ClassData(folder, java())


def run(command: Sequence[str]) -> str:
    """All that a Java says of its version, but for whether it shares classes."""
    done = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).replace(", sharing", "")


def session(data: ClassData, *flags: str) -> str:
    """One with what it is told, and more flags."""
    return run([*data.java, *data.flags(), *flags])


def listed(data: ClassData) -> Path:
    """The list a session leaves."""
    session(data)
    (path,) = data.folder.glob("*.classes")
    return path


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the list of a session, `kept`, and the archive made of it."""
    found = ClassData(tmp_path_factory.mktemp("kinds") / "one", java())
    shutil.copy(fresh := listed(found), found.folder / "kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_data, "_WORTH", 100)
        patch.setattr(shutil, "disk_usage", lambda _: ROOM)
        make(found.folder, fresh, found.java)
    return found.folder


@pytest.fixture(scope="module")
def plain() -> str:
    """What Java says of its version without any archive."""
    return run(java())


@pytest.fixture
def fresh(data: ClassData, once: Path) -> Path:
    """As a session would leave it."""
    return Path(shutil.copy(once / "kept", data.folder / "fresh.classes"))


@pytest.fixture
def whole(data: ClassData, once: Path) -> Path:
    """The archive, without the right to write to it."""
    found = find_archive(once)
    assert found
    return Path(shutil.copy(found, data.folder))


def archive(data: ClassData) -> Path:
    found = find_archive(data.folder)
    assert found
    return found


def left(data: ClassData) -> set[str]:
    """Kinds of files."""
    return {path.suffix for path in data.folder.iterdir() if path.name != ".lock"}


def test_archive_serves_the_classes_listed_by_an_earlier_java(data: ClassData, plain: str) -> None:
    make(data.folder, listed(data), data.java)
    assert left(data) == {".jsa"}
    assert session(data) == plain, "not a word more"
    loaded = session(data, "-Xlog:class+load:file=/dev/stdout").splitlines()
    assert sum(FROM_ARCHIVE in line for line in loaded) > 100
    assert f"-XX:SharedArchiveFile={archive(data)}" in data.flags()
    assert left(data) == {".jsa"}, "nothing is listed any more"


@pytest.mark.parametrize("damage", ["empty", "other", "short"])
def test_damaged_archive_is_ignored_silently(
    data: ClassData, whole: Path, plain: str, damage: str
) -> None:
    content = whole.read_bytes()
    whole.unlink()  # it is made without the right to write to it
    broken = {"empty": b"", "other": b"x" * len(content), "short": content[: len(content) // 2]}
    whole.write_bytes(broken[damage])
    assert session(data) == plain


@pytest.mark.usefixtures("whole")
def test_archive_for_other_flags_is_ignored_silently(data: ClassData) -> None:
    other = ClassData(data.folder, (*data.java, "-XX:-UseCompressedClassPointers"))
    assert session(other) == run(other.java)


def test_unwritable_folder_gives_java_no_flags(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ClassData(tmp_path / "file" / "kind", ("java",)).flags() == []
    ClassData(tmp_path / "file" / "kind", ("java",)).forget()


def test_archive_is_made_once_by_the_lock_holder(data: ClassData, fresh: Path) -> None:
    first, second = fresh, data.folder / "second.classes"
    shutil.copy(first, second)
    with FileLock(data.folder / ".lock"):
        make(data.folder, second, data.java)
        assert not find_archive(data.folder)
        assert first.exists()
    make(data.folder, first, data.java)
    made = archive(data).stat()
    shutil.copy(os.devnull, second)
    make(data.folder, second, data.java)
    assert archive(data).stat() == made
    assert left(data) == {".jsa"}


def test_leftovers_of_a_killed_maker_are_removed(data: ClassData, fresh: Path) -> None:
    for name in ("classes.new", "of a killed one.classes"):
        (data.folder / name).write_text("half")
    make(data.folder, fresh, data.java)
    assert left(data) == {".jsa"}


def test_failed_java_leaves_no_file(data: ClassData, fresh: Path) -> None:
    text = fresh.read_bytes()
    make(data.folder, fresh, ("false",))
    assert left(data) == set()
    fresh.write_bytes(text)
    make(data.folder, fresh, (str(data.folder / "no java"),))
    assert left(data) == set()


def test_archive_is_not_made_if_not_worth_it(
    data: ClassData, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fresh.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
        make(data.folder, fresh, data.java)
    assert left(data) == set(), "on a disk that is nearly full"
    monkeypatch.setattr(class_data, "_WORTH", 10_000)
    fresh.write_bytes(text)
    make(data.folder, fresh, data.java)
    assert left(data) == set(), "of a session that did nothing"


def test_archive_folders_used_least_recently_are_removed(data: ClassData, fresh: Path) -> None:
    for age, name in enumerate(["two", "empty", "three", "four", "empty, too", "five"]):
        kind = data.folder.parent / name
        kind.mkdir()
        if "empty" not in name:
            (kind / "classes-0.jsa").touch()
        os.utime(kind, (10**9 - age, 10**9 - age))
    make(data.folder, fresh, data.java)
    kept = {kind.name for kind in data.folder.parent.iterdir()}
    assert kept == {"one", "two", "empty", "three"}, "three archives, and what was used since"
    os.utime(data.folder, (0, 0))
    session(data)
    assert data.folder.stat().st_mtime > 10**9, "a use counts"


def test_line_too_long_for_java_is_left_out_of_the_list(data: ClassData, fresh: Path) -> None:
    """Java writes the parameters of a lambda in one line, and does not read 4,096 characters."""
    with fresh.open("a") as lines:
        lines.write(f"@lambda-proxy java/lang/Runnable run {'(Ljava/lang/Object;)V' * 400}\n")
    make(data.folder, fresh, data.java)
    assert left(data) == {".jsa"}


def test_archive_with_flipped_bits_is_passed_over_in_silence(
    data: ClassData, whole: Path, plain: str
) -> None:
    content = bytearray(whole.read_bytes())
    for place in range(len(content) // 2, len(content), 4096):
        content[place] ^= 0xFF
    whole.unlink()
    whole.write_bytes(content)
    assert session(data) == plain
    loaded = session(data, "-Xlog:class+load:file=/dev/stdout")
    assert FROM_ARCHIVE not in loaded
