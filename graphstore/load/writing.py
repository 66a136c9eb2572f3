"""Write the rows of a step, inside a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from neo4j import ManagedTransaction

from vizpub import cypher
from vizpub.graphstore.load.batches import Rows
from vizpub.graphstore.load.steps import Step
from vizpub.model.errors import CheckFailed

Work: TypeAlias = Callable[[ManagedTransaction], object]
"""A function that runs in a transaction."""


def write_rows(
    transaction: ManagedTransaction, run: str, step: Step, rows: Rows, batch: str
) -> None:
    """Write rows. Raises: CheckFailed if some refer to nodes that do not exist."""
    text = cypher.statement("load", step.statement).text
    parameters: dict[str, Any] = {"run": run, "rows": rows}
    count = transaction.run(text, parameters).single(strict=True)["rows"]
    if count != len(rows):
        missing = len(rows) - count
        raise CheckFailed(
            f"{step.table}: {missing} of {len(rows)} rows refer to nodes that do not exist",
            [f"in batch {batch}"],
        )
