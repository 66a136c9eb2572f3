"""What a power cut may leave of changes to files, as far as POSIX promises anything.

A `Recorder` writes down what a block does to the files below a folder, and a `Disk` replays it up
to any operation. A cut at that point leaves of a file that was written and not yet synced all,
nothing, a part, or zeros. Of the names in a directory it leaves any choice of the changes since the
last sync, in their order: the name of a synced file may be missing, or a removed name may be back.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import pytest

from vizpub.runstore import durable

_UNDER_WAY = "_temporary"
"""Where Spark keeps files that do not survive the session."""

Seen = dict[Path, tuple[int, ...] | Path | None]
"""The entries: of a file what changes with its content, of a symbolic link its target, of a
directory null.
"""


@dataclass(frozen=True)
class Operation:
    """The operation: 'make directory', 'create', 'fill', 'link' (another name of a file), 'lead' (a
    symbolic link), 'sync', 'rename' or 'remove'.
    """

    what: str
    path: Path
    """Below the folder, as `to`."""
    to: Path | None = None
    """The new name; of a link the file's other name, of a symbolic one its target."""
    content: bytes = b""


@dataclass
class Recorder:
    """Writes down what is done below a folder.

    Changes by other processes (as Spark makes them) are found when the next operation comes.
    """

    folder: Path
    operations: list[Operation] = field(default_factory=list)
    _seen: Seen = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """The operations of the block."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("sync_file", "sync_directory", "rename", "unlink", "remove_tree"):
                really = getattr(durable, name)
                patch.setattr(durable, name, self._noting(getattr(self, f"_{name}"), really))
            yield
        self._look()

    def _noting(self, note: Callable[..., None], really: Callable[..., None]) -> Any:
        def noting(*paths: Path) -> None:
            with self._lock:
                self._look()
                note(*paths)
                really(*paths)
                self._seen = self._there()

        return noting

    def _sync_file(self, path: Path) -> None:
        self._add("sync", path)

    _sync_directory = _sync_file

    def _rename(self, path: Path, to: Path) -> None:
        self._add("rename", path, to)

    def _unlink(self, path: Path) -> None:
        self._add("remove", path)

    def _remove_tree(self, path: Path) -> None:
        for below in sorted([path, *path.rglob("*")], reverse=True):
            self._add("remove", below)

    def _add(self, what: str, path: Path, to: Path | None = None, content: bytes = b"") -> None:
        below = to and to.relative_to(self.folder)
        self.operations.append(Operation(what, path.relative_to(self.folder), below, content))

    def _there(self) -> Seen:
        found: Seen = {}
        for path in sorted(self.folder.rglob("*")):
            with suppress(FileNotFoundError):  # Spark writes meanwhile
                told = path.lstat()
                seen = (told.st_ino, told.st_size, told.st_mtime_ns)
                if _UNDER_WAY not in path.parts:
                    is_link = path.is_symlink()
                    found[path] = path.readlink() if is_link else None if path.is_dir() else seen
        return found

    def _look(self) -> None:
        """Note what other processes did."""
        there = self._there()
        for path in sorted(self._seen.keys() - there.keys(), reverse=True):
            self._add("remove", path)
        known = {told: path for path, told in self._seen.items() if path in there}
        for path, told in there.items():
            if isinstance(told, Path) and self._seen.get(path) != told:
                self.operations.append(Operation("lead", path.relative_to(self.folder), told))
            elif told is None and path not in self._seen:
                self._add("make directory", path)
            elif isinstance(told, tuple) and path not in self._seen and told in known:
                self._add("link", path, known[told])
            elif isinstance(told, tuple) and self._seen.get(path) != told:
                if path not in self._seen:
                    self._add("create", path)
                self._add("fill", path, content=path.read_bytes())
                known[told] = path
        self._seen = there


@dataclass(eq=False)
class Node:
    """A file or a directory, under any name."""

    content: bytes | None = None
    """The content of a file."""
    leads_to: Path | None = None
    """The target of a link."""
    synced: bool = True
    names: dict[str, Node] = field(default_factory=dict)
    """The names in a directory, as processes see them."""
    lasting: dict[str, Node] = field(default_factory=dict)
    """The names that a cut leaves."""
    changes: list[tuple[str, str, Node]] = field(default_factory=list)
    """Changes of the names since they were last equal: (old name, new name, of what); empty = none.
    """


class Disk:
    """A folder, after some operations."""

    def __init__(self) -> None:
        self.root = Node()

    def do(self, operation: Operation) -> None:
        """Replay the operations."""
        node, name = self._at(operation.path.parent), operation.path.name
        if operation.what == "make directory":
            self._change(node, "", name, Node())
        elif operation.what == "create":
            self._change(node, "", name, Node(b"", synced=False))
        elif operation.what == "link":
            assert operation.to is not None
            self._change(node, "", name, self._at(operation.to))
        elif operation.what == "lead":
            self._change(node, "", name, Node(leads_to=operation.to))
        elif operation.what == "fill":
            node.names[name].content, node.names[name].synced = operation.content, False
        elif operation.what == "sync":
            there = self._at(operation.path)
            there.synced, there.lasting, there.changes = True, dict(there.names), []
        elif operation.what == "rename":
            assert operation.to is not None
            assert operation.to.parent == operation.path.parent
            self._change(node, name, operation.to.name, node.names[name])
        else:
            self._change(node, name, "", node.names[name])

    def leave(self, folder: Path) -> None:
        """Write the current state, as if only the process had ended."""
        self._leave(self.root, folder, lambda node: node.names, lambda node: node.content or b"")

    def cut(self, folder: Path, rng: random.Random, share: float) -> None:
        """Write the state after a power cut; of what is not durable, this share survives."""

        def names(node: Node) -> dict[str, Node]:
            found = dict(node.lasting)
            for old, new, of in node.changes:
                if rng.random() < share:
                    _apply(found, old, new, of)
            return found

        def content(node: Node) -> bytes:
            whole = node.content or b""
            if node.synced or rng.random() < share:
                return whole
            torn = whole[: rng.randrange(len(whole) + 1)]
            return rng.choice([b"", torn, bytes(len(whole))])

        self._leave(self.root, folder, names, content)

    def _at(self, path: Path) -> Node:
        node = self.root
        for name in path.parts:
            node = node.names[name]
        return node

    def _change(self, directory: Node, old: str, new: str, of: Node) -> None:
        _apply(directory.names, old, new, of)
        directory.changes.append((old, new, of))

    def _leave(
        self,
        node: Node,
        folder: Path,
        names: Callable[[Node], dict[str, Node]],
        content: Callable[[Node], bytes],
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, below in names(node).items():
            if below.leads_to is not None:
                (folder / name).symlink_to(below.leads_to)
            elif below.content is None:
                self._leave(below, folder / name, names, content)
            else:
                (folder / name).write_bytes(content(below))


def _apply(names: dict[str, Node], old: str, new: str, of: Node) -> None:
    """A change of names, as far as it is possible."""
    if old and names.get(old) is of:
        del names[old]
    if new:
        names[new] = of
