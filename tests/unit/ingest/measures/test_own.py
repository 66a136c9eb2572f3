"""Own metrics by name: files, entry points, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import duckdb
import pytest

from tests.support.words import naming
from vizpub.analytics.own import Interval
from vizpub.graphstore.gexf.overlay import OverlayGraph, OverlayRows
from vizpub.graphstore.gexf.rows import SubscriptionRow
from vizpub.ingest.measures import own as named
from vizpub.ingest.measures.own import IS_TAKEN, NOT_DECORATED, load_own_metrics
from vizpub.model.clock import Clock
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.own import LEVELS, OwnMetric, is_taken, with_own
from vizpub.model.run import AFTERWARDS
from vizpub.model.tables import TABLES

ROOT = Path(named.__file__).parents[2]
CODE = '''
import threading

import vizpub

FACTOR = 3
LOCK = threading.Lock()


def tripling(x):
    return FACTOR * x


@vizpub.metric(level="overlay", unit="peers")
def tripled(interval):
    """Peers, tripled.

    And more.
    """
    return tripling(len(interval.peers))


@vizpub.metric(level="overlay", name="tripled")
def again(interval):
    return 1


@vizpub.metric(level="peer", name="Tripled")
def louder(interval):
    return 1


@vizpub.metric(level="galaxy")
def far(interval):
    return 1


@vizpub.metric(level="overlay", name="two words")
def spoken(interval):
    return 1


@vizpub.metric(level="message")
def degree(message):
    return 1


@vizpub.metric(level="peer", name="distinct_peers")
def whole(interval):
    return 1


@vizpub.metric(level="peer")
def locked(interval):
    return LOCK
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own_of_test.py"
    path.write_text(CODE)
    return path


def test_metric_is_what_the_file_says(file: Path) -> None:
    (found,) = load_own_metrics([f"{file}:tripled", f"{file}:tripled"])
    metric = found.metric
    assert (metric.name, metric.level, metric.unit) == ("tripled", "overlay", "peers")
    assert metric.meaning == "Peers, tripled."
    assert "return tripling(len(interval.peers))" in metric.definition
    before = metric.digest
    file.write_text(CODE.replace("FACTOR = 3", "FACTOR = 4"))
    del sys.modules["own_of_test"]
    (changed,) = load_own_metrics([f"{file}:tripled"])
    assert changed.metric.digest != before


def test_worker_without_the_file_has_the_function(file: Path, tmp_path: Path) -> None:
    (found,) = load_own_metrics([f"{file}:tripled"])
    code = tmp_path / "code"
    code.write_bytes(found.code)
    file.unlink()
    call = (
        f"import pickle, pathlib; f = pickle.loads(pathlib.Path({str(code)!r}).read_bytes());"
        "print(f(type('Interval', (), {'peers': [1, 2]})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}]; {call}"],
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "6\n"


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("{}:tripple", UnknownName, "own_of_test.py: 'tripple'; .*tripled"),
        ("{}:tripling", UseError, f"own_of_test.py:tripling: {NOT_DECORATED}"),
        ("{}:FACTOR", UseError, f"own_of_test.py:FACTOR: {NOT_DECORATED}"),
        ("{}:far", UnknownName, ":far: 'galaxy'; .*message, "),
        ("{}:spoken", UseError, ":spoken: 'two words'"),
        ("{}:degree", UseError, f":degree: .* 'degree' {re.escape(IS_TAKEN)}"),
        ("{}:whole", UseError, f":whole: .* 'distinct_peers' {re.escape(IS_TAKEN)}"),
        ("{}:locked", UseError, ":locked: .*TypeError"),
        ("{}x:degree", InputError, "own_of_test.pyx .*[.]py"),
        ("no/such.py:degree", InputError, "no/such.py:degree: .* no/such.py"),
        ("nobody", UnknownName, "own metric 'nobody'"),
    ],
)
def test_wrong_name_is_an_error_that_names_it(
    file: Path, name: str, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        load_own_metrics([name.format(file)])


@pytest.mark.parametrize("second", ["again", "louder"])
def test_two_metrics_of_one_name_are_an_error(file: Path, second: str) -> None:
    with pytest.raises(UseError, match=naming(f"{file}:{second}")):
        load_own_metrics([f"{file}:tripled", f"{file}:{second}"])


def stands_unquoted(database: duckdb.DuckDBPyConnection, word: str) -> bool:
    """Whether DuckDB takes a word for a column everywhere."""
    database.execute(f'CREATE OR REPLACE TABLE t ("{word}" DOUBLE)')
    try:
        database.execute(f"SELECT count({word}) AS n FROM t WHERE {word} > 1 GROUP BY {word}")
        database.execute(f"SELECT t.{word} AS {word} FROM t ORDER BY {word}")
    except duckdb.Error:
        return False
    return True


def test_reserved_words_and_columns_of_graphs_are_taken_without_case() -> None:
    with duckdb.connect() as database:
        words = database.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()
        reserved = [word for (word,) in words if not stands_unquoted(database, word)]
    assert len(reserved) > 80
    rows = OverlayRows([(0, "a")], [], [SubscriptionRow(0, 0, 0, 1)], [], layers=["Mesh", "far"])
    graph = OverlayGraph(rows, Clock(last=1))
    titles = [a.title for a in (*graph.node_attributes(()), *graph.edge_attributes())]
    gephi = ["Id", "Label", "Interval", "Timeset", "Source", "Target", "Type", "Kind", "Weight"]
    assert len(titles) > 8
    assert [n for n in (*reserved, *titles, *gephi, "Topics", "LABEL") if not is_taken(n)] == []
    assert not any(map(is_taken, ("core_number", "mean_age", "copies")))


def test_file_that_fails_is_an_error_with_its_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken_own.py"
    broken.write_text("import nothing_of_that_name")
    why = r"broken_own.py:x: .*ModuleNotFoundError: .*nothing_of_that_name"
    with pytest.raises(InputError, match=why):
        load_own_metrics([f"{broken}:x"])


def test_file_that_ends_the_program_is_an_error(tmp_path: Path) -> None:
    ending = tmp_path / "ending_own.py"
    ending.write_text("import sys\nsys.exit(0)")
    with pytest.raises(InputError, match=naming(f"{ending}:x", "SystemExit")):
        load_own_metrics([f"{ending}:x"])


def test_entry_point_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    point = EntryPoint("three", "own_of_test:tripled", named.GROUP)
    monkeypatch.setattr(
        named, "entry_points", lambda group: EntryPoints([point]).select(group=group)
    )
    monkeypatch.syspath_prepend(file.parent)
    sys.modules.pop("own_of_test", None)
    assert [own.metric.name for own in load_own_metrics(["three"])] == ["tripled"]


def test_columns_are_added_to_the_table_of_the_level() -> None:
    own = [OwnMetric(f"of_{level}", level, "meaning", "unit") for level in LEVELS]
    for table in TABLES:
        more = [f"of_{level}" for level, of in LEVELS.items() if of is table]
        extended = with_own(table, own)
        assert extended.names == [*table.names, *more]
        extends = table.name.startswith("metrics/") and table.name not in AFTERWARDS
        assert len(more) == extends, table.name
        assert all(map(is_taken, table.names))


def test_public_interval_is_that_of_the_tasks() -> None:
    import vizpub

    assert vizpub.Interval is Interval
