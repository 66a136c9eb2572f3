"""The texts of ingest/sql on tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from vizpub.analytics import steps
from vizpub.analytics.steps import Given, Step, view
from vizpub.ingest.job import Job
from vizpub.ingest.plan import Plan, end_of
from vizpub.ingest.sources.base import Observed
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.tasks.fold import NAMES, names_in
from vizpub.ingest.tasks.staged import STAGED, macros
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.model.errors import UnknownName
from vizpub.model.tables import table

CLOCK = Clock(1, None, 0, 9)


def given(
    clock: Clock = CLOCK,
    known: Iterable[str] = (),
    messages: tuple[int, int] | None = None,
    **variables: int | str,
) -> Given:
    """What the texts ask for; of a run that is made from all of its input."""
    whole = {"end": end_of(clock), "close_at": OPEN, "are_maximal": False, "part": "all"}
    return Given(
        clock.first, clock.last, clock.ticks_per_interval, frozenset(known), 0, 0,
        messages=messages,
        variables={**Plan(cast(Job, None)).variables, **whole, **variables},
        macros=macros(),
    )  # fmt: skip


def made(name: str, chosen: Sequence[Step], tables: Mapping[str, pa.Table], of: Given) -> pa.Table:
    """A table that steps make; tables that `tables` lacks are empty."""
    kept: list[pa.Table] = []

    def keep(rows: pa.Table, _: Given) -> pa.Table:
        kept.append(rows)
        return rows

    needed = [*steps.needed(chosen, {name}), Step("keep", "", "kept", whole=(name,), function=keep)]
    taken = {one: [tables[one] if one in tables else _nothing(one)] for one in steps.inputs(needed)}
    assert not [*steps.compute(needed, taken, (), of)]
    return kept[0]


def made_tables(
    chosen: Sequence[Step], tables: Mapping[str, pa.Table], makes: Sequence[Table], of: Given
) -> dict[str, pa.Table]:
    """The tables `makes`, and those of folds, in the shape in which they are stored."""
    taken = {one: [tables[one] if one in tables else _nothing(one)] for one in steps.inputs(chosen)}
    found: dict[str, list[pa.RecordBatch]] = {}
    for name, rows in steps.compute(chosen, taken, makes, of):
        found.setdefault(name, []).append(rows)
    return {name: pa.Table.from_batches(rows) for name, rows in found.items()}


def _nothing(name: str) -> pa.Table:
    of, _, last = name.rpartition("/")
    if of in ("observed", "folded"):
        return OBSERVED[last].empty_table()
    if of == "staged":
        return STAGED[name].arrow.empty_table()
    try:
        return table(last if of == "before" else name).arrow.empty_table()
    except UnknownName:
        raise KeyError(name) from None


def observed_by(observed: Observed) -> tuple[Step, ...]:
    """The steps that make the observed tables of the folded ones."""
    texts = ((name, cast(str, getattr(observed, name))) for name in sorted(observed.known))
    return *observed.functions, *(view(f"observed/{name}", text) for name, text in texts)


def names_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The observed names in observed tables, by name."""
    parts = [
        part
        for name, rows in tables.items()
        for batch in rows.to_batches()
        for part in names_in(name, batch)
    ]
    return pa.Table.from_batches(parts, NAMES)


def rows_of(name: str, *rows: Sequence[Any]) -> pa.Table:
    """Rows of a table of a run."""
    meant = table(name)
    records = [dict(zip(meant.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(records, meant.arrow)
