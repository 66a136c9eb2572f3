"""Files and folders for their owner only, checked as ssh checks its keys; files that a user names
are checked as PostgreSQL checks its keys.

Whoever can write to the folder of a service controls its passwords, its settings and the programs
that it runs. So the folder is checked on each use, and only new files are written: existing files
are never changed, and links are not followed.
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
    """Create a folder for its owner alone. Raises: UseError if it exists and is not private."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Check a folder. Raises: UseError if others could have written to it; FileNotFoundError."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise UseError(f"{folder} {NO_FOLDER}; remove it")
    if status.st_uid != os.geteuid():
        raise UseError(f"{folder} {OF_ANOTHER}; use another workspace")
    if status.st_mode & 0o077:
        raise UseError(f"{folder} is accessible to other users; restrict it: chmod 700 {folder}")
    for above in folder.absolute().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UseError(
                f"{above} is writable by everybody, so {folder} can be replaced by "
                f"others; restrict it: chmod o-w {above}"
            )
    with os.scandir(folder) as entries:
        for entry in entries:  # others may have made some before the folder was private
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_uid not in (os.geteuid(), 0):
                    raise UseError(f"{entry.path} {OF_ANOTHER}; check it and remove it")


def read_private(path: Path) -> str:
    """Read the text of a file for its owner alone.

    Raises: FileNotFoundError; UseError if it is a link, another user's, or readable by others.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UseError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, encoding="utf-8-sig") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise UseError(f"{path} {NOT_YOURS}; check it and remove it")
        if status.st_mode & 0o077:
            raise UseError(f"{path} is accessible to other users; restrict it: chmod 600 {path}")
        return file.read()


def read_secret(path: Path) -> str:
    """Read a user's file that contains a secret. Raises: as open_secret."""
    with open_secret(path) as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise UseError(f"{path} is larger than {_MOST:,} bytes")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UseError(f"{path} cannot be read: {error}") from None


def open_secret(path: Path) -> BinaryIO:
    """Open a user's file that contains a secret. It must be the user's, for the user alone, or
    root's, which root's group may read. Links are followed, and their targets checked.

    Raises: UseError.
    """
    try:
        file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")  # noqa: SIM115
    except OSError as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
            raise UseError(f"{path} {NOT_YOURS}")
        if status.st_mode & (0o077 if status.st_uid == os.geteuid() else 0o027):
            raise UseError(f"{path} is accessible to other users; restrict it: chmod 600 {path}")
    except BaseException:
        file.close()
        raise
    return file


def check_trusted(path: Path) -> None:
    """Check a file that says where to send a secret, or which code to run.

    Raises: UseError if others can write it; OSError.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
        raise UseError(f"{path} {NOT_YOURS}")
    if status.st_mode & 0o022:
        raise UseError(f"{path} can be written by other users; restrict it: chmod go-w {path}")


def new_file(path: Path) -> int:
    """Open a new file for its owner alone, in place of an existing one. Raises: OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def replace_text(path: Path, text: str) -> None:
    """Write a file for its owner alone, and replace an older one atomically; after a power cut,
    the file has the old text or the new one. Raises: OSError.
    """
    with (
        replacing(path) as new,
        os.fdopen(new_file(new), "w", encoding="utf-8") as file,
    ):
        file.write(text)
        file.flush()
        os.fsync(file.fileno())  # or a power cut may leave an empty file
