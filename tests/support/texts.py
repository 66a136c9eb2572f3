"""The texts of ingest/sql on tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from vizpub.analytics import steps
from vizpub.analytics.steps import Step, TaskContext, view_step
from vizpub.ingest.job import Job
from vizpub.ingest.plan import IngestPlan, end_tick
from vizpub.ingest.sources.base import ObservedTables
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.tasks.fold import NAMES, names_in
from vizpub.ingest.tasks.staged import STAGED, macro_text
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
) -> TaskContext:
    """What the texts ask for; of a run that is made from all of its input."""
    whole = {"end": end_tick(clock), "close_at": OPEN, "are_maximal": False, "part": "all"}
    return TaskContext(
        clock.first, clock.last, clock.ticks_per_interval, frozenset(known), 0, 0,
        messages=messages,
        variables={**IngestPlan(cast(Job, None)).variables, **whole, **variables},
        macros=macro_text(),
    )  # fmt: skip


def made(
    name: str, chosen: Sequence[Step], tables: Mapping[str, pa.Table], of: TaskContext
) -> pa.Table:
    """A table that steps make; tables that `tables` lacks are empty."""
    kept: list[pa.Table] = []

    def keep(rows: pa.Table, _: TaskContext) -> pa.Table:
        kept.append(rows)
        return rows

    needed = [
        *steps.select_needed(chosen, {name}),
        Step("keep", "", "kept", whole=(name,), function=keep),
    ]
    taken = {
        one: [tables[one] if one in tables else _nothing(one)] for one in steps.input_names(needed)
    }
    assert not [*steps.compute_tables(needed, taken, (), of)]
    return kept[0]


def made_tables(
    chosen: Sequence[Step], tables: Mapping[str, pa.Table], makes: Sequence[Table], of: TaskContext
) -> dict[str, pa.Table]:
    """The tables `makes`, and those of folds, in the shape in which they are stored."""
    taken = {
        one: [tables[one] if one in tables else _nothing(one)] for one in steps.input_names(chosen)
    }
    found: dict[str, list[pa.RecordBatch]] = {}
    for name, rows in steps.compute_tables(chosen, taken, makes, of):
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


def observed_by(observed: ObservedTables) -> tuple[Step, ...]:
    """The steps that make the observed tables of the folded ones."""
    texts = ((name, cast(str, getattr(observed, name))) for name in sorted(observed.known_tables))
    return *observed.functions, *(view_step(f"observed/{name}", text) for name, text in texts)


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
    """Rows of a table of a run. Columns left out at the end are unknown."""
    meant = table(name)
    records = [dict(zip(meant.names, row, strict=False)) for row in rows]
    return pa.Table.from_pylist(records, meant.arrow)
