"""Wrong uses of the commands: each ends with its exit code, and its message says what was wrong and
what to do.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.cli.reference import commands
from vizpub.runstore.writer import writing

ROOT = Path(__file__).parents[3]
COLUMNS, LINES = 80, 8
TRACE = next((ROOT / "examples" / "gossipsub").glob("*.ndjson.gz"))

WRONG_USE, FAILED, NO_SERVICE = 2, 1, 3
MISUSES = [
    # misspelt names
    ("metrcs monday", WRONG_USE, ("metrcs", "metrics")),
    ("metrics monday --limt 3", WRONG_USE, ("--limt", "--limit")),
    ("metrics mondy", WRONG_USE, ("mondy", "monday", "vizpub --workspace", "runs list")),
    ("metrics monday topics --topic nws", WRONG_USE, ("nws", "news")),
    ("metrics monday peers --peer bbo", WRONG_USE, ("bbo", "bob")),
    (
        "metrics monday --columns diametr",
        WRONG_USE,
        ("diametr", "diameter", "vizpub runs tables metrics/overlay"),
    ),
    ("message monday m9", WRONG_USE, ("m9", "m0", "m1")),
    ("plot monday m9 --kind coverage -o x.png", WRONG_USE, ("m9", "m0")),
    ("query monday shortst-path", WRONG_USE, ("shortst-path", "shortest-path", "vizpub query")),
    ("sql monday 'FROM linkz'", WRONG_USE, ("linkz", "links")),
    ("compare monday --over churn", WRONG_USE, ("churn", "there are", "protocol", "intervals")),
    ("compare 'tuesday-*'", WRONG_USE, ("tuesday-*", "monday", "vizpub runs list")),
    ("lab simulate poldercats", WRONG_USE, ("poldercats", "poldercast")),
    # times and other units
    ("metrics monday --from 9", WRONG_USE, ("9", "0 to 3")),
    ("metrics monday --from 3 --to 1", WRONG_USE, ("3", "1")),
    ("topic monday news --at noon", WRONG_USE, ("noon", "0 to 3", "first", "last", "12.5s")),
    ("ingest trace.csv --run x --interval 5", WRONG_USE, ("--interval", "'5'", "500ms", "1s")),
    ("live collect lab --max-log much", WRONG_USE, ("--max-log", "much", "64MB")),
    ("lab simulate poldercast --churn exponential:20", WRONG_USE, ("churn", "20", "1.5s")),
    ("plot monday diameter --size 9in9 -o x.png", WRONG_USE, ("--size", "9in9", "3.5in", "9cm")),
    # options that do not apply, or exclude each other
    ("plot monday --kind coverage --at 1 -o x.png", WRONG_USE, ("--at", "coverage", "ecdf")),
    ("message monday --by topic", WRONG_USE, ("--by", "--missed")),
    ("message monday m0 --limit 1", WRONG_USE, ("--limit", "--missed")),
    ("message monday m0 --missed --by topic", WRONG_USE, ("--by", "leave out")),
    ("ingest trace.csv --run x --append --replace", WRONG_USE, ("--append", "--replace")),
    (f"ingest '{TRACE}' --run x --gap-tolerance 2", WRONG_USE, ("--gap-tolerance", "libp2p")),
    ("live collect lab --host 0.0.0.0", WRONG_USE, ("--host", "--certificate", "--key")),
    # files
    ("ingest nowhere.csv --run x", WRONG_USE, ("nowhere.csv", "vizpub ingest traces/ --run NAME")),
    ("ingest empty.csv --run x", WRONG_USE, ("empty", "reports", "Sources", "vizpub docs")),
    ("ingest folder --run x", WRONG_USE, ("folder", "vizpub ingest traces/ --run NAME")),
    ("ingest pipe --run x", WRONG_USE, ("pipe", "-")),
    ("ingest trace.csv --run a/b", WRONG_USE, ("a/b", "letters, digits")),
    ("plot monday diameter -o x.doc", WRONG_USE, ("x.doc", ".png", ".svg", ".pdf")),
    ("export html monday -o folder", WRONG_USE, ("folder", "name of a file")),
    ("metrics monday -o nowhere/x.csv", WRONG_USE, ("nowhere/x.csv", "nowhere")),
    ("metrics monday --format xml", WRONG_USE, ("xml", "csv", "json")),
    ("--workspace trace.csv runs list", WRONG_USE, ("--workspace", "trace.csv")),
    (f"--workspace {'x' * 300} runs list", WRONG_USE, ("x" * 300, "File name too long")),
    # states and services
    ("metrics half", FAILED, ("half", "ingesting", "vizpub ingest")),
    ("query monday overlay", NO_SERVICE, ("vizpub neo4j load monday",)),
    ("cypher 'RETURN 1'", NO_SERVICE, ("Neo4j", "vizpub neo4j start", "NEO4J_URI")),
    ("live watch monday", WRONG_USE, ("monday", "vizpub live collect monday")),
]
"""What is typed behind `vizpub`, its exit code, and the facts in its message."""


@pytest.fixture
def misuse(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Call vizpub in a workspace with the run `monday`, a trace and files that are none."""
    monkeypatch.delenv("NEO4J_URI", raising=False)
    monkeypatch.setenv("VIZPUB_WORKSPACE", str(workspace))
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.chdir(workspace)
    Path("trace.csv").write_text("src,dst,interval\na,b,0\n")
    Path("empty.csv").touch()
    Path("folder").mkdir()
    os.mkfifo("pipe")
    return lambda line: CliRunner().invoke(app, shlex.split(line))


