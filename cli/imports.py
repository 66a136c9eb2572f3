"""Imports that a command that only reads does not need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType

SPARK_COMMANDS = ("ingest", "simulate", "experiment", "demo")
"""Commands that start Spark, and may import what it needs."""


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("no command that only reads needs pandas", name=fullname)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide pandas from pyarrow, which otherwise imports it at its first conversion.

    pyarrow looks again when a data frame is requested. `vizpub metrics RUN` takes 0.38 s of
    processor time with this and 0.51 s without (`python -m benchmarks.ablations hidden_pandas`).
    """
    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)
