"""The result of a stage: a dataclass with a frame for each table it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Made = TypeVar("Made")


def kept_as(name: str) -> Any:
    """A field of a stage's result, stored as the table `name`; null where it is unknown. Tables
    below `staged/` are not part of the complete run.
    """
    return field(default=None, metadata={"table": name})


def is_staged(name: str) -> bool:
    """Whether a table is not part of the complete run."""
    return name.startswith("staged/")


def names_of(kind: type) -> set[str]:
    """The tables that a stage makes."""
    return {of.metadata["table"] for of in fields(kind)}


def tables_of(made: Any) -> dict[str, DataFrame]:
    """The known tables of a result, by name."""
    found = {of.metadata["table"]: getattr(made, of.name) for of in fields(made)}
    return {name: frame for name, frame in found.items() if frame is not None}


def with_tables(kind: type[Made], tables: Mapping[str, DataFrame]) -> Made:
    """The result of a stage, from its tables by name."""
    return kind(**{of.name: tables.get(of.metadata["table"]) for of in fields(kind)})  # type: ignore[arg-type]
