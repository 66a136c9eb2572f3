"""SQL over stored runs, against pyarrow on the same tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.grouped import add_attributes
from tests.support.rewriting import rewrite
from tests.support.words import naming
from vizpub.machine.process import bounded_memory
from vizpub.model.errors import StoreBroken, UseError
from vizpub.model.tables import TABLES
from vizpub.questions.run import Run
from vizpub.questions.sql import LATE, LIST, QueryLimits, answer, tables
from vizpub.runstore.integrity import OTHER_BYTES
from vizpub.runstore.store import StoredRun


@pytest.fixture
def run(workspace: Path) -> Run:
    return Run.open(workspace, "monday")


def test_tables_of_the_run_are_listed(run: Run) -> None:
    there = {table.name.replace("/", ".") for table in TABLES if run.stored.has(table.name)}
    assert set(tables(run.stored)) == there
    assert {row["table"] for row in run.sql(LIST).to_pylist()} == there


def test_attributes_have_a_column_each_in_a_view(workspace: Path) -> None:
    keys = {"client": "ab a", "Client": "xxxx", "peer": "pppp", 'it\'s "x"': "y  z"}
    add_attributes(workspace, "monday", **keys)
    run = Run.open(workspace, "monday")
    assert "peer_attributes" in tables(run.stored)
    rows = run.sql("FROM peer_attributes ORDER BY peer").to_pylist()
    columns = ["peer", "peer_name", "Client", "client_", 'it\'s "x"', "peer_"]
    assert [list(row) for row in rows] == [columns] * 4
    assert [row["client_"] for row in rows] == ["a", "b", None, "a"]
    assert [row['it\'s "x"'] for row in rows] == ["y", None, None, "z"]


def test_tables_have_the_rows_and_names_of_the_store(run: Run) -> None:
    for table in TABLES:
        if not run.stored.has(table.name):
            continue
        found, meant = (
            run.sql(f"FROM {table.name.replace('/', '.')}").to_arrow(),
            run.table(table.name),
        )
        if table.name not in ("peers", "topics", "publications"):  # they have the names themselves
            meant = run.with_names(meant)
        elif table.name == "publications":
            meant = run.with_names(meant).drop_columns("message_name")
        computed = {"delay_us"} if table.name == "receptions" else set()
        assert set(found.column_names) == {*meant.column_names, *computed}, table.name
        one, other = (
            Counter(map(repr, t.select(meant.column_names).to_pylist())) for t in (found, meant)
        )
        assert one == other, table.name


def test_delay_of_an_arrival_is_its_time_since_the_publication(run: Run, workspace: Path) -> None:
    """Unknown where a time is, or where the difference exceeds 64 bits."""
    published = {row["message"]: row["time_us"] for row in run.table("publications").to_pylist()}
    arrivals = run.table("receptions")
    times = [None, -(2**63), *arrivals["time_us"].to_pylist()[2:]]
    place = arrivals.column_names.index("time_us")
    rewrite(workspace, "monday", "receptions", arrivals.set_column(place, "time_us", [times]))
    again = Run.open(workspace, "monday")
    rows = again.sql("SELECT message, time_us, delay_us FROM receptions").to_pylist()
    assert len(rows) == len(times) > 2
    for row in rows:
        known = row["time_us"] is not None and row["time_us"] > -(2**63)
        expected = row["time_us"] - published[row["message"]] if known else None
        assert row["delay_us"] == expected


def test_join_and_sum_equal_a_plain_loop(run: Run) -> None:
    found = run.sql(
        "SELECT peer_name, max(degree) AS most FROM metrics.peers WHERE interval >= 1 GROUP BY ALL"
    )
    most: dict[str, int] = {}
    for row in run.metrics("peers").to_pylist():
        if row["interval"] >= 1 and row["degree"] is not None:
            most[row["peer_name"]] = max(row["degree"], most.get(row["peer_name"], 0))
    assert {row["peer_name"]: row["most"] for row in found.to_pylist() if row["most"]} == most


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT nobody FROM links", "nobody"),
        ("SELEC 1", "syntax error"),
        ("", "SELECT or FROM"),
        ("FROM link", "tables: dangling_links, gauges, links,"),
        ("SELECT 1/0 = 'x'", "Could not convert"),
    ],
)
def test_statement_that_is_none_is_refused_in_words(run: Run, statement: str, said: str) -> None:
    with pytest.raises(UseError, match=said):
        run.sql(statement)


@pytest.mark.parametrize(
    ("table", "suggested"), [("link", "links"), ("nosuch", None), ("metrics.percolation", None)]
)
def test_unknown_table_suggests_only_tables_of_the_run(
    run: Run, table: str, suggested: str | None
) -> None:
    with pytest.raises(UseError) as caught:
        run.sql(f"FROM {table}")
    told = f'Did you mean "{suggested}"?'
    assert (told in str(caught.value)) == (suggested is not None)
    assert "pg_" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "COPY peers TO '{}/out.csv'",
        "FROM read_text('{}/secret')",
        "FROM '{}/secret.csv'",
        "ATTACH '{}/other.db'",
        "EXPORT DATABASE '{}/all'",
        "SET enable_external_access = true",
        "FROM secret",
    ],
)
def test_statement_reaches_nothing_but_the_run(run: Run, tmp_path: Path, statement: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("word")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UseError):
        run.sql(statement.format(tmp_path))
    assert sorted(tmp_path.iterdir()) == before


def test_flipped_bit_is_told(run: Run) -> None:
    (file,) = run.stored.files("receptions")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreBroken, match=OTHER_BYTES):
        run.sql("SELECT count(*) FROM receptions")


ENDLESS = "SELECT count(*) FROM range(1_000_000_000_000)"


@pytest.mark.parametrize(
    "statement", [ENDLESS, "FROM range(1_000_000_000_000)"], ids=["one row", "rows"]
)
def test_query_ends_when_its_time_is_up(run: Run, statement: str) -> None:
    late = pytest.raises(UseError, match=LATE)
    with late, answer(run.stored, statement, limits=QueryLimits(0.2)) as found:
        for _ in found:
            pass
    assert run.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT list(i) FROM range(100_000_000) t(i)",
        "SELECT list_sort(range(20_000_000, 0, -1))[1]",
        "SELECT CASE WHEN i < 20_000 THEN [] ELSE range(20_000_000) END FROM range(20_001) t(i)",
    ],
)
def test_query_that_needs_more_memory_than_it_may_take_is_refused(run: Run, statement: str) -> None:
    size = 100 * 2**20
    refused = pytest.raises(UseError, match=naming("100 MB"))
    with (
        refused,
        bounded_memory(size),
        answer(run.stored, statement, limits=QueryLimits(memory=size)) as found,
    ):
        for _ in found:
            pass


def test_reason_in_the_middle_of_an_answer_is_told(run: Run) -> None:
    wrong = "SELECT CAST(CASE i WHEN 90_000 THEN 'x' ELSE '1' END AS int) FROM range(100_000) t(i)"
    with pytest.raises(UseError, match="Could not convert string 'x'"):
        run.sql(wrong)


def test_only_tables_that_a_statement_names_are_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    read = StoredRun.dataset

    def dataset(stored: StoredRun, table: str) -> object:
        opened.append(table)
        return read(stored, table)

    monkeypatch.setattr(StoredRun, "dataset", dataset)
    run.sql("SELECT count(*) FROM Presence")
    assert sorted(opened) == ["peers", "presence"]  # with the names of the peers


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS rows FROM query_table('li' || 'nks')",
        "SELECT sum(rows) AS rows FROM (SELECT count(*) AS rows FROM query('FROM lin' || 'ks'))",
        "CREATE TEMP TABLE counted AS FROM links; SELECT count(*) AS rows FROM counted",
    ],
)
def test_tables_of_other_statements_are_there_too(run: Run, statement: str) -> None:
    assert run.sql(statement).to_pylist() == [{"rows": run.stored.rows("links")}]


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("SHOW ALL TABLES", "name"),
        ("DESCRIBE", "name"),
        ("SELECT * FROM information_schema.tables WHERE table_name <> 'links'", "table_name"),
    ],
)
def test_statement_that_lists_tables_lists_all(run: Run, statement: str, column: str) -> None:
    names = {name.rpartition(".")[2] for name in tables(run.stored)} - {"links"}
    assert names <= {row[column] for row in run.sql(statement).to_pylist()}
