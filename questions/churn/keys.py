"""What distinguishes rows of questions about churn: nothing more, topics, or groups of peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vizpub.questions.attributes.groups import VALUED, check_attribute, holds_at
from vizpub.questions.names import NamedRun, Where, part_of

BY_TOPIC = "topic"
OF_PART = "($topic IS NULL OR topic = $topic) AND ($peer IS NULL OR peer = $peer)"
"""The condition of rows of a topic and a peer; null = of all."""


@dataclass(frozen=True)
class Key:
    """A column beside those that a row always has; by an attribute, the peer's value then."""

    by: str | None

    @classmethod
    def of(cls, run: NamedRun, by: str | None) -> Key:
        """Raises: UnknownName, UseError for a run without attributes."""
        if by not in (None, BY_TOPIC):
            check_attribute(run, by)
        return cls(by)

    @property
    def is_attribute(self) -> bool:
        """True if rows are by the value of an attribute."""
        return self.by not in (None, BY_TOPIC)

    @property
    def column(self) -> str:
        """The column with a comma before it, or nothing."""
        return {None: "", BY_TOPIC: ", topic"}.get(self.by, ', "group"')

    @property
    def valued(self) -> str:
        """The periods of the attribute's values, as a table `valued` in SQL."""
        if self.is_attribute:
            return VALUED.format(attributes='stored."attributes"')
        return "valued AS (SELECT 1)"

    def add_to(self, rows: str, tick: str) -> str:
        """Rows with a `peer`, as a table in SQL that has the column; groups are those of a tick."""
        if not self.is_attribute:
            return rows
        return (
            f'(SELECT {rows}.*, v.value AS "group" FROM {rows} '
            f"LEFT JOIN valued v ON v.peer = {rows}.peer AND {holds_at(tick)})"
        )

    @property
    def values(self) -> dict[str, object]:
        """The value of $key."""
        return {"key": self.by} if self.is_attribute else {}


def links_of(run: NamedRun, where: Where, layers: Sequence[str] | None) -> dict[str, object]:
    """The values of $peer, $topic and $layers. Raises: UnknownName."""
    return {**part_of(run, where), "layers": list(run.counted_layers(layers) or ()) or None}
