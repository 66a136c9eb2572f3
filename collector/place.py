"""What a collection has on disk, and the messages of its two processes.

`<workspace>/collected/<run>/` has the log (`vizpub.collector.log.log`), the batches
(`vizpub.collector.making.batch`), the tokens and where the intake listens. It is the input of the
run, as files are of an ingest, so it stands beside the runs: whoever removes the run does not
remove what peers have told. Whose the name of the run is, `vizpub.runstore.collection` knows.
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

from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.private import check_private, make_private, read_private, replace_text
from vizpub.machine.process import Birth, birth, find_process, listens
from vizpub.model.errors import UseError
from vizpub.runstore import durable
from vizpub.runstore.collection import Collected


class Listener(msgspec.Struct, frozen=True):
    """The process of an intake, and where it listens."""

    url: str
    tokens: bool
    """Whether it asks for one."""
    pid: int
    boot: str
    ticks: int
    """With `boot`, the process's birth (vizpub.machine.process.Birth): pids are used again."""
    certificate: str | None = None
    """The file with the certificate that it shows."""

    def listens(self) -> bool:
        """Whether that very process listens there now, as the kernel knows."""
        process = find_process(self.pid, Birth(self.boot, self.ticks))
        port = urlsplit(self.url).port
        return bool(process and port and listens(process, port))


@dataclass(frozen=True)
class Place(Collected):
    """The folder of a collection, for its owner alone: it says where tokens are sent."""

    @property
    def tokens(self) -> Path:
        """A file for each token."""
        return self.folder / "tokens"

    @property
    def stop(self) -> Path:
        """Exists while somebody asks for the end of the run."""
        return self.folder / "stop"

    @property
    def _endpoint(self) -> Path:
        return self.folder / "endpoint.json"

    def make(self) -> None:
        """The folders. Raises: UseError where others could have put something there, DiskFull."""
        with as_errors_of_ours(self.folder):
            durable.make_directory(self.folder.parent)
            make_private(self.folder)
            durable.sync_directory(self.folder.parent)  # it may be new
            for folder in (self.log, self.batches):
                durable.make_directory(folder)

    def size(self) -> int:
        """Bytes of the log and of the batches, as far as they can be seen now."""
        found = 0
        for folder in (self.log, self.batches):
            with suppress(OSError):  # moved for a moment, or no file is left to open it with
                for file in os.scandir(folder):
                    with suppress(OSError):  # sealed or renamed meanwhile
                        found += file.stat().st_size
        return found

    def free(self) -> int:
        """Bytes that are free on its disk; 0 where it cannot be seen now."""
        try:
            return shutil.disk_usage(self.folder).free
        except OSError:
            return 0

    def is_there(self) -> bool:
        """Whether something was ever collected. Raises: UseError where others could have put
        something there.
        """
        try:
            check_private(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_held(self) -> bool:
        """Whether some process collects. Raises: UseError where this user may not know."""
        return self.is_there() and bool(self.collector())

    def port(self) -> int:
        """Where the last intake listened; 0 where none told."""
        with suppress(UseError):  # an earlier version wrote it for all
            if listener := self.listener():
                return urlsplit(listener.url).port or 0
        return 0

    @property
    def _options(self) -> Path:
        return self.folder / "options.json"

    def keep(self, options: Mapping[str, Any]) -> None:
        """With which options the run is made."""
        durable.write(self._options, json.dumps(options))

    def kept(self) -> dict[str, Any]:
        """Those that were kept last; empty where none were."""
        return _object(self._options)

    def tell(self, url: str, *, tokens: bool, certificate: str | None) -> None:
        """Say that this process listens there."""
        born = birth(os.getpid())
        assert born
        found = Listener(url, tokens, os.getpid(), *born, certificate)
        replace_text(self._endpoint, msgspec.json.encode(found).decode())

    def tell_nothing(self) -> None:
        """It listens nowhere yet. What an earlier one told is another process's address by now."""
        self._endpoint.unlink(missing_ok=True)

    def listener(self) -> Listener | None:
        """Who listens for reports, or did; null where none told.

        Raises: UseError where others could have told it.
        """
        if not self.is_there():
            return None
        try:
            return msgspec.json.decode(read_private(self._endpoint), type=Listener)
        except (FileNotFoundError, ValueError):
            return None


def _object(path: Path) -> dict[str, Any]:
    """Of JSON in a file; empty where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
