"""SQL over the tables of a run, by DuckDB.

Tables have the names of model.tables (`metrics/peers` is `metrics.peers`), with the name of a peer,
topic or message beside its dense index, as `src_name`. They are read as the question needs them, a
batch at a time, from the files of the run; a statement can read nothing else and writes no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from model.columns import Table
from model.errors import UseError
from model.tables import TABLES
from model.tables import table as model_table
from runstore.named import NAMED
from runstore.store import StoredRun

if TYPE_CHECKING:
    import duckdb

_SUGGESTED = re.compile(r'\nDid you mean "([^"]+)"\?')
LIST = """
SELECT concat_ws('.', nullif(schema_name, 'main'), view_name) AS "table", column_count AS columns
FROM duckdb_views() WHERE NOT internal AND NOT temporary AND schema_name <> 'stored' ORDER BY ALL
"""
"""The statement that lists the tables."""
_BATCH_ROWS = 10_000
_LOCKED = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@contextmanager
def answer(
    run: StoredRun, statement: str, values: Mapping[str, object] | None = None
) -> Iterator[pa.RecordBatchReader]:
    """The rows that a statement gives, in batches, to be read inside the block; `values` of what
    stands in it as `$name`.

    Raises: UseError for a statement that DuckDB refuses, StoreBroken.
    """
    import duckdb

    with TemporaryDirectory(prefix="vizpub-sql-") as scratch, duckdb.connect() as database:
        database.execute("SET temp_directory = ?", [scratch])
        database.execute("CREATE SCHEMA stored")
        for table in _tables(run):
            _add(database, run, table)
        for setting in _LOCKED:
            database.execute(setting)
        try:
            found = database.sql(statement, params=dict(values) if values else None)
            if found is None:
                raise UseError("the statement gives no rows; a query begins with SELECT or FROM")
            yield found.to_arrow_reader(_BATCH_ROWS)
        except duckdb.CatalogException as error:
            there = tables(run)
            # DuckDB also suggests tables of its own.
            said = _SUGGESTED.sub(lambda found: found[0] if found[1] in there else "", str(error))
            raise UseError(f"{said}\n  tables: {', '.join(there)}") from error
        except duckdb.Error as error:
            raise UseError(str(error)) from error


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
