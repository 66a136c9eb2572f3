"""One process at a time writes a run or removes it, in a directory of the run's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.locks import SWEPT_S, LockHeld, holding, lock_of
from vizpub.model.errors import RunLocked, UseError
from vizpub.runstore import durable
from vizpub.runstore.views import VIEWS, is_own_link

NO_DIRECTORY = "is a link or a file"


@contextmanager
def lock_run(directory: Path) -> Iterator[None]:
    """No other process writes the run, for the length of the block. Raises: RunLocked, UseError."""
    with ExitStack() as stack:
        with as_errors_of_ours(directory):
            durable.make_directory(directory.parent)
            try:
                stack.enter_context(holding(lock_of(directory), SWEPT_S))
            except LockHeld as error:
                raise RunLocked(directory.name, error.owner) from error
        _check_own(directory)
        yield


def _check_own(directory: Path) -> None:
    """Raises: UseError where the run or something in it is a link: writing and removing there would
    change other files.
    """
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise UseError(
            f"{directory} {NO_DIRECTORY}, and a run needs a directory of its own: move "
            "the directory here, or remove the link or file"
        )
    for path in map(Path, _links(str(directory))):
        if not (path.parent == directory and is_own_link(path)):
            raise UseError(
                f"{path} is a symbolic link, and a run needs a directory of its own: replace "
                "the link by its target, or remove it"
            )


def _links(directory: str) -> Iterator[str]:
    """The symbolic links in a directory and its folders."""
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir() and entry.name != VIEWS:  # views have many names, and no files
                yield from _links(entry.path)
