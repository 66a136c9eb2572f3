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
    """Hide pandas from pyarrow, which else imports it at its first conversion (0.2 s).

    pyarrow looks again when a data frame is really asked for.
    """
    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)
