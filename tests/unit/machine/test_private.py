"""What others made, may change or lead elsewhere is refused or left alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.words import naming
from vizpub.machine import files
from vizpub.machine.private import (
    NOT_YOURS,
    OF_ANOTHER,
    check_private,
    check_trusted,
    make_private,
    new_file,
    open_secret,
    read_private,
    read_secret,
    replace_text,
)
from vizpub.model.errors import UseError

NOBODY = 65534

by_root = pytest.mark.skipif(os.geteuid() != 0, reason="to give files to others takes root")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "above" / "private"
    make_private(folder)
    return folder


def test_parents_are_made_too(folder: Path) -> None:
    check_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@by_root
def test_folder_that_another_user_made_is_refused(folder: Path) -> None:
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(UseError, match=naming(f"{folder} {OF_ANOTHER}")):
        make_private(folder)


@by_root
@pytest.mark.parametrize("is_link", [False, True])
def test_entry_that_another_user_left_is_refused(folder: Path, is_link: bool) -> None:
    left = folder / "conf"
    left.symlink_to("elsewhere") if is_link else left.mkdir()
    check_private(folder)
    os.chown(left, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(UseError, match=f"conf {OF_ANOTHER}"):
        check_private(folder)


def test_folder_in_an_open_one_is_refused_but_in_a_sticky_one(folder: Path) -> None:
    folder.parent.chmod(0o777)
    with pytest.raises(UseError, match=f"chmod o-w {folder.parent}"):
        check_private(folder)
    folder.parent.chmod(0o1777)
    check_private(folder)


def test_file_takes_the_place_of_a_link_and_of_what_others_hold(tmp_path: Path) -> None:
    for there in ("link", "open"):
        elsewhere, path = tmp_path / f"elsewhere-{there}", tmp_path / there
        elsewhere.write_text("dear")
        path.symlink_to(elsewhere) if there == "link" else os.link(elsewhere, path)
        with os.fdopen(new_file(path), "w") as file:
            file.write("secret")
        assert elsewhere.read_text() == "dear"
        assert not path.is_symlink()
        assert read_private(path) == "secret"


def test_replacement_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "token_hex", lambda _: "guessed")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("dear")
    for name in ("file", ".file.guessed.part"):
        (tmp_path / name).symlink_to(elsewhere)
    replace_text(tmp_path / "file", "secret")
    assert elsewhere.read_text() == "dear"
    assert read_private(tmp_path / "file") == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "file"]


def test_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "password"
    replace_text(path, "secret")
    path.chmod(0o640)
    with pytest.raises(UseError, match=naming(f"chmod 600 {path}")):
        read_private(path)


def test_link_and_pipe_are_not_read(tmp_path: Path) -> None:
    replace_text(tmp_path / "file", "secret")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UseError, match=naming(tmp_path / "link")):
        read_private(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(UseError, match=NOT_YOURS):
        read_private(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        read_private(tmp_path / "absent")


@by_root
def test_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "password"
    replace_text(path, "chosen by another")
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(UseError, match=NOT_YOURS):
        read_private(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o604, 0o660, 0o644, 0o666])
def test_secret_that_a_user_names_is_his_alone(tmp_path: Path, mode: int) -> None:
    """Links are followed, as those that certbot and Kubernetes make."""
    path, link = tmp_path / "secret", tmp_path / "link"
    path.write_text("secret")
    path.chmod(mode)
    link.symlink_to(path)
    for name in (path, link):
        if mode in (0o600, 0o400):
            assert read_secret(name) == "secret"
        else:
            with pytest.raises(UseError, match=naming(f"chmod 600 {name}")):
                read_secret(name)


def test_secret_is_a_file_of_bounded_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for odd in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(UseError, match=naming(odd)):
            open_secret(odd)
    (tmp_path / "large").touch(0o600)
    os.truncate(tmp_path / "large", 1 << 40)
    with pytest.raises(UseError, match=naming(tmp_path / "large", "bytes")):
        read_secret(tmp_path / "large")


@by_root
def test_secret_of_another_user_is_refused_but_not_that_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's group may read it: root put it there for those."""
    path = tmp_path / "secret"
    replace_text(path, "secret")
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(UseError, match=NOT_YOURS):
        open_secret(path)
    os.chown(path, 0, 0)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)  # the test itself may open all files
    for mode in (0o640, 0o440):
        path.chmod(mode)
        assert read_secret(path) == "secret"
    for mode in (0o644, 0o660):
        path.chmod(mode)
        with pytest.raises(UseError, match=naming(path)):
            read_secret(path)


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
def test_file_that_others_can_write_is_not_trusted(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    if mode == 0o644:
        check_trusted(path)
    else:
        with pytest.raises(UseError, match=naming(f"chmod go-w {path}")):
            check_trusted(path)
