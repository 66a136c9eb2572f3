"""What a collection has on disk, and the messages of its two processes.

`<workspace>/collected/<run>/` has the log (`collector.log`), the batches (`collector.batch`), the
tokens and where the intake listens. It is the input of the run, as files are of an ingest, so it
stands beside the runs: whoever removes the run does not remove what peers have told. Whose the name
of the run is, `runstore.collected` knows.
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

from model.files import as_errors_of_ours, replacing
from runstore import durable
from runstore.collected import Collected


@dataclass(frozen=True)
class Place(Collected):
    """The folder of a collection, for its collector."""

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
        """The folders. Raises: UseError, DiskFull."""
        with as_errors_of_ours(self.folder):
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

    def is_held(self) -> bool:
        """Whether some process collects. Raises: UseError where this user may not know."""
        return bool(self.collector())

    @property
    def _options(self) -> Path:
        return self.folder / "options.json"

    def keep(self, options: Mapping[str, Any]) -> None:
        """With which options the run is made."""
        durable.write(self._options, json.dumps(options))

    def kept(self) -> dict[str, Any]:
        """Those that were kept last; empty where none were."""
        return _object(self._options)

    def tell(self, **endpoint: Any) -> None:
        """Say where the intake listens."""
        with replacing(self._endpoint) as new:
            new.write_text(json.dumps(endpoint), encoding="utf-8")

    def tell_nothing(self) -> None:
        """It listens nowhere yet. What an earlier one told is another process's address by now."""
        self._endpoint.unlink(missing_ok=True)

    def endpoint(self) -> dict[str, Any]:
        """Where the intake listens; empty where none ever did."""
        return _object(self._endpoint)


def _object(path: Path) -> dict[str, Any]:
    """Of JSON in a file; empty where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
