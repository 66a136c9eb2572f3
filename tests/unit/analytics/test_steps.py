"""Databases of tasks, and tables that several steps take."""

from __future__ import annotations

import duckdb
import pytest

from vizpub.analytics.steps import Step, TaskContext, compute_tables, open_database
from vizpub.model.columns import Table, always

CONTEXT = TaskContext(0, 0, 1, frozenset(), 0, 0)


def test_database_of_a_task_has_nothing_of_others() -> None:
    with open_database() as one, open_database() as other:
        for database, number in ((one, 1), (other, 2)):
            database.execute(
                f"SET VARIABLE n = {number}; CREATE MACRO twice(x) AS {number} * 2 * x"
            )
            database.execute("CREATE TABLE held AS SELECT twice(getvariable('n')) AS value")
        assert [one.sql("FROM held").fetchall(), other.sql("FROM held").fetchall()] == [
            [(2,)],
            [(8,)],
        ]


def test_database_leaves_nothing_behind_after_an_error() -> None:
    def names() -> list[tuple[str]]:
        with open_database() as database:
            return database.sql("SELECT database_name FROM duckdb_databases()").fetchall()

    before = len(names())
    with pytest.raises(duckdb.Error, match="none"), open_database() as database:
        database.execute("CREATE TABLE held AS FROM range(9); SELECT error('none')")
    assert len(names()) == before


def test_table_that_several_steps_take_is_computed_once() -> None:
    made = [Table(name, "draw", (always("value", "double", "drawn"),), ("value",)) for name in "ab"]
    draw = Step("draw", "SELECT random() AS value FROM range(9)", "drawn")
    takers = [Step(table.name, "FROM drawn", table.name, whole=("drawn",)) for table in made]
    rows = dict(compute_tables([draw, *takers], {}, made, CONTEXT))
    assert rows["a"].to_pylist() == rows["b"].to_pylist()
