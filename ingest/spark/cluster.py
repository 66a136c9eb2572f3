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
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from vizpub.ingest.spark.shipping import pack_package
from vizpub.model.errors import ServiceError, UseError
from vizpub.runstore.stores.objects import Objects

if TYPE_CHECKING:
    from pyspark import SparkContext

_PROBE = ".probe"
_SETTLED = 1.0
"""Seconds without a new executor after which the present ones count as all."""


def is_local(master: str | None) -> bool:
    """Return True if everything runs in the driver's own process, as it does without a master."""
    return master is None or re.fullmatch(r"local(\[.*\])?", master) is not None


@contextmanager
def ship_package(context: SparkContext, scratch: Path) -> Iterator[None]:
    """Send our package to the executors of all machines, for the length of the block."""
    # The driver hands the file itself to executors that come later: it stays until the end.
    with TemporaryDirectory(prefix="packages-", dir=scratch) as folder:
        old_path = list(sys.path)
        context.addPyFile(str(pack_package(Path(folder))))
        # This process has it, and would lose what it imported from the copy with the session.
        sys.path[:] = old_path
        yield


def count_cores(context: SparkContext) -> int:
    """Return the number of concurrent tasks, once no more executors register."""
    context.parallelize([0], 1).count()
    count, since = context.defaultParallelism, time.monotonic()
    while time.monotonic() < since + _SETTLED:
        time.sleep(_SETTLED / 10)
        if (now := context.defaultParallelism) != count:
            count, since = now, time.monotonic()
    return count


def check_shared(context: SparkContext, directory: Path, tasks: int) -> None:
    """Check that every executor reads the files that this process writes there, and vice versa.

    The directory exists; `tasks` is the number of cores. Raises: UseError naming a machine for
    which this fails.
    """
    probe = directory.absolute() / f"{_PROBE}-{uuid4().hex[:12]}"
    probe.write_text(probe.name, "utf-8")
    try:
        answers = context.parallelize(range(tasks), tasks).map(
            partial(_probe_from_executor, str(probe))
        )
        faults = list(_find_faults(probe, answers.collect()))
    finally:
        for path in probe.parent.glob(f"{probe.name}*"):
            path.unlink(missing_ok=True)
    if faults:
        raise UseError(
            f"{directory} is not shared with the executors of {context.master}: {min(faults)}\n"
            "  put the workspace on storage that all machines mount under the same path"
        )


def check_store(context: SparkContext, store: Objects, tasks: int) -> None:
    """Check that every executor can write into the store of the workspace, with credentials of its
    own. `tasks` is the number of cores. Raises: UseError naming a machine that cannot.
    """
    name = f"{_PROBE}-{uuid4().hex[:12]}"
    answers = context.parallelize(range(tasks), tasks).map(partial(_probe_store, store, name))
    faults = [f"{host}: {fault}" for host, fault in answers.collect() if fault]
    store.delete([f"{name}-{task}" for task in range(tasks)])
    if faults:
        raise UseError(
            f"the executors of {context.master} cannot use {store.url}: {min(faults)}\n"
            "  give every machine credentials for it, in the environment of its worker"
        )


def _probe_store(store: Objects, name: str, task: int) -> tuple[str, str]:
    """Write an object, on an executor. Return its host, and the fault."""
    host = socket.gethostname()
    try:
        with NamedTemporaryFile() as empty:
            store.put(f"{name}-{task}", Path(empty.name))
    except (ServiceError, ImportError) as error:
        return host, str(error)
    return host, ""


def _probe_from_executor(probe: str, task: int) -> tuple[str, str]:
    """Read the probe and write a file beside it, on an executor. Return its host, and the fault."""
    host = socket.gethostname()
    try:
        Path(probe).read_text("utf-8")
        Path(f"{probe}-{task}").write_text(host, "utf-8")
    except OSError as error:
        return host, error.strerror or str(error)
    return host, ""


def _find_faults(probe: Path, answers: list[tuple[str, str]]) -> Iterator[str]:
    for task, (host, fault) in enumerate(answers):
        if fault:
            yield f"{host}: {fault}"
        elif not Path(f"{probe}-{task}").exists():
            yield f"{host}: the files it writes are not visible here"
