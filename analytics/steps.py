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

What a step makes is a table of a run, or else a view for the steps after it. A column of the table
that the text does not give is unknown. A text may ask what is known, `known('receptions')`, and for
`getvariable(…)`: `first` and `last`, the intervals of the task; `ticks` of an interval; `layers`;
and the `variables` of the task. The table `metrics/peers` is `metrics.peers` in a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.options import Measures
from vizpub.analytics.structure import measure_versions
from vizpub.model.columns import Column, Table

if TYPE_CHECKING:
    import duckdb

_HEADER = re.compile(r"-- (?P<key>by interval|by message|whole|makes): (?P<names>.+)")
_TAKES = re.compile(r"\b(folded|whole|observed|before|staged)\.(\w+)")
_BATCH_ROWS = 1 << 17
MEMORY = "1GB"
"""What a task's DuckDB takes before it uses the disk."""
SETTINGS: dict[str, Any] = {"threads": 1, "async_threads": 0, "memory_limit": MEMORY}
_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}


@dataclass(frozen=True)
class Given:
    """What a task of steps is about, besides its tables."""

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
    text: str
    makes: str
    by_interval: tuple[str, ...] = ()
    by_message: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    function: Callable[[pa.Table, Given], pa.Table] | None = None
    fold: Fold | None = None
    """Makes the tables of its own; `makes` is empty."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its tables."""
        return *self.by_interval, *self.by_message, *self.whole


class Fold(Protocol):
    """Turns rows in order into rows of tables."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table, rows) pairs."""

    def summary(self) -> str | None:
        """The summary over all rows, after the last one; null = none."""


@cache
def step(name: str, package: str = __package__) -> Step:
    """The step of that name. Raises: FileNotFoundError."""
    text = (files(package) / "sql" / f"{name}.sql").read_text("utf-8")
    given = {
        found["key"]: tuple(found["names"].split(", "))
        for line in text.splitlines()
        if (found := _HEADER.fullmatch(line))
    }
    by_interval, by_message, whole = (
        given.get(key, ()) for key in ("by interval", "by message", "whole")
    )
    return Step(name, text, given["makes"][0], by_interval, by_message, whole)


def view(makes: str, text: str) -> Step:
    """A step without a header; its text names the tables that it takes as `schema.table`."""
    taken = dict.fromkeys("/".join(found) for found in _TAKES.findall(text))
    return Step(makes, text, makes, whole=tuple(taken))


def _measure(versions: pa.Table, given: Given) -> pa.Table:
    window = range(max(given.since, given.first), given.last + 1)
    return measure_versions(versions, window, given.measures, given.begins)


KERNELS = (
    step("versions"),
    Step(
        "kernels", "-- Measure every interval", "measured", whole=("versions",), function=_measure
    ),
)
"""The structure of intervals, by the engine `kernels`; others make the table `measured`."""
METRICS = tuple(map(step, ("structure", "hits", "peers", "topics", "overlay")))
"""The metrics of peers, topics and the overlay, from `measured` and others."""


def inputs(steps: Sequence[Step]) -> set[str]:
    """The tables that the steps take, without those that they make."""
    return {name for one in steps for name in one.takes} - {one.makes for one in steps}


def needed(steps: Sequence[Step], makes: Collection[str]) -> tuple[Step, ...]:
    """Those of the steps that tables depend on, and folds; in their order."""
    wanted, kept = {*makes}, list[Step]()
    for one in reversed(steps):
        if one.fold or one.makes in wanted:
            kept.append(one)
            wanted.update(one.takes)
    return tuple(reversed(kept))