def check_message(result: Result, code: int, *facts: str) -> None:
    """Check a message for its facts, and that it is short and for people."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    tells(" ".join(result.stderr.split()), *facts)
    lines = result.stderr.splitlines()
    assert len(lines) <= LINES
    too_wide = [line for line in lines if cell_len(line) > COLUMNS and len(line.split()) > 1]
    assert [line for line in too_wide if not line.startswith("Error: ")] == []  # typer's
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("line", "code", "facts"), MISUSES, ids=[line for line, _, _ in MISUSES]
)  # fmt: skip
def test_message_of_a_misuse_says_what_was_wrong_and_what_to_do(
    misuse: Callable[[str], Result], line: str, code: int, facts: tuple[str, ...]
) -> None:
    check_message(misuse(line), code, *facts)


@pytest.mark.parametrize(
    ("option", "value", "maxima"),
    [
        ("--seed", "123456789012345678901234567", {2**63 - 1}),
        ("--peers", "99999999999999", {10**7}),
        ("--runs", "100000000000", {10**4, 1000}),
        ("--seeds", "100000000000", {10**4}),
    ],
)
def test_number_that_is_too_large_is_refused_by_every_lab_command_with_the_maximum(
    misuse: Callable[[str], Result], option: str, value: str, maxima: set[int]
) -> None:
    having = [
        words.removeprefix("vizpub ")
        for words, command in commands()
        if words.startswith("vizpub lab ") and any(option in p.opts for p in command.params)
    ]
    assert having
    for words in having:
        name = " dissemination" if words.endswith("experiment run") else ""
        result = misuse(f"{words}{name} {option} {value}")
        assert (result.exit_code, result.stdout) == (WRONG_USE, ""), f"{words}: {result.output}"
        numbers = {int(number) for number in re.findall(r"\d+", result.stderr)}
        assert numbers & maxima, f"{words}: {result.stderr}"
        tells(result.stderr, option)
    assert not list(Path("simulations").rglob("*"))


def test_message_on_a_run_that_is_being_written_names_who_writes_it(
    misuse: Callable[[str], Result], workspace: Path
) -> None:
    with writing(workspace, "monday"):
        check_message(misuse("runs remove monday --yes"), WRONG_USE, "monday", str(os.getpid()))


def test_misspelt_variable_is_refused_with_the_nearest_one(
    misuse: Callable[[str], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_WORKSPCE", "elsewhere")
    check_message(misuse("runs list"), WRONG_USE, "VIZPUB_WORKSPCE", "VIZPUB_WORKSPACE")
