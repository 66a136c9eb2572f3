"""A stage of an ingest: a function from tables to tables, done completely or not at all.

What it makes is a dataclass with a frame for each table, which says where the run keeps that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ingest.job import Job

P = ParamSpec("P")
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


@dataclass(frozen=True)
class Stage(Generic[P, Made]):
    """A step that is done wholly or not at all."""

    name: str
    work: Callable[Concatenate[Job, P], Made]
    makes: type[Made]
    format: int = 1
    """Changes with what it writes, or what later stages and appends make of that: what another
    format has written is made anew, and not appended to."""
