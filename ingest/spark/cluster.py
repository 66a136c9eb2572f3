"""Executors on other machines: wait for them, send our package, check the workspace."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from vizpub.ingest.spark.shipping import pack
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from pyspark import SparkContext

_PROBE = ".probe"
_SETTLED = 1.0
"""Seconds without another executor after which those that are there are taken for all."""


def is_local(master: str | None) -> bool:
    """Everything runs in the driver's own process, as it does where no master is named."""
    return master is None or re.fullmatch(r"local(\[.*\])?", master) is not None


@contextmanager
def shipped(context: SparkContext, scratch: Path) -> Iterator[None]:
    """For the length of the block, executors of any machine find our package."""
    # The driver hands the file itself to executors that come later: it stays until the end.
    with TemporaryDirectory(prefix="packages-", dir=scratch) as folder:
        before = list(sys.path)
        context.addPyFile(str(pack(Path(folder))))
        # This process has it, and would lose what it imported from the copy with the session.
        sys.path[:] = before
        yield


def cores(context: SparkContext) -> int:
    """The number of concurrent tasks. Waits until no more executors register."""
    context.parallelize([0], 1).count()
    found, since = context.defaultParallelism, time.monotonic()
    while time.monotonic() < since + _SETTLED:
        time.sleep(_SETTLED / 10)
        if (now := context.defaultParallelism) != found:
            found, since = now, time.monotonic()
    return found


def check_shared(context: SparkContext, directory: Path, tasks: int) -> None:
    """See that every executor reads what this process writes there, and the other way round.

    The directory exists; so many `tasks` are one for every core. Raises: UseError naming a
    machine for which it is not so.
    """
    probe = directory.absolute() / f"{_PROBE}-{uuid4().hex[:12]}"
    probe.write_text(probe.name, "utf-8")
    try:
        asked = context.parallelize(range(tasks), tasks).map(partial(_answer, str(probe)))
        faults = list(_faults(probe, asked.collect()))
    finally:
        for path in probe.parent.glob(f"{probe.name}*"):
            path.unlink(missing_ok=True)
    if faults:
        raise UseError(
            f"{directory} is not shared with the executors of {context.master}: {min(faults)}\n"
            "  put the workspace on storage that all machines mount under the same path"
        )


def _answer(probe: str, task: int) -> tuple[str, str]:
    """On an executor, which writes a file beside the probe: its host, and what is wrong."""
    host = socket.gethostname()
    try:
        Path(probe).read_text("utf-8")
        Path(f"{probe}-{task}").write_text(host, "utf-8")
    except OSError as error:
        return host, error.strerror or str(error)
    return host, ""


def _faults(probe: Path, answers: list[tuple[str, str]]) -> Iterator[str]:
    for task, (host, fault) in enumerate(answers):
        if fault:
            yield f"{host}: {fault}"
        elif not Path(f"{probe}-{task}").exists():
            yield f"{host}: the files it writes are not visible here"
