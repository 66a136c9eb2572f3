"""What distinguishes rows of questions about churn: nothing more, topics, or groups of peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vizpub.questions.attributes.groups import VALUED, holds_at, key_and_column
from vizpub.questions.names import NamedRun, Where, part_of
from vizpub.questions.sql import rows_of

OF_PART = "($topic IS NULL OR topic = $topic) AND ($peer IS NULL OR peer = $peer)"
"""The condition of rows of a topic and a peer; null = of all."""
_COLUMNS: dict[str | None, str] = {None: "", "topic": ", topic"}


@dataclass(frozen=True)
class Key:
    """A column beside those that a row always has; by an attribute, the peer's value then."""

    name: str | None
    """Of the attribute; null if rows are not by one."""
    column: str
    """The column with a comma before it, or nothing."""
    valued: str
    """The periods of the attribute's values, as a table `valued` in SQL."""

    @classmethod
    def of(cls, run: NamedRun, by: str | None) -> Key:
        """Raises: UnknownName, UseError for a run without attributes."""
        name, column = key_and_column(run, by, _COLUMNS, ', "group"')
        return cls(name, column, VALUED.format(attributes=rows_of(run.stored, "attributes")))

    def add_to(self, rows: str, tick: str) -> str:
        """Rows with a `peer`, as a table in SQL that has the column; groups are those of a tick."""
        if self.name is None:
            return rows
        return (
            f'(SELECT {rows}.*, v.value AS "group" FROM {rows} '
            f"LEFT JOIN valued v ON v.peer = {rows}.peer AND {holds_at(tick)})"
        )


def links_of(run: NamedRun, where: Where, layers: Sequence[str] | None) -> dict[str, object]:
    """The values of $peer, $topic and $layers. Raises: UnknownName."""
    return {**part_of(run, where), "layers": run.counted_layers(layers)}
