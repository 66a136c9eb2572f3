"""The copies in time partitions of what a growth creates and deletes.

In partitions that there were before, a copy comes and goes with its link or subscription, in one
transaction. A new partition gets the copies of all that is valid in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neo4j import ManagedTransaction

from vizpub import cypher
from vizpub.graphstore.load.batches import LINK, SUBSCRIBES, Rows
from vizpub.graphstore.load.partitions import Partitions
from vizpub.model.clock import OPEN

COPIES = {"links": (LINK, "link-copies"), "subscriptions": (SUBSCRIBES, "subscription-copies")}
"""Tables with copies: the type of the copies without the partition, and their statement."""


def copy_rows(name: str, rows: Iterable[list[Any]], partitions: Partitions, among: range) -> Rows:
    """Return the copies of `rows`, one for each partition of `among` in which they are valid.

    The rows are those of a statement; only links and subscriptions have copies.
    """
    if name not in COPIES or not among:
        return []
    type, _ = COPIES[name]
    copies: Rows = []
    for row in rows:
        *_, valid_from, valid_to, _ = row
        first, last = partitions.at(valid_from), partitions.at(min(valid_to, OPEN) - 1)
        numbers = range(max(first, among.start), min(last + 1, among.stop))
        copies += [[*row[:2], f"{type}_P{number}", *row[2:]] for number in numbers]
    return copies


def delete_copies(transaction: ManagedTransaction, name: str, rows: Rows) -> None:
    """Delete copies, which are rows of `copy_rows`."""
    by_type: dict[str, Rows] = {}
    for row in rows:
        by_type.setdefault(row[2], []).append(row)
    for type, copies in by_type.items():
        text = cypher.statement("grow", f"delete-{COPIES[name][1]}").text
        transaction.run(in_partition(text, type), {"rows": copies}).consume()


def in_partition(text: str, type: str) -> str:
    """Return a statement changed to the partition whose copies have this type."""
    return text.replace(f":{type.partition('_')[0]}_P0]", f":{type}]")
