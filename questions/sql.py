"""SQL over the tables of a run, by DuckDB.

Tables have the names of vizpub.model.tables (`metrics/peers` is `metrics.peers`), with the name of
a peer, topic or message beside its dense index, as `src_name`; `receptions` also has `delay_us`,
the time since the publication. `peer_attributes` has a column for each attribute of peers. Those
that the question names are opened, and read as it needs them, a batch at a time, from the files of
the run; a statement can read nothing else and writes no file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.columns import Table
from vizpub.model.errors import UseError
from vizpub.model.metrics import METRICS_MESSAGES
from vizpub.model.sizes import format_size
from vizpub.model.tables import ATTRIBUTES, PUBLICATIONS, RECEPTIONS, TABLES
from vizpub.model.tables import table as model_table
from vizpub.questions.names import NAMED
from vizpub.runstore.manifest import Since
from vizpub.runstore.store import StoredRun

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

_SUGGESTED = re.compile(r'\nDid you mean "([^"]+)"\?')
LIST = """
SELECT concat_ws('.', nullif(schema_name, 'main'), view_name) AS "table", column_count AS columns
FROM duckdb_views() WHERE NOT internal AND NOT temporary AND schema_name <> 'stored' ORDER BY ALL
"""
"""The statement that lists the tables."""
PEER_ATTRIBUTES = "peer_attributes"
"""A view of the attributes that has a column for each."""
LATE = "the query was stopped"
OF_LAYERS = "($layers IS NULL OR list_contains($layers, layer))"
"""The condition of links of some layers; null = of all."""
_DELAY = 'TRY_CAST(rows.time_us::HUGEINT - "names of message".time_us AS BIGINT)'
"""Of an arrival; null where a time is unknown, or the difference exceeds 64 bits."""
COMPUTED = {RECEPTIONS.name: {"delay_us": _DELAY}}
"""Columns that a table has beside its stored ones and names, with their expressions."""
# Of an arrival, by the clock of the publisher; as reported if one of the two is not known.
_SHIFTED = """
SELECT rows.* REPLACE (
    coalesce(
        TRY_CAST(rows.time_us::HUGEINT - here.offset_us + there.offset_us AS BIGINT), rows.time_us
    ) AS time_us)
FROM {arrivals} rows LEFT JOIN {publications} published USING (message)
    LEFT JOIN offsets here ON here.peer = rows.peer
    LEFT JOIN offsets there ON there.peer = published.publisher
"""
_BATCH_ROWS = 10_000
_OF_ALL = re.compile(
    r";|\b(describe|duckdb_\w+|information_schema|pg_\w+|pragma|show|sqlite_\w+)\b", re.I
)
"""In statements that may list the tables, or that cannot be tried twice: they are several."""
_STOPPED_S = 5.0
"""That a query may take to stop."""
_ON_DISK = 10
"""Times its memory that a query may write to temporary files."""
_LOCKED = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


T = TypeVar("T")


@dataclass(frozen=True)
class QueryLimits:
    """What a query may cost."""

    timeout_s: float | None = None
    """In DuckDB, without what the reader of its rows takes."""
    memory: int = 2**31
    """Bytes; what needs more is written to temporary files, or refused."""


_LIMITS = QueryLimits()


@dataclass(frozen=True)
class ShiftedRun(StoredRun):
    """A run whose receptions have times by the clock of their message's publisher, in SQL."""

    offsets: pa.Table
    """peer, offset_us: by how much its clock is ahead of a reference."""
    measured: pa.Table | None = None
    """By message, the columns of its metrics that follow from these times; null = as stored."""

    def read_unordered(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
        since: Since | None = None,
    ) -> pa.Table:
        """The rows of StoredRun, with times by these clocks, and metrics that follow from them; of
        both `where` sees what is corrected.
        """
        chosen = [*(columns or self.definition(name).names)]
        is_shifted = name == RECEPTIONS.name and ("time_us" in chosen or where is not None)
        if not is_shifted and (name != METRICS_MESSAGES.name or self.measured is None):
            return super().read_unordered(name, columns, where, since)
        if since is not None:
            recent = pc.field(since.column) >= since.least
            where = recent if where is None else where & recent
        if is_shifted:
            return self._read_shifted(chosen, where)
        rows = self._with_measured(super().read_unordered(name))
        return (rows if where is None else rows.filter(where)).select(chosen)

    def _read_shifted(self, columns: list[str], where: pc.Expression | None) -> pa.Table:
        import pyarrow.dataset as ds

        with answer(self, f'FROM stored."{RECEPTIONS.name}"') as batches:
            scanner = ds.Scanner.from_batches(batches, columns=columns, filter=where)
            rows = scanner.to_table()
        schema = self.definition(RECEPTIONS.name).arrow
        return rows.cast(pa.schema([schema.field(column) for column in columns]))

    def _with_measured(self, rows: pa.Table) -> pa.Table:
        """The metrics of messages with the columns that follow from these times."""
        assert self.measured is not None
        places = pc.index_in(rows["message"], self.measured["message"])
        for column in {*self.measured.column_names} - {"message"}:
            place, field = rows.column_names.index(column), rows.schema.field(column)
            values = self.measured[column].take(places).cast(field.type)
            rows = rows.set_column(place, field, values)
        return rows

    def dataset(self, name: str) -> ds.Dataset:
        """The table as StoredRun has it, with these metrics of messages."""
        if name != METRICS_MESSAGES.name or self.measured is None:
            return super().dataset(name)
        import pyarrow.dataset as ds

        return ds.dataset(self.read_unordered(name))


