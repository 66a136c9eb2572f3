"""Steps of the pipeline that are texts: tables in, a table out, computed by DuckDB inside a task.

A text is one statement in the folder `sql` of a package, and says at its top what it is for:

    -- The metrics of peers that are present at an interval's end, or have events in it.
    -- Further lines of the purpose.
    --
    -- by interval: structure, traffic    (a task reads the rows of its intervals)
    -- by message: publications           (those of the messages that they name)
    -- whole: peers
    -- makes: metrics/peers

What SQL cannot say is a function from an Arrow table to an Arrow table, or a fold from rows in
order to rows of several tables.

What a step makes is a table of a run, or else only for the steps after it: computed once if several
take it. A column of the table that the text does not give is unknown. A text may ask what is known,
`known('receptions')`, and for `getvariable(…)`: `first` and `last`, the intervals of the task;
`ticks` of an interval; `layers`; and the `variables` of the task. The table `metrics/peers` is
`metrics.peers` in a text.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import count
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics import step_profile
from vizpub.analytics.options import Measures
from vizpub.analytics.structure import measure_versions
from vizpub.model.columns import Table

if TYPE_CHECKING:
    import duckdb

_HEADER = re.compile(r"-- (?P<key>by interval|by message|whole|makes): (?P<names>.+)")
_TAKES = re.compile(r"\b(folded|whole|observed|before|staged)\.(\w+)")
_BATCH_ROWS = 1 << 17
MEMORY = "1GB"
"""What the DuckDB of a process takes before it uses the disk."""
_SETTINGS: dict[str, Any] = {"threads": 1, "async_threads": 0, "memory_limit": MEMORY}
_NUMBERS = count()
_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}


@dataclass(frozen=True)
class TaskContext:
    """Constants of a task of steps."""

    first: int
    last: int
    """Its intervals."""
    ticks: int
    """Ticks of an interval."""
    known: frozenset[str]
    """The tables and facts that are known."""
    since: int
    """The first interval whose structure is measured; that of earlier ones is settled."""
    begins: int
    """The first interval of the run."""
    measures: Measures = field(default_factory=Measures)
    layers: tuple[str, ...] | None = None
    """Layers whose links count; null = all."""
    messages: tuple[int, int] | None = None
    """The first message of the task, and the one after the last; null = those of its intervals."""
    variables: Mapping[str, int | str] = field(default_factory=dict)
    """Further variables of texts."""
    macros: str = ""
    """Statements that declare what the texts use."""


@dataclass(frozen=True)
class Step:
    """A text with its header taken apart; or a function, or a fold, of the only table it takes."""

    name: str
    """The file in which it is, such as `ingest/sql/links.sql`."""
    text: str
    makes: str
    by_interval: tuple[str, ...] = ()
    by_message: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    function: Callable[[pa.Table, TaskContext], pa.Table] | None = None
    fold: StepFold | None = None
    """Makes the tables of its own; `makes` is empty."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its tables."""
        return *self.by_interval, *self.by_message, *self.whole


class StepFold(Protocol):
    """Turns rows in order into rows of tables."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table, rows) pairs."""

    def summary(self) -> str | None:
        """The summary over all rows, after the last one; null = none."""


@cache
def load_step(name: str, package: str = __package__) -> Step:
    """The step of that name. Raises: FileNotFoundError."""
    text = (files(package) / "sql" / f"{name}.sql").read_text("utf-8")
    header = {
        match["key"]: tuple(match["names"].split(", "))
        for line in text.splitlines()
        if (match := _HEADER.fullmatch(line))
    }
    by_interval, by_message, whole = (
        header.get(key, ()) for key in ("by interval", "by message", "whole")
    )
    file = f"{package.removeprefix('vizpub.').replace('.', '/')}/sql/{name}.sql"
    return Step(file, text, header["makes"][0], by_interval, by_message, whole)


def view_step(makes: str, text: str) -> Step:
    """A step without a header; its text names the tables that it takes as `schema.table`."""
    names = dict.fromkeys("/".join(table) for table in _TAKES.findall(text))
    return Step(makes, text, makes, whole=tuple(names))


def _measure(versions: pa.Table, context: TaskContext) -> pa.Table:
    window = range(max(context.since, context.first), context.last + 1)
    return measure_versions(versions, window, context.measures, context.begins)


