"""The process that Spark's Python workers on this machine are forked from, with all imported.

Spark's own daemon imports nothing before it forks, so every worker spends seconds on the same
imports. The reason: a thread that runs while a process forks may hold a lock for which the child
waits for ever. So the libraries imported here are configured to start no threads, and none of
their functions are called. Executors on other machines cannot use this
daemon: theirs starts before they get our packages.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module

_NO_THREADS = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables that keep the libraries below from starting threads as they are loaded."""

IMPORTED = (
    "pyspark.worker",
    "pyarrow.parquet",
    "msgspec",
    "vizpub.analytics.blocks",
    "vizpub.analytics.messages.message_fold",
    "vizpub.analytics.snapshots",
    "vizpub.ingest.inputs.inventory",
    "vizpub.ingest.sources",
)


def preload() -> None:
    """Import the modules that workers need, without a thread. Prints go to standard error."""
    os.environ.update(_NO_THREADS)
    with redirect_stdout(sys.stderr):  # Spark reads the port of the daemon from standard output
        from vizpub.analytics.structure import cache_kernels  # and with it numpy and Arrow

        cache_kernels()
        for name in IMPORTED:
            with suppress(ImportError):  # a worker that needs it will say what is wrong
                import_module(name)
    gc.collect()
    gc.freeze()  # or every worker's first collection would copy all of its pages


if __name__ == "__main__":
    preload()
    from pyspark.daemon import manager

    manager()
