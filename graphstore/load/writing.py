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
"""What is done in a transaction."""


def write_rows(
    transaction: ManagedTransaction, run: str, step: Step, rows: Rows, batch: str
) -> None:
    """All of them, or CheckFailed where some refer to what does not exist."""
    text = cypher.statement("load", step.statement).text
    parameters: dict[str, Any] = {"run": run, "rows": rows}
    found = transaction.run(text, parameters).single(strict=True)["rows"]
    if found != len(rows):
        missing = len(rows) - found
        raise CheckFailed(
            f"{step.table}: {missing} of {len(rows)} rows refer to nodes that do not exist",
            [f"in batch {batch}"],
        )
