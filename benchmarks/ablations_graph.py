"""What two tricks of the graph store buy: `python -m benchmarks.ablations_graph`.

Each function measures the same with the trick and without.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.history import DATABASE
from benchmarks.parts import WORK
from vizpub.graphstore.load.bulk import find_empty
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.offline import last_transaction
from vizpub.graphstore.server.server import LocalServer

REPEATS = 9


def imports() -> dict[str, float]:
    """Seconds to start a process that can ask a query: with what the command line hides from
    Neo4j's driver (cli/imports.py), and without.
    """
    asking = "import vizpub.graphstore.ask.queries"
    lean = f"from vizpub.cli.imports import lean_imports\nwith lean_imports():\n    {asking}"
    return {"hidden": _best(lambda: _python(lean)), "not hidden": _best(lambda: _python(asking))}


def emptiness() -> dict[str, float]:
    """Seconds to know the last transaction of a database before it is stopped for an import: read
    from a bookmark (graphstore/load/bulk.py), and by one more stop and start of the server.
    """
    server = LocalServer(WORK / "ablations")
    server.remove()
    try:
        with connect(server.start()) as driver:
            bookmark = _best(lambda: find_empty(driver, DATABASE))
        return {"bookmark": bookmark, "stop and start": _seconds(lambda: _stop_and_start(server))}
    finally:
        server.remove()


def _python(text: str) -> None:
    subprocess.run([sys.executable, "-c", text], check=True)


def _stop_and_start(server: LocalServer) -> None:
    with server.offline_tool() as tool:
        last_transaction(tool, DATABASE)
    server.start()


def _best(do: Callable[[], object]) -> float:
    return min(_seconds(do) for _ in range(REPEATS))


def _seconds(do: Callable[[], object]) -> float:
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


if __name__ == "__main__":
    for measure in (imports, emptiness):
        for way, seconds in measure().items():
            print(f"{measure.__name__}, {way}: {1e3 * seconds:.0f} ms")
