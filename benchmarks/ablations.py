"""What each trick buys: `python -m benchmarks.ablations [NAME...]`.

A trick is code that is harder to read than the usual code, for the sake of speed. Each function of
`ABLATIONS` takes the processor time of something that users wait for, with one trick or without it.
Both are measured in turns, in fresh processes, and the least time of each counts. A trick that buys
less than 5 % and less than 50 ms is not worth its code.
"""

from __future__ import annotations

import argparse
import atexit
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp

from benchmarks.watched import ROOT
from vizpub.ingest.spark.session import LOCATORS
from vizpub.ingest.spark.shipping import pack_package

_COMMAND = "from vizpub.cli.__main__ import main; main()"
_HIDE_NOTHING = (
    "import contextlib; from vizpub.cli import imports; "
    "imports.lean_imports = contextlib.nullcontext"
)
_COLLECT_ALWAYS = "import gc; gc.disable = gc.freeze = lambda: None"


def kept_code(with_it: bool) -> float:
    """Find compiled code by the content of our packages (machine/compiled.py): import the kernels,
    as a Python worker does in the second Spark session on a cluster."""
    with TemporaryDirectory() as folder:
        for session in (Path(folder, "first"), Path(folder, "second")):
            session.mkdir()
            taken = _processor_s(
                "import sys; sys.path.insert(0, sys.argv[1]); import vizpub.analytics.blocks",
                str(pack_package(session)),
                NUMBA_CACHE_LOCATOR_CLASSES=",".join(LOCATORS if with_it else LOCATORS[1:]),
                HOME=folder,
                VIZPUB_CACHE=folder,
            )
    return taken


def hidden_pandas(with_it: bool) -> float:
    """Hide pandas from pyarrow (cli/imports.py): `vizpub metrics RUN`."""
    return _metrics("" if with_it else _HIDE_NOTHING)


def no_collection(with_it: bool) -> float:
    """Collect no garbage while modules are imported (cli/__main__.py): `vizpub metrics RUN`."""
    return _metrics("" if with_it else _COLLECT_ALWAYS)


ABLATIONS: dict[str, Callable[[bool], float]] = {
    of.__name__: of for of in (kept_code, hidden_pandas, no_collection)
}


@cache
def _scratch() -> Path:
    folder = mkdtemp(prefix="vizpub-ablations-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _workspace() -> str:
    """A workspace with one small run, `demo`."""
    folder = str(_scratch() / "runs")
    source = str(ROOT / "examples" / "gossipsub")
    _output(_COMMAND, "--workspace", folder, "ingest", "--no-load", "--run", "demo", source)
    return folder


def _metrics(before: str) -> float:
    return _processor_s(f"{before}\n{_COMMAND}", "--workspace", _workspace(), "metrics", "demo")


def _processor_s(code: str, *arguments: str, **environment: str) -> float:
    """Processor seconds of a fresh Python that runs the code, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _output(code, *arguments, **environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _output(code: str, *arguments: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ABLATIONS))
    parser.add_argument("--turns", type=int, default=5, help="of each way (default: 5)")
    asked = parser.parse_args()
    print("| trick | with, s | without, s | without / with |\n| --- | --- | --- | --- |")
    for name in asked.names or ABLATIONS:
        turns = [(ABLATIONS[name](True), ABLATIONS[name](False)) for _ in range(asked.turns)]
        kept, gone = (min(times) for times in zip(*turns, strict=True))
        print(f"| {name} | {kept:.3f} | {gone:.3f} | {gone / kept:.2f} |", flush=True)


if __name__ == "__main__":
    main()
