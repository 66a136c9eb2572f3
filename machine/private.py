"""Files and folders for their owner only, checked as ssh checks its keys; files that a user names
are checked as PostgreSQL checks its keys.

Whoever can write into the folder of a service controls its passwords, its settings and the programs
it runs. So the folder is checked on each use, and files are always written as new files: existing
files are never written into, and links are not followed.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from vizpub.machine.files import replacing
from vizpub.model.errors import UseError, cause_of

NO_FOLDER = "is not a folder"
OF_ANOTHER = "belongs to another user"
NOT_YOURS = "is not a file of yours"
_MOST = 2**20
"""Bytes of a file with secrets."""


def make_private(folder: Path) -> None:
    """Make the folder, for its owner alone. Raises: UseError where it is there and is not so."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Raises: UseError where others could have put something there; FileNotFoundError."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UseError(f"{folder} {NO_FOLDER}; remove it")
    if found.st_uid != os.geteuid():
        raise UseError(f"{folder} {OF_ANOTHER}; use another workspace")
    if found.st_mode & 0o077:
        raise UseError(f"{folder} is accessible to other users; restrict it: chmod 700 {folder}")
    for above in folder.absolute().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UseError(
                f"{above} is writable by everybody, so {folder} can be replaced by "
                f"others; restrict it: chmod o-w {above}"
            )
    _check_entries(folder)


def _check_entries(folder: Path) -> None:
    """Raises: UseError for entries of other users, made before the folder was private."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_uid not in (os.geteuid(), 0):
                    raise UseError(f"{entry.path} {OF_ANOTHER}; check it and remove it")


def read_private(path: Path) -> str:
    """The text of a file that its owner alone reads.

    Raises: FileNotFoundError; UseError where it is a link, or another user's or readable by one.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UseError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, encoding="utf-8-sig") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise UseError(f"{path} {NOT_YOURS}; check it and remove it")
        if found.st_mode & 0o077:
            raise UseError(f"{path} is accessible to other users; restrict it: chmod 600 {path}")
        return file.read()


def read_secret(path: Path) -> str:
    """The text of a file that a user names, with a secret in it. Raises: as open_secret."""
    with open_secret(path) as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise UseError(f"{path} is larger than {_MOST:,} bytes")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UseError(f"{path} cannot be read: {error}") from None


def open_secret(path: Path) -> BinaryIO:
    """A file that a user names, with a secret in it: his own for him alone, or root's, which root's
    group may read. Links are followed: what they lead to is checked.

    Raises: UseError.
    """
    try:
        file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")  # noqa: SIM115
    except OSError as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
            raise UseError(f"{path} {NOT_YOURS}")
        if found.st_mode & (0o077 if found.st_uid == os.geteuid() else 0o027):
            raise UseError(f"{path} is accessible to other users; restrict it: chmod 600 {path}")
    except BaseException:
        file.close()
        raise
    return file


def check_trusted(path: Path) -> None:
    """Raises: UseError for a file that others can write: it could send a secret somewhere else, or
    name code to run. OSError.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
        raise UseError(f"{path} {NOT_YOURS}")
    if found.st_mode & 0o022:
        raise UseError(f"{path} can be written by other users; restrict it: chmod go-w {path}")


def new_file(path: Path) -> int:
    """A file for its owner alone, open for writing, in place of what lay there. Raises: OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def replace_text(path: Path, text: str) -> None:
    """Write a file for its owner alone, which takes the place of an older one in one step.

    Raises: OSError.
    """
    with (
        replacing(path) as new,
        os.fdopen(new_file(new), "w", encoding="utf-8") as file,
    ):
        file.write(text)
