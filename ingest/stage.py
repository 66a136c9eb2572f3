"""What a stage of an ingest makes: a dataclass with a frame for each table of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Made = TypeVar("Made")


def kept_as(name: str) -> Any:
    """A field of what a stage makes: the table that the run keeps under that name; null where it
    is unknown. What is `staged` is not of the finished run.
    """
    return field(default=None, metadata={"table": name})


def is_staged(name: str) -> bool:
    """Whether a table is not of the finished run."""
    return name.startswith("staged/")


def names_of(kind: type) -> set[str]:
    """The tables that a stage makes."""
    return {of.metadata["table"] for of in fields(kind)}


def tables_of(made: Any) -> dict[str, DataFrame]:
    """The tables that a stage made and are known, by name."""
    found = {of.metadata["table"]: getattr(made, of.name) for of in fields(made)}
    return {name: frame for name, frame in found.items() if frame is not None}


def with_tables(kind: type[Made], tables: Mapping[str, DataFrame]) -> Made:
    """What a stage makes, of tables by name."""
    return kind(**{of.name: tables.get(of.metadata["table"]) for of in fields(kind)})  # type: ignore[arg-type]
