"""SQL over the tables of a run, by DuckDB.

Tables have the names of vizpub.model.tables (`metrics/peers` is `metrics.peers`), with the name of
a peer, topic or message beside its dense index, as `src_name`. They are read as the question needs
them, a batch at a time, from the files of the run; a statement can read nothing else and writes no
file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from vizpub.model.columns import Table
from vizpub.model.errors import UseError
from vizpub.model.sizes import format_size
from vizpub.model.tables import TABLES
from vizpub.model.tables import table as model_table
from vizpub.questions.names import NAMED
from vizpub.runstore.store import StoredRun

if TYPE_CHECKING:
    import duckdb

_SUGGESTED = re.compile(r'\nDid you mean "([^"]+)"\?')
LIST = """
SELECT concat_ws('.', nullif(schema_name, 'main'), view_name) AS "table", column_count AS columns
FROM duckdb_views() WHERE NOT internal AND NOT temporary AND schema_name <> 'stored' ORDER BY ALL
"""
"""The statement that lists the tables."""
LATE = "the query was stopped"
_BATCH_ROWS = 10_000
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


@contextmanager
def answer(
    run: StoredRun,
    statement: str,
    values: Mapping[str, object] | None = None,
    limits: QueryLimits = _LIMITS,
) -> Iterator[pa.RecordBatchReader]:
    """The rows that a statement gives, in batches, to be read inside the block; `values` of what
    stands in it as `$name`.

    Raises: UseError for a statement that DuckDB refuses or stops, StoreBroken.
    """
    import duckdb

    with (
        TemporaryDirectory(prefix="vizpub-sql-") as scratch,
        _asking(duckdb.connect(), limits) as asked,
    ):
        database = asked.database
        # Half of it: not all that DuckDB uses is in its accounts.
        database.execute("SET memory_limit = ?", [f"{limits.memory // 2}B"])
        database.execute("SET max_temp_directory_size = ?", [f"{limits.memory * _ON_DISK}B"])
        database.execute("SET temp_directory = ?", [scratch])
        database.execute("CREATE SCHEMA stored")
        for table in _tables(run):
            _add(database, run, table)
        for setting in _LOCKED:
            database.execute(setting)
        try:
            yield asked.do(lambda: _reader(asked, statement, values))
        except duckdb.CatalogException as error:
            there = tables(run)
            # DuckDB also suggests tables of its own.
            said = _SUGGESTED.sub(lambda found: found[0] if found[1] in there else "", str(error))
            raise UseError(f"{said}\n  tables: {', '.join(there)}") from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise UseError(_too_large(limits)) from error
        except duckdb.Error as error:
            raise UseError(str(error)) from error


def _reader(
    asked: _Asked, statement: str, values: Mapping[str, object] | None
) -> pa.RecordBatchReader:
    found = asked.database.sql(statement, params=dict(values) if values else None)
    if found is None:
        raise UseError("the statement gives no rows; a query begins with SELECT or FROM")
    reader = found.to_arrow_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(asked, reader))


def _batches(asked: _Asked, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Raises: UseError for what DuckDB says in the middle, which is an OSError to Arrow."""
    while True:
        try:
            yield asked.do(reader.read_next_batch)
        except StopIteration:
            return
        except MemoryError as error:
            raise UseError(_too_large(asked.limits)) from error
        except OSError as error:
            is_large = str(error).startswith("Out of Memory")
            raise UseError(_too_large(asked.limits) if is_large else str(error)) from error


def _too_large(limits: QueryLimits) -> str:
    return f"the query needs more than {format_size(limits.memory)} of memory: ask for less at once"


class _Asked:
    """DuckDB, asked in a thread of its own: who waits for it hears of signals and of the end of the
    time.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
        self.database, self.limits, self.lost = database, limits, False
        self._left = limits.timeout_s

    def do(self, step: Callable[[], T]) -> T:
        """What a step gives. Raises: as it does; UseError where the time is up."""
        given: Future[T] = Future()
        began = time.monotonic()
        Thread(target=_do, args=(step, given), daemon=True).start()
        try:
            given.exception(self._left)
        except TimeoutError:
            self._stop(given)
            raise UseError(f"{LATE} after {self.limits.timeout_s:g} s") from None
        except BaseException:  # the caller is interrupted
            self._stop(given)
            raise
        if self._left is not None:
            self._left = max(self._left - (time.monotonic() - began), 0.0)
        return given.result()

    def _stop(self, given: Future[T]) -> None:
        end = time.monotonic() + _STOPPED_S
        while not given.done() and time.monotonic() < end:
            self.database.interrupt()  # one that has not begun yet does not hear it
            time.sleep(0.01)
        self.lost = not given.done()


@contextmanager
def _asking(database: duckdb.DuckDBPyConnection, limits: QueryLimits) -> Iterator[_Asked]:
    """For the length of the block."""
    asked = _Asked(database, limits)
    try:
        yield asked
    finally:
        if not asked.lost:  # else it would wait for the query
            database.close()


def _do(step: Callable[[], T], given: Future[T]) -> None:
    try:
        given.set_result(step())
    except BaseException as error:
        given.set_exception(error)


def tables(run: StoredRun) -> list[str]:
    """The names that the tables of the run have in a statement."""
    return sorted(_sql_name(table.name) for table in _tables(run))


def _tables(run: StoredRun) -> list[Table]:
    """The tables that the run has; those with names first."""
    there = [run.definition(table.name) for table in TABLES if run.has(table.name)]
    return sorted(there, key=lambda table: table.name not in NAMED.values())


def _sql_name(table: str) -> str:
    return table.replace("/", ".")


def _add(database: duckdb.DuckDBPyConnection, run: StoredRun, table: Table) -> None:
    """The table as a view with names, over one of what is stored."""
    columns, joins = [], []
    for column in table.names:
        columns.append(f'rows."{column}"')
        named = NAMED.get(column)
        if named and named != table.name and run.has(named):
            names, index = f'"names of {column}"', model_table(named).key[0]
            columns.append(f"{names}.name AS {column}_name")
            joins.append(f'LEFT JOIN {_stored(named)} {names} ON rows."{column}" = {names}.{index}')
    schema = table.name.rpartition("/")[0]
    if schema:
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    files = f"files of {table.name}"
    database.register(files, run.dataset(table.name))
    database.execute(f'CREATE VIEW {_stored(table.name)} AS SELECT * FROM "{files}"')
    database.execute(
        f"CREATE VIEW {_sql_name(table.name)} AS "
        f"SELECT {', '.join(columns)} FROM {_stored(table.name)} rows {' '.join(joins)}"
    )


def _stored(table: str) -> str:
    return f'stored."{table}"'