def compute(
    steps: Sequence[Step],
    tables: Mapping[str, Sequence[Any]],
    makes: Collection[Table],
    given: Given,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Do the steps, one after the other. Yields (table, rows) for each table of `makes`, its rows
    in the order of its key, and what folds make.

    `tables` has Arrow tables or datasets of the columns of each of the `inputs`; all rows together
    are the table.
    """
    meant = {table.name: table for table in makes}
    with open_database() as database:
        _declare(database, given, {*tables, *(one.makes for one in steps)})
        _register(database, steps, tables, given)
        for one in steps:
            if one.function:
                _do(database, one, given)
                continue
            if one.fold:
                yield from one.fold(_ordered(database, one))
                continue
            kind = "TABLE" if one.makes in meant else "VIEW"
            database.execute(f"CREATE {kind} {_named(one.makes)} AS {one.text}")
            if one.makes in meant:
                yield from ((one.makes, rows) for rows in _rows(database, meant[one.makes]))


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database of a task: one thread, bounded memory, a folder of its own to spill."""
    import duckdb
    import pyarrow.dataset  # noqa: F401  # DuckDB takes datasets only where this was imported

    with (
        TemporaryDirectory(prefix="vizpub-step-") as scratch,
        duckdb.connect(config=SETTINGS | {"temp_directory": scratch}) as database,
    ):
        yield database


def _declare(database: duckdb.DuckDBPyConnection, given: Given, tables: Collection[str]) -> None:
    names = ", ".join(f"'{name}'" for name in sorted(given.known))
    database.execute(f"CREATE MACRO known(name) AS list_contains([{names}]::VARCHAR[], name)")
    numbers = {"first": given.first, "last": given.last, "ticks": given.ticks}
    for name, value in {**numbers, **given.variables}.items():
        database.execute(f'SET VARIABLE "{name}" = ?', [value])
    database.execute("SET VARIABLE layers = ?::VARCHAR[]", [given.layers and [*given.layers]])
    if given.macros:
        database.execute(given.macros)
    for schema in sorted({name.rpartition("/")[0] for name in tables} - {""}):
        database.execute(f"CREATE SCHEMA {schema}")


def _register(
    database: duckdb.DuckDBPyConnection,
    steps: Sequence[Step],
    tables: Mapping[str, Sequence[Any]],
    given: Given,
) -> None:
    """Hand over the rows that the steps take. The messages are those of the task; else those
    published in its intervals, or named by other rows of them.
    """
    by_interval = {name for one in steps for name in one.by_interval} & tables.keys()
    by_message = {name for one in steps for name in one.by_message} & tables.keys()
    here = _between("interval", given.first, given.last)
    for name in tables.keys() - by_message:
        _view(database, name, tables[name], here if name in by_interval else None)
    if by_message:
        naming = [
            rows.filter(here)
            for name in by_interval | by_message
            for rows in tables[name]
            if {"message", "interval"} <= {*rows.schema.names}
        ]
        first, after = given.messages or _messages(database, naming)
        named = _between("message", first, after - 1)
        for name in by_message:
            _view(database, name, tables[name], named)


def _view(
    database: duckdb.DuckDBPyConnection,
    name: str,
    parts: Sequence[Any],
    where: pc.Expression | None,
) -> None:
    places = [f"{name}/{number}" for number in range(len(parts))]
    for place, rows in zip(places, parts, strict=True):
        database.register(place, rows if where is None else rows.filter(where))
    union = " UNION ALL BY NAME ".join(f'FROM "{place}"' for place in places)
    database.execute(f"CREATE VIEW {_named(name)} AS {union}")


def _messages(database: duckdb.DuckDBPyConnection, naming: Sequence[Any]) -> tuple[int, int]:
    """The first one that rows name, and the one after the last."""
    _view(database, "naming", naming, None)
    least = "SELECT coalesce(min(message), 0), coalesce(max(message), -1) + 1 FROM naming"
    [(first, after)] = database.execute(least).fetchall()
    return first, after


def _ordered(database: duckdb.DuckDBPyConnection, one: Step) -> Iterator[pa.RecordBatch]:
    """The rows of the table that a step takes."""
    (name,) = one.takes
    return iter(database.sql(f"FROM {_named(name)}").to_arrow_reader(_BATCH_ROWS))


def _do(database: duckdb.DuckDBPyConnection, one: Step, given: Given) -> None:
    """Do a step that is a function."""
    assert one.function
    (name,) = one.takes
    taken = database.sql(f"FROM {_named(name)}").to_arrow_reader(_BATCH_ROWS).read_all()
    database.register("/" + one.makes, one.function(taken, given))
    database.execute(f'CREATE VIEW {_named(one.makes)} AS FROM "/{one.makes}"')


def _rows(database: duckdb.DuckDBPyConnection, meant: Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table that was made, with the columns that it is to have."""
    made = database.sql(f"FROM {_named(meant.name)}")
    columns = ", ".join(_column(column, column.name in made.columns) for column in meant)
    ordered = made.project(columns).order(", ".join(f'"{name}" NULLS FIRST' for name in meant.key))
    for rows in ordered.to_arrow_reader(_BATCH_ROWS):
        yield rows.cast(meant.arrow)


def _column(column: Column, there: bool) -> str:
    value = f'"{column.name}"' if there else "NULL"
    return f'{value}::{_TYPES.get(column.type, "BOOLEAN")} AS "{column.name}"'


def _named(table: str) -> str:
    """The name of a table in a text."""
    return table.replace("/", ".")


def _between(column: str, least: int, most: int) -> pc.Expression:
    return (pc.field(column) >= least) & (pc.field(column) <= most)
