"""A statement of the user's own: read only, limited in time and rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import neo4j
import pytest

from tests.integration.graph.conftest import HISTORIES, Calls, Graph, History, free_text
from tests.support.few import few
from tests.support.words import naming, tells
from vizpub.graphstore.ask.free_text import NO_PROFILE, TOO_LARGE, open_stream
from vizpub.graphstore.ask.judge import ALLOWED, LOAD_CSV, NO_PROCEDURE
from vizpub.graphstore.ask.queries import Limits
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.sessions import LATE, TOO_MUCH_MEMORY, UNSTORABLE
from vizpub.model.errors import UseError

pytestmark = pytest.mark.neo4j


RUN = HISTORIES[0].facts.name


@pytest.fixture(scope="module", autouse=True)
def _run(once: Callable[[History], History]) -> None:
    once(HISTORIES[0])


def ask(graph: Graph, text: str, limits: Limits | None = None, **given: Any) -> Any:
    return free_text(graph.driver, graph.database, text, given, limits or Limits())


def test_statement_with_parameters_is_answered(graph: Graph) -> None:
    text = "MATCH (p:Peer {run: $run}) WHERE p.id < $below RETURN p.id AS id ORDER BY id"
    answer = ask(graph, text, run=RUN, below="3")
    assert (answer.columns, answer.rows, answer.more) == (("id",), [[0], [1], [2]], False)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("7", 7),
        ('"7"', "7"),
        ("abc", "abc"),
        ('["a", 1]', ["a", 1]),
        (7, 7),
        ("", ""),
        ("null", None),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
    ],
)
def test_parameter_is_parsed_as_json_else_kept_as_text(
    graph: Graph, given: object, value: object
) -> None:
    assert ask(graph, "RETURN $x AS x", x=given).rows == [[value]]


def test_nodes_and_paths_come_as_plain_values(graph: Graph) -> None:
    text = "MATCH p = (a:Peer {run: $run})-[:PRESENT]->(r:Run) RETURN a, p LIMIT 1"
    ((a, path),) = ask(graph, text, run=RUN).rows
    assert a["run"] == RUN
    assert path[0] == a
    assert path[1] == "PRESENT"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE (:Peer {key: 'x'})",
        "MATCH (n) DETACH DELETE n",
        "MATCH (r:Run) SET r.state = 'complete'",
        "CREATE INDEX x FOR (n:X) ON (n.x)",
        "MATCH (n:Peer) CALL (n) { DELETE n } IN TRANSACTIONS OF 10 ROWS",
        "DROP CONSTRAINT peer_key",
        "CALL () { CREATE (:Peer) } RETURN 1",
        "FOREACH (i IN [1] | CREATE (:Peer))",
        "CALL db.createLabel('Other')",
        "EXPLAIN CREATE (:Peer)",
    ],
)
def test_writing_statement_is_refused(graph: Graph, text: str) -> None:
    before = graph.ask("MATCH (n) RETURN count(n)")
    with pytest.raises(UseError, match=ALLOWED):
        ask(graph, text)
    assert graph.ask("MATCH (n) RETURN count(n)") == before


@pytest.mark.parametrize(
    "text",
    [
        "CALL dbms.listConfig()",
        "CALL dbms.killConnections(['bolt-1'])",
        "CALL dbms.queryJmx('*:*')",
        "CALL tx.setMetaData({user: 'another'})",
        "CALL db.clearQueryCaches()",
        "CALL `db`.`prepareForReplanning`(1)",
        "MATCH (p:Peer) WHERE COUNT { CALL db.awaitIndexes(1) RETURN 1 } > 0 RETURN p",
        "SHOW SETTINGS",
        "SHOW TRANSACTIONS",
        "SHOW TRANSACTIONS YIELD transactionId AS t TERMINATE TRANSACTION t YIELD message RETURN 1",
        "TERMINATE TRANSACTION 'neo4j-transaction-1'",
        "SHOW USERS",
        "CREATE USER eve SET PASSWORD 'overheard'",
        "ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'overheard'",
        "DROP USER neo4j",
        "UNWIND [1, 2] AS x CALL (x) { RETURN 1 AS y } IN TRANSACTIONS RETURN y",
    ],
)
def test_administration_statement_is_refused(graph: Graph, text: str) -> None:
    with pytest.raises(UseError, match=ALLOWED):
        ask(graph, text)


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[str, list[str]]]:
    """A page on this machine, and who asked for it."""
    asked: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a,b\n")

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page", asked
        server.shutdown()


@pytest.mark.parametrize(
    "text",
    [
        "LOAD CSV FROM $url AS row RETURN row",
        "CALL () { LOAD CSV FROM $url AS row RETURN row } RETURN row",
        "RETURN EXISTS { LOAD CSV FROM $url AS row RETURN row } AS is",
        "RETURN [1] AS row UNION LOAD CSV FROM $url AS row RETURN row",
    ],
)
def test_load_csv_statement_is_refused_before_any_fetch(
    graph: Graph, page: tuple[str, list[str]], text: str
) -> None:
    url, asked = page
    for place in (url, url.replace("127.0.0.1", "localhost"), "file:///etc/passwd", "ftp://db/x"):
        with pytest.raises(UseError, match=LOAD_CSV):
            ask(graph, text, url=place)
    assert asked == []


SPELT = {
    "LoadCSV": [
        "LOAD CSV FROM $url AS row",
        "load\tCsv WITH HEADERS FROM $url AS row",
        "LOAD/* ' */CSV FROM $url AS row",
        "LOAD // `\rCSV FROM $url AS row",
        "WITH 'a\\\\' AS q LOAD\u00a0CSV FROM $url AS row",
        "WITH 1 AS `/*` LOAD CSV FROM $url AS row",
        r"L\u004fAD CSV FROM $url AS row",
        r"LOAD\u0020CSV FROM $url AS row",
        r"WITH '\u0027 AS q LOAD CSV FROM $url AS row",
        "WITH '\\\\\\u0027 AS q LOAD CSV FROM $url AS row",
        r"WITH 1 AS q //\u000aLOAD CSV FROM $url AS row",
        r"WITH 1 AS q /* *\u002f LOAD CSV FROM $url AS row /* ' */",
    ],
    "TransactionApply": [
        "UNWIND [1] AS row CALL (row) { RETURN 1 AS z } IN TRANSACTIONS",
        "UNWIND [1] AS row CALL (*) { RETURN {a: {b: 1}} AS z } IN 2 CONCURRENT TRANSACTIONS",
        "UNWIND [1] AS row CALL { RETURN '}' AS z } in/**/transactions OF 3 ROWS",
        r"UNWIND [1] AS row C\u0041LL (row) \u007b RETURN 1 AS z \u007d IN TRANSACTIONS",
        "UNWIND [1] AS row OPTIONAL CALL (row) { RETURN 1 AS z } IN TRANSACTIONS",
    ],
    "ProcedureCall": [
        "CALL db.awaitIndexes(1)",
        "CALL `db`./**/awaitIndexes(1)",
        r"CALL db\u002eawaitIndexes(1)",
        "OPTIONAL CALL db.awaitIndexes(1)",
    ],
}
"""Spellings of clauses that are refused, by the operator that Neo4j makes of them."""

EXPRESSIONS = [
    "CASE WHEN true THEN COUNT { %s RETURN 1 AS one } END",
    "coalesce(COLLECT { %s RETURN 1 AS one }, [])",
    "[x IN [1] WHERE EXISTS { %s RETURN 1 AS one } | x]",
    "reduce(a = 0, x IN [1] | a + COUNT { %s RETURN 1 AS one })",
    "all(x IN [1] WHERE COUNT { %s RETURN 1 AS one } > 0)",
    "{a: COUNT { %s RETURN 1 AS one }}",
    "EXISTS { MATCH (n) WHERE COUNT { %s RETURN 1 AS one } > 0 }",
    "size([(a)-->(b) WHERE EXISTS { %s RETURN 1 AS one } | 1])",
]


def operators(plan: Any) -> set[str]:
    below = (operators(child) for child in plan.get("children", ()))
    return {plan["operatorType"].partition("@")[0]}.union(*below)


def explained(graph: Graph, text: str) -> set[str]:
    """What Neo4j would do; it raises where it would do nothing."""
    with graph.driver.session(database=graph.database) as session:
        summary = session.run("EXPLAIN\n" + text, url="http://127.0.0.1:1/x").consume()  # type: ignore[arg-type]
    return operators(summary.plan)


@pytest.mark.parametrize(
    ("operator", "spelt"), [(name, spelt) for name, texts in SPELT.items() for spelt in texts]
)
def test_clause_is_refused_in_every_spelling_that_neo4j_runs(
    graph: Graph, operator: str, spelt: str
) -> None:
    text = f"{spelt} RETURN 1 AS one"
    assert operator in explained(graph, text)
    with pytest.raises(UseError, match=ALLOWED):
        ask(graph, text, url="http://127.0.0.1:1/x")


@pytest.mark.parametrize(
    "spelt",
    few([spelt for texts in SPELT.values() for spelt in texts], [of for of, *_ in SPELT.values()]),
)
def test_clause_is_refused_in_every_expression_that_neo4j_runs(graph: Graph, spelt: str) -> None:
    for expression in EXPRESSIONS:
        text = f"RETURN {expression % spelt} AS y"
        explained(graph, text)
        with pytest.raises(UseError, match=ALLOWED):
            ask(graph, text, url="http://127.0.0.1:1/x")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_write_in_an_expression_is_refused(graph: Graph, expression: str) -> None:
    """By Neo4j itself, as nowhere else."""
    for write in ("CREATE (:Peer)", "CALL () { CREATE (:Peer) }", "MATCH (n) SET n.x = 1"):
        with pytest.raises(UseError):
            ask(graph, f"RETURN {expression % write} AS y")


@pytest.mark.parametrize(
    "text",
    [
        "RETURN 'LOAD CSV' AS a, \"CALL x.y()\" AS b, '} IN TRANSACTIONS' AS c // LOAD CSV",
        "RETURN 1 AS `LOAD CSV` /* CALL { } IN TRANSACTIONS */",
        "WITH {load: 1, csv: 2, call: 3, transactions: [3]} AS m "
        "RETURN m.load + m.csv AS load, m.call IN m.transactions AS csv",
        "WITH [1] AS transactions RETURN {a: 1} IN transactions AS x",
        "CALL (*) { RETURN [1] AS transactions } RETURN COUNT { RETURN 1 } IN transactions AS x",
        r"RETURN 'C:\\users\\load' AS a, '\u004cOAD CSV\u000a' AS b, '\"' AS \u0061bc",
        "OPTIONAL MATCH (n:Call WHERE n.load = $call) RETURN n.call AS call",
        "RETURN 1 AS reload, 2 AS csv_1, 3 AS LOADCSV",
        "CALL db.labels() YIELD label RETURN count(label) >= 0 AS there",
        "RETURN COUNT { CALL db.labels() YIELD label RETURN label } >= 0 AS there",
    ],
)
def test_statement_that_only_holds_such_words_is_answered(graph: Graph, text: str) -> None:
    answer = ask(graph, text, call=1)
    with graph.driver.session(database=graph.database) as session:
        found = session.run(text, call=1)  # type: ignore[arg-type]
        assert answer.columns == tuple(found.keys())
        assert answer.rows == [list(record.values()) for record in found]


def test_settings_block_load_csv(graph: Graph, page: tuple[str, list[str]]) -> None:
    """Also in an expression, which no plan shows; of a local server and of our own image."""
    if os.environ.get("NEO4J_URI"):
        pytest.skip("only the local server's settings are ours")
    url, asked = page
    load = "LOAD CSV FROM $url AS row"
    nested = f"RETURN CASE WHEN true THEN COUNT {{ {load} RETURN 1 AS one }} END AS y"
    for place in (url, url.replace("127.0.0.1", "localhost"), "file:///etc/passwd"):
        for text in (f"{load} RETURN row", nested):
            with pytest.raises(neo4j.exceptions.ClientError, match=r"blocked|is false"):
                graph.ask(text, url=place)
    assert asked == []


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("RETURN 1 AS x;", [[1]]),
        ("// a word before\nRETURN 1 AS x /* and after */", [[1]]),
        ("CYPHER runtime=slotted RETURN 1 AS x", [[1]]),
        ("EXPLAIN MATCH (n) RETURN n", []),
        ("CALL db.labels() YIELD label WITH label WHERE label = 'Peer' RETURN label", [["Peer"]]),
        ("SHOW INDEXES YIELD name WHERE name = 'no such' RETURN name", []),
    ],
)
def test_reading_statement_of_unusual_form_is_answered(
    graph: Graph, text: str, rows: list[list[Any]]
) -> None:
    assert ask(graph, text).rows == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MATCH (n RETURN n", "Invalid input"),
        ("RETURN $missing AS x", "missing"),
        ("", "Unexpected end"),
        ("RETURN 1 AS x; MATCH (n) DETACH DELETE n", "one statement"),
        ("MATCH (n)\n  RETRN n", r"RETRN[^$]*column 3[^$]*\"  RETRN n\""),
        (":param x => 1", "Invalid input"),
        ("BEGIN", "Invalid input"),
        ("PROFILE MATCH (n) RETURN n", NO_PROFILE),
        ("PROFILE CREATE (:Peer)", NO_PROFILE),
        ("CREATE DATABASE other", "Unsupported administration command"),
        ("CALL apoc.load.json('http://db')", NO_PROCEDURE),
        ("RETURN 1 / 0", "by zero"),
    ],
)
def test_invalid_statement_is_refused_with_the_reason(graph: Graph, text: str, words: str) -> None:
    with pytest.raises(UseError, match=words):
        ask(graph, text)


@pytest.mark.parametrize("value", ["99999999999999999999", '"\\ud800"', "\udcff"])
def test_parameter_neo4j_cannot_hold_is_refused(graph: Graph, value: str) -> None:
    with pytest.raises(UseError, match=UNSTORABLE):
        ask(graph, "RETURN $x", x=value)


def test_endless_answer_is_streamed_and_can_be_abandoned(graph: Graph) -> None:
    text = "UNWIND range(1, 1000000000) AS x RETURN x"
    with open_stream(graph.driver, graph.database, text, {}) as found:
        assert [next(found.rows) for _ in range(3)] == [[1], [2], [3]]
    assert ask(graph, "RETURN 1 AS x").rows == [[1]]


def test_label_that_does_not_exist_is_said_in_one_line(graph: Graph) -> None:
    def warnings(text: str) -> tuple[str, ...]:
        with open_stream(graph.driver, graph.database, text, {}) as found:
            assert list(found.rows) == [[0]]
            return found.warnings

    (line,) = warnings("MATCH (p:Pear)\nRETURN count(p) AS x")
    assert "Pear" in line
    assert "\n" not in line
    assert warnings("MATCH (p:Peer {run: 'nosuch'}) RETURN count(p) AS x") == ()


def test_statement_beyond_the_time_limit_is_stopped(graph: Graph) -> None:
    text = "UNWIND range(1, 1000000000) AS x RETURN sum(x % 7) AS y"
    with pytest.raises(UseError, match=LATE):
        ask(graph, text, Limits(timeout_s=0.5))


def test_parameter_without_a_value_is_named_with_how_to_give_it(graph: Graph) -> None:
    with pytest.raises(UseError, match=naming("$run", "-p run=VALUE")):
        ask(graph, "MATCH (p:Peer {run: $run}) RETURN p.name")


def test_statement_ends_at_the_limit_of_rows(graph: Graph) -> None:
    text = "UNWIND range(1, 1000000000) AS x RETURN x"
    answer = ask(graph, text, Limits(timeout_s=20, rows=3))
    assert (answer.rows, answer.more) == ([[1], [2], [3]], True)


def test_statement_beyond_the_memory_limit_is_stopped(graph: Graph) -> None:
    text = (
        f"WITH {LONG} AS s UNWIND range(1, 1000000000) AS x WITH collect(s) AS xs RETURN size(xs)"
    )
    with pytest.raises(UseError, match=TOO_MUCH_MEMORY):
        ask(graph, text, Limits(timeout_s=110))
    assert ask(graph, "RETURN 1 AS x").rows == [[1]]


LONG_S = 600.0
"""Two million numbers take half a minute on a busy machine."""
LONG = "reduce(s = 'ab', i IN range(1, 16) | s + s)"


@pytest.mark.parametrize(
    "row",
    few(
        ["range(1, 20000 + 0 * i)", "s + i", "{a: {b: [s]}, i: i}"],
        ["s + i", "{a: {b: [s]}, i: i}"],
    ),
)
def test_answer_beyond_the_limit_of_bytes_is_refused(graph: Graph, row: str) -> None:
    text = f"UNWIND range(1, 100) AS i WITH {LONG} AS s, i RETURN {row} AS x"
    refused = pytest.raises(UseError, match=TOO_LARGE)
    with refused:
        ask(graph, text, Limits(LONG_S, 1000, 2**20))
    with refused:
        ask(graph, text, Limits(LONG_S, 1000, 2**16))  # a single row is larger
    assert len(ask(graph, text, Limits(LONG_S, 100, 2**25)).rows) == 100
    assert len(ask(graph, text, Limits(LONG_S, 1, 2**20)).rows) == 1


def test_limit_of_bytes_bounds_what_is_held_where_all_rows_are_taken(graph: Graph) -> None:
    """What is held at once is bounded, not what goes on to a file."""
    with open_stream(
        graph.driver, graph.database, "UNWIND range(1, 9000) AS x RETURN x", {}, Limits(size=2**16)
    ) as found:
        assert [x for (x,) in found.rows] == list(range(1, 9001))


def test_default_limits_are_30_seconds_and_1000_rows(
    neo4j_server: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = []

    def query(text: str, timeout: float, **more: Any) -> neo4j.Query:
        seconds.append(timeout)
        return neo4j.Query(text, timeout=timeout, **more)

    monkeypatch.setattr("vizpub.graphstore.ask.deadline.Query", query)
    words = ["UNWIND range(1, 5000) AS x RETURN x", "--format", "csv"]
    done = Calls(tmp_path, neo4j_server)("cypher", *words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == ["x", *map(str, range(1, 1001))]
    tells(done.stderr, "--limit")
    assert seconds
    assert set(seconds) == {30.0}