@contextmanager
def answer(
    run: StoredRun,
    statement: str,
    values: Mapping[str, object] | None = None,
    limits: QueryLimits = _LIMITS,
) -> Iterator[pa.RecordBatchReader]:
    """Run a statement and yield its rows in batches, to be read inside the block.

    `values` are those of `$name` in the statement.

    Raises: UseError for a statement that DuckDB refuses or stops, StoreBroken.
    """
    import duckdb

    with (
        TemporaryDirectory(prefix="vizpub-sql-") as scratch,
        _open_timed(duckdb.connect(), limits) as session,
    ):
        database = session.database
        # Half of it: not all that DuckDB uses is in its accounts.
        database.execute("SET memory_limit = ?", [f"{limits.memory // 2}B"])
        database.execute("SET max_temp_directory_size = ?", [f"{limits.memory * _ON_DISK}B"])
        database.execute("SET temp_directory = ?", [scratch])
        views = _Views(database, run)
        views.add(_named_tables(run, statement))
        for setting in _LOCKED:
            database.execute(setting)
        try:
            try:
                reader = session.do(lambda: _reader(session, statement, values))
            except duckdb.CatalogException:
                # DuckDB also suggests tables that are not named, and names may be computed.
                if not views.add(tables(run)):
                    raise
                reader = session.do(lambda: _reader(session, statement, values))
            yield reader
        except duckdb.CatalogException as error:
            names = tables(run)
            # DuckDB also suggests tables of its own.
            message = _SUGGESTED.sub(
                lambda match: match[0] if match[1] in names else "", str(error)
            )
            raise UseError(f"{message}\n  tables: {', '.join(names)}") from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise UseError(_too_large(limits)) from error
        except duckdb.Error as error:
            raise UseError(str(error)) from error


def _named_tables(run: StoredRun, statement: str) -> list[str]:
    """The tables whose names are in a statement, and perhaps more; all, if it may list them."""
    if _OF_ALL.search(statement):
        return tables(run)
    words = set(re.findall(r"\w+", statement.lower()))
    return [name for name in tables(run) if name.rpartition(".")[2] in words]


def read_answer(run: StoredRun, statement: str, **values: object) -> pa.Table:
    """The rows of a statement with these values. Raises: as `answer`."""
    with answer(run, statement, values) as batches:
        return batches.read_all()


def _reader(
    session: _TimedConnection, statement: str, values: Mapping[str, object] | None
) -> pa.RecordBatchReader:
    relation = session.database.sql(statement, params=dict(values) if values else None)
    if relation is None:
        raise UseError("the statement gives no rows; a query begins with SELECT or FROM")
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(session, reader))


