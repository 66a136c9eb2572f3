"""The folder of a collection, and the address that its process announces.

`<workspace>/collected/<run>/` has the log (`vizpub.collector.log.log`), the batches
(`vizpub.collector.making.batch`), the tokens and the address of the intake. It is the input of the
run, like the files of an ingest, so it is beside the runs: removing the run does not remove what
peers have reported. That of a run in a store is on this machine (`CollectionPlace.place_log`).
`vizpub.runstore.collection` decides who owns the name of the run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from platformdirs import user_data_path

from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.private import check_private, make_private, read_private, replace_text
from vizpub.machine.process import Birth, birth, find_process, listens
from vizpub.model.errors import UseError
from vizpub.runstore import durable
from vizpub.runstore.collection import Collected
from vizpub.runstore.leftovers import COLLECTED
from vizpub.runstore.stores.place import name_of, store_of


class Listener(msgspec.Struct, frozen=True):
    """The process of an intake, with its address."""

    url: str
    tokens: bool
    """True if it requires one."""
    pid: int
    boot: str
    ticks: int
    """With `boot`, the process's birth (vizpub.machine.process.Birth): pids are used again."""
    certificate: str | None = None
    """The file with the certificate that it shows."""

    def listens(self) -> bool:
        """Return True if this very process listens there now, as the kernel knows."""
        process = find_process(self.pid, Birth(self.boot, self.ticks))
        port = urlsplit(self.url).port
        return bool(process and port and listens(process, port))


_DECODER = msgspec.json.Decoder(Listener)


@dataclass(frozen=True)
class CollectionPlace(Collected):
    """The folder of a collection, for its owner alone: it decides where tokens are sent."""

    def place_log(self, folder: Path | None) -> None:
        """Let the collections of a workspace in a store be in a folder on this machine; null =
        where they are, or in the user's data. In the cache, which the log must outlive, the folder
        that stands for the workspace has a link to it.

        Raises: UseError if they are elsewhere, if others could have written to the folder, or for
        a workspace that is a folder.
        """
        link = self.workspace / COLLECTED
        if not store_of(self.workspace):
            if folder:
                raise UseError(f"--log is for a workspace in a store: here, the log is in {link}")
            return
        if folder or not link.is_symlink():
            top = folder.absolute() if folder else user_data_path("vizpub") / COLLECTED
            wanted = top / self.workspace.name  # stores may share the folder
        else:
            wanted = link.readlink()
        with as_errors_of_ours(wanted):
            make_private(wanted)
            if link.is_symlink() and link.readlink() == wanted:
                return
            if link.is_dir() and any(link.iterdir()):
                raise UseError(
                    f"what is collected for {name_of(self.workspace)} is in {link.readlink()}: "
                    f"give --log {link.readlink().parent}"
                )
            link.unlink(missing_ok=True)
            link.symlink_to(wanted)

    @property
    def tokens(self) -> Path:
        """The folder with a file for each token."""
        return self.folder / "tokens"

    @property
    def stop(self) -> Path:
        """The file that exists while somebody asks for the end of the run."""
        return self.folder / "stop"

    @property
    def _endpoint(self) -> Path:
        return self.folder / "endpoint.json"

    def make(self) -> None:
        """Create the folders. Raises: UseError if others could have written to them, DiskFull."""
        with as_errors_of_ours(self.folder):
            durable.make_directory(self.folder.parent)
            make_private(self.folder)
            durable.sync_directory(self.folder.parent)  # it may be new
            for folder in (self.log, self.batches):
                durable.make_directory(folder)

    def size(self) -> int:
        """Return the bytes of the log and of the batches, as far as they are visible now."""
        size = 0
        for folder in (self.log, self.batches):
            with suppress(OSError):  # it is being moved, or too many files are open
                for file in os.scandir(folder):
                    with suppress(OSError):  # sealed or renamed meanwhile
                        size += file.stat().st_size
        return size

    def free(self) -> int:
        """Return the bytes that are free on its disk; 0 if it cannot be seen now."""
        try:
            return shutil.disk_usage(self.folder).free
        except OSError:
            return 0

    def exists(self) -> bool:
        """Return True if something was ever collected.

        Raises: UseError if others could have written to the folder.
        """
        try:
            check_private(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_held(self) -> bool:
        """Return True if a process collects. Raises: UseError if others could have changed that."""
        return self.exists() and bool(self.collector())

    def port(self) -> int:
        """Return the port at which the last intake listened; 0 if none announced it."""
        with suppress(UseError):  # an earlier version wrote it readable by all
            if listener := self.listener():
                return urlsplit(listener.url).port or 0
        return 0

    @property
    def _options(self) -> Path:
        return self.folder / "options.json"

    def keep_options(self, options: Mapping[str, Any]) -> None:
        """Store the options with which the run is made."""
        durable.write(self._options, json.dumps(options))

    def kept_options(self) -> dict[str, Any]:
        """Return the options that were stored last; empty if there are none."""
        try:
            options: dict[str, Any] = json.loads(self._options.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return options

    def announce(self, url: str, *, tokens: bool, certificate: str | None) -> None:
        """Tell other processes that this one listens at a URL."""
        born = birth(os.getpid())
        assert born
        listener = Listener(url, tokens, os.getpid(), *born, certificate)
        replace_text(self._endpoint, msgspec.json.encode(listener).decode())

    def withdraw(self) -> None:
        """Remove what an earlier process announced: its address may be another program's by now."""
        self._endpoint.unlink(missing_ok=True)

    def listener(self) -> Listener | None:
        """Return the process that listens for reports, or did; null if none announced itself.

        Raises: UseError if others could have written the file.
        """
        if not self.exists():
            return None
        try:
            return _DECODER.decode(read_private(self._endpoint))
        except (FileNotFoundError, ValueError):
            return None