KERNELS = (
    load_step("versions"),
    Step(
        "analytics/snapshots.py",
        "-- Measure every interval",
        "measured",
        whole=("versions",),
        function=_measure,
    ),
)
"""The structure of intervals, by the engine `kernels`; others make the table `measured`."""
METRICS = tuple(map(load_step, ("structure", "hits", "peers", "topics", "overlay")))
"""The metrics of peers, topics and the overlay, from `measured` and others."""


def input_names(steps: Sequence[Step]) -> set[str]:
    """The tables that the steps take, without those that they make."""
    return {name for one in steps for name in one.takes} - {one.makes for one in steps}


def select_needed(steps: Sequence[Step], makes: Collection[str]) -> tuple[Step, ...]:
    """Select the steps that tables depend on, and folds; in their order."""
    needed_names, selected = {*makes}, list[Step]()
    for step in reversed(steps):
        if step.fold or step.makes in needed_names:
            selected.append(step)
            needed_names.update(step.takes)
    return tuple(reversed(selected))


def compute_tables(
    steps: Sequence[Step],
    tables: Mapping[str, Sequence[Any]],
    makes: Collection[Table],
    context: TaskContext,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Do the steps, one after the other. Yields (table, rows) for each table of `makes`, its rows
    in the order of its key, and what folds make.

    `tables` has Arrow tables or datasets of the columns of each of the `inputs`; all rows together
    are the table.
    """
    definitions = {table.name: table for table in makes}
    takers = Counter(name for step in steps for name in step.takes)
    queries: dict[str, Step] = {}
    """Those that are not computed on their own, as only one step takes what they make."""
    with open_database() as database:
        _declare_context(database, context, {*tables, *(step.makes for step in steps)})
        _register_tables(database, steps, tables, context)
        for step in steps:
            if step.function:
                taken_rows = _taken_rows(database, step, queries)
                with step_profile.at_work(step.name):
                    result = step.function(taken_rows.read_all(), context)
                step_profile.count_table(step.name, (), step.makes, len(result))
                database.register("/" + step.makes, result)
                database.execute(f'CREATE VIEW {_sql_name(step.makes)} AS FROM "/{step.makes}"')
            elif step.fold:
                made_rows = step.fold(_taken_rows(database, step, queries))
                yield from step_profile.follow(step.name, made_rows)
            elif step.makes in definitions or takers[step.makes] > 1:
                create_table(database, step)
                if step.makes in definitions:
                    rows = _table_rows(database, definitions[step.makes])
                    for batch in step_profile.follow(step.name, rows, makes=False):
                        yield step.makes, batch
            else:
                queries[step.makes] = step
                step_profile.give_query(step.makes, step.takes)
                database.execute(f"CREATE VIEW {_sql_name(step.makes)} AS {step.text}")


def create_table(database: duckdb.DuckDBPyConnection, step: Step, kind: str = "TABLE") -> None:
    """Compute the table that a text makes."""
    with step_profile.at_work(step.name):
        created = database.execute(f"CREATE {kind} {_sql_name(step.makes)} AS {step.text}")
        [(rows,)] = created.fetchall()
    step_profile.count_table(step.name, step.takes, step.makes, rows)


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database for a task, beside others in the memory of this process."""
    name = f"task_{next(_NUMBERS)}"
    _process_database().execute(f"ATTACH ':memory:' AS {name}")
    try:
        with _process_database().cursor() as database:
            database.execute(f"USE {name}")
            yield database
    finally:
        _process_database().execute(f"DETACH {name}")


@cache
def _process_database() -> duckdb.DuckDBPyConnection:
    """Return the database of this process: one thread, bounded memory, a folder of its own to
    spill. A worker runs many tasks, and each of them would need 15 ms to open and close its own.
    """
    import duckdb
    import pyarrow.dataset  # noqa: F401  # DuckDB takes datasets only where this was imported

    folder = os.environ.get("SPARK_LOCAL_DIRS", gettempdir()).partition(",")[0]
    scratch = f"{folder}/vizpub-{uuid4().hex}"  # made when it is needed; Spark removes it
    return duckdb.connect(config=_SETTINGS | {"temp_directory": scratch})


def _declare_context(
    database: duckdb.DuckDBPyConnection, context: TaskContext, tables: Collection[str]
) -> None:
    names = ", ".join(f"'{name}'" for name in sorted(context.known))
    database.execute(f"CREATE MACRO known(name) AS list_contains([{names}]::VARCHAR[], name)")
    numbers = {"first": context.first, "last": context.last, "ticks": context.ticks}
    for name, value in {**numbers, **context.variables}.items():
        database.execute(f'SET VARIABLE "{name}" = ?', [value])
    database.execute("SET VARIABLE layers = ?::VARCHAR[]", [context.layers and [*context.layers]])
    if context.macros:
        database.execute(context.macros)
    for schema in sorted({name.rpartition("/")[0] for name in tables} - {""}):
        database.execute(f"CREATE SCHEMA {schema}")


def _register_tables(
    database: duckdb.DuckDBPyConnection,
    steps: Sequence[Step],
    tables: Mapping[str, Sequence[Any]],
    context: TaskContext,
) -> None:
    """Hand over the rows that the steps take. The messages are those of the task; else those
    published in its intervals, or named by other rows of them.
    """
    by_interval = {name for step in steps for name in step.by_interval} & tables.keys()
    by_message = {name for step in steps for name in step.by_message} & tables.keys()
    in_intervals = _between("interval", context.first, context.last)
    for name in tables.keys() - by_message:
        _create_view(database, name, tables[name], in_intervals if name in by_interval else None)
    if by_message:
        referring = [
            rows.filter(in_intervals)
            for name in by_interval | by_message
            for rows in tables[name]
            if {"message", "interval"} <= {*rows.schema.names}
        ]
        first, end = context.messages or _message_range(database, referring)
        in_messages = _between("message", first, end - 1)
        for name in by_message:
            _create_view(database, name, tables[name], in_messages)


def _create_view(
    database: duckdb.DuckDBPyConnection,
    name: str,
    parts: Sequence[Any],
    where: pc.Expression | None,
) -> None:
    places = [f"{name}/{number}" for number in range(len(parts))]
    chosen = [rows if where is None else rows.filter(where) for rows in parts]
    for place, rows in zip(places, chosen, strict=True):
        database.register(place, rows)
    step_profile.give_table(name, chosen)
    union = " UNION ALL BY NAME ".join(f'FROM "{place}"' for place in places)
    database.execute(f"CREATE VIEW {_sql_name(name)} AS {union}")


def _message_range(
    database: duckdb.DuckDBPyConnection, referring: Sequence[Any]
) -> tuple[int, int]:
    """The first one that rows name, and the one after the last."""
    _create_view(database, "naming", referring, None)
    least = "SELECT coalesce(min(message), 0), coalesce(max(message), -1) + 1 FROM naming"
    [(first, end)] = database.execute(least).fetchall()
    return first, end


def _taken_rows(
    database: duckdb.DuckDBPyConnection, step: Step, queries: Mapping[str, Step]
) -> pa.RecordBatchReader:
    """The rows of the only table that a function or a fold takes, which may be a query."""
    (name,) = step.takes
    query = queries.get(name)
    maker = (query or step).name
    if query:
        step_profile.count_table(maker, query.takes, name, 0)
    with step_profile.at_work(maker):
        reader = database.sql(f"FROM {_sql_name(name)}").to_arrow_reader(_BATCH_ROWS)
    rows = step_profile.follow(maker, reader, makes=bool(query), taker=step.name)
    return reader if rows is reader else pa.RecordBatchReader.from_batches(reader.schema, rows)


def _table_rows(database: duckdb.DuckDBPyConnection, definition: Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table that was made, with the columns that it is to have."""
    relation = database.sql(f"FROM {_sql_name(definition.name)}")
    values = {c.name: f'"{c.name}"' if c.name in relation.columns else "NULL" for c in definition}
    columns = (
        f'{values[c.name]}::{_TYPES.get(c.type, "BOOLEAN")} AS "{c.name}"' for c in definition
    )
    ordered = relation.project(", ".join(columns)).order(
        ", ".join(f'"{name}" NULLS FIRST' for name in definition.key)
    )
    for rows in ordered.to_arrow_reader(_BATCH_ROWS):
        yield rows.cast(definition.arrow)


def _sql_name(table: str) -> str:
    """The name of a table in a text."""
    return table.replace("/", ".")


def _between(column: str, least: int, most: int) -> pc.Expression:
    return (pc.field(column) >= least) & (pc.field(column) <= most)
