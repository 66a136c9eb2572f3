"""The runs that a page looks at, kept open between its questions."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from vizpub.explorer.history import History, clip_run
from vizpub.model.errors import RunChanged
from vizpub.questions.names import NamedRun
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import StoredRun, directory_of, open_run
from vizpub.runstore.stores.place import store_of

Window = tuple[int, int] | None
"""First and last interval; null = all."""
_MOST = 3
"""Runs whose arrays are in memory at once."""


class OpenRuns:
    """The histories of the runs of a workspace, a few at a time."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._histories: OrderedDict[tuple[str, str, Window], History] = OrderedDict()
        self._stored: dict[str, tuple[tuple[int, int, int], StoredRun]] = {}
        self._lock = Lock()

    def history(self, name: str, identity: str | None = None, window: Window = None) -> History:
        """The history of a run, or of a window of it, as it is now; with an identity, as it was
        when the page asked first.

        Raises: UnknownName, StoreBroken, RunNotComplete, OutOfRange; RunChanged where it is another
        by now.
        """
        stored = self.stored(name)
        key = (name, stored.facts.tables, window)
        if identity is not None and identity != stored.facts.tables:
            raise RunChanged(name)
        with self._lock:
            history = self._histories.get(key)
            others = [*reversed(self._histories.items())]
        if history is None:  # others need not wait: its store may be slow
            history = History(clip_run(NamedRun(stored), window))
            for (other, _, span), older in others:
                if (other, span) == (name, window):
                    history.grow_from(older)
                    break
        with self._lock:
            history = self._histories.pop(key, history)
            self._histories[key] = history
            while len(self._histories) > _MOST:
                self._histories.popitem(last=False)
        return history

    def older(self, name: str, identity: str, window: Window = None) -> History | None:
        """The history of a run as it was, if it is still in memory."""
        with self._lock:
            return self._histories.get((name, identity, window))

    def stored(self, name: str) -> StoredRun:
        """The run as it is now; its `run.json` is read again only when it is another file.

        Raises: UnknownName, StoreBroken, RunNotComplete.
        """
        file = directory_of(self.workspace, name) / FILE
        if store_of(self.workspace):
            return open_run(self.workspace, name)
        try:
            status = file.stat()
        except OSError:
            return open_run(self.workspace, name)
        identity = (status.st_ino, status.st_mtime_ns, status.st_size)
        cached = self._stored.get(name)
        if cached is None or cached[0] != identity:
            cached = self._stored[name] = (identity, open_run(self.workspace, name))
        return cached[1]
