"""Locks that end with their holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Timer

import pytest

from vizpub.machine.locks import OF_SPARK, LockHeld, holding, lock_of, own_folder


def test_lock_file_is_there_as_long_as_it_is_held(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with holding(lock):
        assert lock.read_text().startswith(f"{os.getpid()} ")
    assert not lock.exists()


def test_lock_is_refused_where_it_is_held(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with holding(lock):
        for _ in range(2):  # a refusal changes nothing of it
            with pytest.raises(LockHeld) as error, holding(lock):
                pass
            assert error.value.owner.startswith(f"process {os.getpid()} on ")
    with holding(lock):
        pass


def test_lock_of_a_file_that_its_holder_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder was done just when it was opened: a lock of no name would keep nobody out."""
    lock, really = tmp_path / "lock", fcntl.flock

    def late(handle: int, how: int) -> None:
        monkeypatch.undo()
        lock.unlink()
        really(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with holding(lock):
        with pytest.raises(LockHeld), holding(lock):
            pass
        assert lock.exists()


@pytest.mark.parametrize("mask", [0o022, 0o002])
def test_lock_file_is_writable_for_whom_the_user_lets_write(tmp_path: Path, mask: int) -> None:
    """One that a killed process left is in nobody's way, also in a folder of a group."""
    before = os.umask(mask)
    try:
        with holding(tmp_path / "lock"):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666 & ~mask
    finally:
        os.umask(before)


def test_lock_that_is_held_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep of another command found the file just when it was made, and locks it first."""
    folders, really = tmp_path / "scratch", fcntl.flock

    def late(handle: int, how: int) -> None:
        monkeypatch.undo()
        (lock,) = folders.glob(".work-*.lock")
        sweeping = os.open(lock, os.O_RDWR)
        really(sweeping, fcntl.LOCK_EX)

        def swept() -> None:
            lock.unlink()
            os.close(sweeping)

        Timer(0.1, swept).start()
        really(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with own_folder(folders, OF_SPARK) as folder:
        assert folder.is_dir()
        with pytest.raises(LockHeld), holding(lock_of(folder)):
            pass


def test_lock_at_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    (tmp_path / "precious").write_text("of somebody else")
    with pytest.raises(OSError, match="symbolic links"), holding(tmp_path / "lock"):
        pass
    assert (tmp_path / "precious").read_text() == "of somebody else"