def _batches(session: _TimedConnection, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield batches. Raises: UseError for errors of DuckDB, which Arrow turns into OSError."""
    while True:
        try:
            yield session.do(reader.read_next_batch)
        except StopIteration:
            return
        except MemoryError as error:
            raise UseError(_too_large(session.limits)) from error
        except OSError as error:
            is_large = str(error).startswith("Out of Memory")
            raise UseError(_too_large(session.limits) if is_large else str(error)) from error


def _too_large(limits: QueryLimits) -> str:
    return f"the query needs more than {format_size(limits.memory)} of memory: ask for less at once"


class _TimedConnection:
    """A DuckDB connection with steps in threads: the caller still gets signals and timeouts."""

    def __init__(self, database: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
        self.database, self.limits, self.lost = database, limits, False
        self._remaining_s = limits.timeout_s

    def do(self, step: Callable[[], T]) -> T:
        """Run a step in a thread. Raises: as it does; UseError if the time is up."""
        result: Future[T] = Future()
        began = time.monotonic()

        def run() -> None:
            try:
                result.set_result(step())
            except BaseException as error:
                result.set_exception(error)

        Thread(target=run, daemon=True).start()
        try:
            result.exception(self._remaining_s)
        except TimeoutError:
            self._stop(result)
            raise UseError(f"{LATE} after {self.limits.timeout_s:g} s") from None
        except BaseException:  # the caller is interrupted
            self._stop(result)
            raise
        if self._remaining_s is not None:
            self._remaining_s = max(self._remaining_s - (time.monotonic() - began), 0.0)
        return result.result()

    def _stop(self, result: Future[T]) -> None:
        end = time.monotonic() + _STOPPED_S
        while not result.done() and time.monotonic() < end:
            self.database.interrupt()  # one that has not begun yet does not hear it
            time.sleep(0.01)
        self.lost = not result.done()


@contextmanager
def _open_timed(
    database: duckdb.DuckDBPyConnection, limits: QueryLimits
) -> Iterator[_TimedConnection]:
    """Open a session, and close it after the block."""
    session = _TimedConnection(database, limits)
    try:
        yield session
    finally:
        if not session.lost:  # else it would wait for the query
            database.close()


def tables(run: StoredRun) -> list[str]:
    """The names that the tables of the run have in a statement."""
    views = [PEER_ATTRIBUTES] if run.has(ATTRIBUTES.name) else []
    return sorted([*views, *(sql_name(table.name) for table in TABLES if run.has(table.name))])


def sql_name(table: str) -> str:
    """The name of a table in a statement: `metrics/peers` is `metrics.peers`."""
    return table.replace("/", ".")


def rows_of(run: StoredRun, table: str) -> str:
    """A stored table in a statement, empty where the run's source does not report it."""
    if run.has(table):
        return f'stored."{table}"'
    nothing = ", ".join(f"NULL AS {column}" for column in model_table(table).names)
    return f"(SELECT {nothing} WHERE false)"


class _Views:
    """The tables of a run as views of a database, each made once it is needed."""

    def __init__(self, database: duckdb.DuckDBPyConnection, run: StoredRun) -> None:
        self._database, self._run = database, run
        self._made: set[str] = set()
        database.execute("CREATE SCHEMA stored")

    def add(self, names: Iterable[str]) -> bool:
        """Make the tables of these names. Return True if one of them was not there yet."""
        missing = [name for name in names if name not in self._made]
        for name in missing:
            self._made.add(name)
            if name == PEER_ATTRIBUTES:
                self._add_attributes()
            else:
                self._add_table(self._run.definition(name.replace(".", "/")))
        return bool(missing)

    def _add_table(self, table: Table) -> None:
        """Make a view with names, over one of what is stored."""
        columns, joins = [], []
        for column in table.names:
            columns.append(f'rows."{column}"')
            name_table = NAMED.get(column)
            if name_table and name_table != table.name and self._run.has(name_table):
                names, index = f'"names of {column}"', model_table(name_table).key[0]
                columns.append(f"{names}.name AS {column}_name")
                stored = self._add_stored(name_table)
                joins.append(f'LEFT JOIN {stored} {names} ON rows."{column}" = {names}.{index}')
        columns += [f"{text} AS {name}" for name, text in COMPUTED.get(table.name, {}).items()]
        if schema := table.name.rpartition("/")[0]:
            self._database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self._database.execute(
            f"CREATE VIEW {sql_name(table.name)} AS SELECT {', '.join(columns)} "
            f"FROM {self._add_stored(table.name)} rows {' '.join(joins)}"
        )

    def _add_stored(self, table: str) -> str:
        """Make the view of what is stored, and return its name."""
        view, files = f'stored."{table}"', f"files of {table}"
        if view not in self._made:
            self._made.add(view)
            self._database.register(files, self._run.dataset(table))
            rows = f'SELECT * FROM "{files}"'
            if isinstance(self._run, ShiftedRun) and table == RECEPTIONS.name:
                self._database.register("offsets", self._run.offsets)
                published = self._add_stored(PUBLICATIONS.name)
                rows = _SHIFTED.format(arrivals=f'"{files}"', publications=published)
            self._database.execute(f"CREATE VIEW {view} AS {rows}")
        return view

    def _add_attributes(self) -> None:
        """Make a view with a row per peer and a column per key: the last value."""
        peers, attributes = self._add_stored("peers"), self._add_stored(ATTRIBUTES.name)
        keys = self._database.execute(f"SELECT DISTINCT key FROM {attributes} ORDER BY 1")
        columns, names = ["peer", "name AS peer_name"], {"peer", "peer_name"}
        for (key,) in keys.fetchall():
            name = key
            while name.lower() in names:  # DuckDB's names have no case
                name += "_"
            names.add(name.lower())
            of_key, identifier = key.replace("'", "''"), name.replace('"', '""')
            value = f"max_by(value, valid_from) FILTER (key = '{of_key}')"
            columns.append(f'{value} AS "{identifier}"')
        self._database.execute(
            f"CREATE VIEW {PEER_ATTRIBUTES} AS SELECT {', '.join(columns)} "
            f"FROM {peers} LEFT JOIN {attributes} USING (peer) GROUP BY ALL"
        )
