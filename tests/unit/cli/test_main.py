"""The commands that need no server, as a user calls them."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tests.support.imports import codes_and_imports
from tests.support.words import tells, unfinished, unknown
from vizpub.cli.commands.figures.pictures import ONE_MESSAGE
from vizpub.cli.commands.figures.plot import TIMES_PEERS_OR_RUNS
from vizpub.cli.main import _show_log, app
from vizpub.cli.service import STATES_UNKNOWN
from vizpub.cli.settings import Settings
from vizpub.graphstore.gexf.check import check_gexf
from vizpub.model.errors import NO_ANSWER, OutOfRange
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.runstore.integrity import OTHER_BYTES
from vizpub.runstore.journal import FILE as LOG_FILE
from vizpub.runstore.journal import Journal
from vizpub.runstore.store import open_run

ROOT = Path(__file__).parents[3]
Call = Callable[..., Result]


@pytest.fixture
def vizpub(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A call on the workspace with the run `monday`."""
    monkeypatch.delenv("NEO4J_URI", raising=False)
    monkeypatch.delenv("VIZPUB_WORKSPACE", raising=False)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), *words])

    return call


def data(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_runs_list_shows_complete_and_unfinished_runs(vizpub: Call) -> None:
    half, monday = data(vizpub("runs", "list", "--format", "json"))
    assert (half["run"], half["state"], half["peers"]) == ("half", "ingesting", None)
    assert (monday["run"], monday["intervals"], monday["links"]) == ("monday", 4, 5)
    assert monday["interval_us"] == 1_000_000


def test_broken_run_is_listed_with_what_to_do_beside_the_others(
    vizpub: Call, workspace: Path
) -> None:
    (workspace / "runs/half/run.json").write_text("{")
    listed = vizpub("runs", "list", "--format", "json")
    half, monday = data(listed)
    assert (half["run"], half["state"], half["links"]) == ("half", "broken", None)
    assert (monday["run"], monday["state"], monday["links"]) == ("monday", "complete", 5)
    tells(listed.stderr, "'half'", "run.json", "--replace")
    shown = vizpub("runs", "show", "half")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert vizpub("runs", "show", "monday").exit_code == 0
    assert vizpub("runs", "remove", "half", "--yes").exit_code == 0
    assert [run["run"] for run in data(vizpub("runs", "list", "--format", "json"))] == ["monday"]


def test_runs_check_names_every_damaged_file_and_exits_with_1(
    vizpub: Call, workspace: Path
) -> None:
    whole = vizpub("runs", "check", "monday", "--format", "json")
    assert data(whole) == []
    tells(whole.stderr, "15", "'monday'")
    (links,) = (workspace / "runs/monday/data/links").rglob("*.parquet")
    content = links.read_bytes()
    links.write_bytes(content[:99] + bytes([content[99] ^ 4]) + content[100:])
    (peers,) = (workspace / "runs/monday/data/peers").rglob("*.parquet")
    peers.unlink()
    checked = vizpub("runs", "check", "monday", "--format", "json")
    assert checked.exit_code == 1
    run = workspace / "runs/monday"
    assert {row["file"]: row["why"] for row in json.loads(checked.stdout)} == {
        str(links.relative_to(run)): OTHER_BYTES,
        str(peers.relative_to(run)): "a file of table peers is missing",
    }
    tells(checked.stderr, "2 of 15", "'monday'", "--replace")
    assert vizpub("runs", "check", "tuesday").exit_code == 2


def test_runs_check_looks_at_the_folders_for_other_programs_and_mends_them(
    vizpub: Call, workspace: Path
) -> None:
    run = workspace / "runs/monday"
    foreign = run / "links" / "mine.parquet"
    foreign.write_bytes(b"mine")
    checked = vizpub("runs", "check", "monday", "--format", "json")
    assert checked.exit_code == 1
    (row,) = json.loads(checked.stdout)
    assert row["file"] == str(foreign.resolve().relative_to(run.resolve()))
    tells(checked.stderr, "15", "'monday'", "vizpub runs check monday --mend")
    assert vizpub("runs", "check", "monday", "--mend").exit_code == 0
    whole = vizpub("runs", "check", "monday", "--format", "json")
    assert data(whole) == []
    tells(whole.stderr, "15", "'monday'")


def test_runs_path_and_files_lead_to_the_rows_of_a_run(vizpub: Call, workspace: Path) -> None:
    run = open_run(workspace, "monday")
    for table in ("links", "metrics/overlay"):
        printed = vizpub("runs", "path", "monday", table)
        assert printed.exit_code == 0
        rows = run.read(table)
        assert pq.read_table(printed.stdout.rstrip("\n")).num_rows == len(rows) > 0
        listed = data(vizpub("runs", "files", "monday", table, "--format", "json"))
        paths = [Path(str(row["file"])) for row in listed]
        assert sum(pq.read_metadata(path).num_rows for path in paths) == len(rows)
        assert [row["bytes"] for row in listed] == [path.stat().st_size for path in paths]
    everywhere = data(vizpub("runs", "files", "monday", "--format", "json"))
    assert {row["table"] for row in everywhere} == {*run.manifest.tables}
    for command in ("path", "files"):
        refused = vizpub("runs", command, "monday", "link")
        assert refused.exit_code == 2
        tells(refused.stderr, unknown("table", "link", "links"))


def test_runs_list_works_without_neo4j_and_says_why(
    vizpub: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = vizpub("runs", "list", "--format", "json")
    assert [run["neo4j"] for run in data(listed)] == [None, None]
    assert listed.stderr == ""
    (workspace / "neo4j").mkdir()
    assert [run["neo4j"] for run in data(vizpub("runs", "list", "--format", "json"))] == [None] * 2
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    for password, why in (
        (None, "NEO4J_PASSWORD_FILE"),
        ("secret", NO_ANSWER),
    ):
        if password:
            monkeypatch.setenv("NEO4J_PASSWORD", password)
        listed = vizpub("runs", "list", "--format", "json")
        assert [run["neo4j"] for run in data(listed)] == [None, None]
        tells(listed.stderr, STATES_UNKNOWN, why)


def test_empty_workspace_lists_no_run_and_suggests_ingest(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--workspace", str(tmp_path / "none"), "runs", "list"])
    assert result.exit_code == 0
    assert "vizpub ingest PATH --run NAME" in result.stderr
    assert not (tmp_path / "none").exists()


def test_workspace_comes_from_the_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_WORKSPACE", str(workspace))
    result = CliRunner().invoke(app, ["runs", "list", "--format", "jsonl"])
    assert len(result.stdout.splitlines()) == 2


def test_runs_show_tells_facts_and_damage_in_each_format(vizpub: Call) -> None:
    shown = vizpub("runs", "show", "monday").stdout
    for line in ("intervals 0 to 3 (1 s each)", "a.json: cut short", "1 file, 1,234 bytes"):
        assert line in shown
    (manifest,) = data(vizpub("runs", "show", "monday", "--format", "json"))
    assert manifest["inputs"] == [
        {"path": "a.json", "size": 1234, "sha256": "00", "damage": "cut short"}
    ]
    assert "ingesting" in vizpub("runs", "show", "half").stdout
    facts = dict(
        csv.reader(io.StringIO(vizpub("runs", "show", "monday", "--format", "csv").stdout))
    )
    assert (facts["fact"], facts["run"], facts["rows of links"]) == ("value", "monday", "5")


def test_rows_of_tables_are_printed_by_sql_alone(vizpub: Call) -> None:
    for table, name in (("quarantine", "quarantine"), ("metrics/peers", "metrics.peers")):
        refused = vizpub("runs", "show", "monday", table)
        assert refused.exit_code == 2
        tells(refused.stderr, f"vizpub sql monday 'FROM {name}'")
    assert vizpub("runs", "show", "monday", "linsk").exit_code == 2


def test_quarantined_records_are_shown_with_control_characters_escaped(vizpub: Call) -> None:
    assert "\\x1b[31mred" in vizpub("sql", "monday", "FROM quarantine").stdout
    (record,) = data(vizpub("sql", "monday", "FROM quarantine", "--format", "json"))
    assert record == {"file": "a.json", "line": 7, "reason": "not JSON", "text": "\x1b[31mred"}
    links = data(vizpub("sql", "monday", "FROM links", "--limit", "2", "--format", "json"))
    assert [row["layer"] for row in links] == ["mesh", "overlay"]


def test_metrics_are_filtered_and_printed_in_each_format(vizpub: Call) -> None:
    words = "metrics monday --from 1 --to 2.5s --columns diameter --format json"
    assert data(vizpub(*words.split())) == [
        {"interval": 1, "diameter": 2}, {"interval": 2, "diameter": 1},
    ]  # fmt: skip
    table = vizpub("metrics", "monday", "peers", "--peer", "dave", "--columns", "degree").stdout
    assert table.splitlines()[2].split() == ["0", "3", "dave", "2"]
    text = vizpub("metrics", "monday", "overlay", "--limit", "1", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["network_size"], row["clustering_mean"]) == ("4", "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("metrics mondy", unknown("run", "mondy", "monday")),
        ("metrics half", unfinished("half", "ingesting")),
        ("metrics ../monday", NO_NAME_OF_A_RUN),
        ("metrics monday peer", unknown("table of metrics", "peer", "peers")),
        (
            "metrics monday --columns diametr",
            unknown("metrics/overlay column", "diametr", "diameter"),
        ),
        ("metrics monday --from 9", str(OutOfRange("interval", "9", "intervals 0 to 3"))),
        ("metrics monday topics --topic nws", unknown("topic", "nws", "news")),
        ("metrics monday --peer alice", "metrics/overlay"),
        ("metrics monday --format xml", unknown("format", "xml")),
        ("metrics monday -o x.xlsx", "--format"),
        ("metrics monday -o no/such/x.csv", "no/such/x.csv"),
        ("metrcs monday", "mean metrics?"),
        ("metrics monday --colums a", "--columns"),
        ("runs tables metrics/overly", unknown("table", "metrics/overly", "metrics/overlay")),
        ("runs show nosuch", unknown("run", "nosuch")),
        ("runs remove nosuch --yes", unknown("run", "nosuch")),
        ("plot monday diameter -o x.bmp", ".png, .svg, .pdf"),
        ("plot monday -o x.png", "vizpub runs tables metrics/overlay"),
        ("plot monday diameter --kind pie -o x.png", unknown("kind of figure", "pie")),
        ("plot monday --kind tree -o x.png", ONE_MESSAGE),
        ("plot monday m9 --kind tree -o x.png", unknown("message", "m9")),
        ("plot monday m0 --kind tree --layout star -o x.png", unknown("layout", "star")),
        ("plot monday degree --kind ccdf --at 1,99 -o x.png", "99"),
        (
            "plot monday degree --kind ccdf --at 1 --peer bob --peer dave -o x.png",
            TIMES_PEERS_OR_RUNS,
        ),
        ("export csv monday nosuch -o out", unknown("table", "nosuch")),
        ("export csv monday", "-o DIR"),
        ("export gexf monday --topic a --message b", "--topic does not apply to a --message"),
        ("export check nosuch.gexf", "nosuch.gexf"),
        ("export html monday", "-o FILE"),
        ("export html nosuch -o x.html", unknown("run", "nosuch")),
        ("export html monday --topic nosuch -o x.html", unknown("topic", "nosuch")),
        ("export html monday --layers nosuch -o x.html", unknown("layer", "nosuch")),
        ("export html monday --from 99 -o x.html", "99"),
        ("query monday shortst-path", unknown("query", "shortst-path", "shortest-path")),
        ("ingest nosuch --run x --interval soon", "'soon'"),
        ("ingest nosuch --run x --max-line long", "'long'"),
    ],
)
def test_command_arguments_are_refused_with_the_reason(vizpub: Call, words: str, why: str) -> None:
    result = vizpub(*words.split())
    assert result.exit_code == (1 if "half" in words else 2)
    assert result.stdout == ""
    assert why in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_without_server_exit_3_and_name_neo4j_start(vizpub: Call) -> None:
    for words in ("query runs", "cypher x", "query tuesday overlay", "neo4j verify monday"):
        result = vizpub(*words.split())
        assert (result.exit_code, result.stdout) == (3, ""), words
        assert "vizpub neo4j start" in result.stderr


def test_question_to_a_run_that_no_server_has_names_vizpub_load(vizpub: Call) -> None:
    for words in ("query monday shortest-path 0 alice bob", "query monday overlay"):
        result = vizpub(*words.split())
        assert result.exit_code == 3, words
        assert "vizpub neo4j load monday" in result.stderr


def test_gexf_is_exported_without_a_server(vizpub: Call, tmp_path: Path) -> None:
    """Peers and pairs of linked peers, against the tables."""
    file = tmp_path / "monday.gexf"
    for words in ((), ("--topic", "news"), ("--message", "m0"), ("--attributes", "degree,degree")):
        result = vizpub("export", "gexf", "monday", *words, "-o", str(file))
        assert result.exit_code == 0, result.stderr
        assert list(check_gexf(file)) == []
    written = ElementTree.parse(file)
    names = written.iterfind(".//{*}node//{*}attvalue[@for='name']")
    peers = csv.DictReader(io.StringIO(vizpub("export", "csv", "monday", "peers").stdout))
    assert [name.get("value") for name in names] == [peer["name"] for peer in peers]
    told = tmp_path / "told.json"
    assert vizpub("export", "check", str(file), "-o", str(told)).exit_code == 0
    assert json.loads(told.read_text("utf-8")) == []
    other = vizpub("export", "gexf", "tuesday")
    assert (other.exit_code, unknown("run", "tuesday") in other.stderr) == (2, True)


def test_html_is_exported_without_a_server(vizpub: Call, tmp_path: Path) -> None:
    file = tmp_path / "monday.html"
    file.write_text("as it was", "utf-8")
    refused = vizpub("export", "html", "monday", "--topic", "nosuch", "-o", str(file))
    assert (refused.exit_code, file.read_text("utf-8")) == (2, "as it was")
    for words in ((), ("--from", "1", "--to", "2", "--topic", "news", "--layers", "mesh")):
        result = vizpub("export", "html", "monday", *words, "-o", str(file))
        assert (result.exit_code, result.stdout) == (0, ""), result.stderr
        assert file.name in result.stderr
        assert file.read_text("utf-8").endswith("</html>\n")
    assert list(tmp_path.glob("*.part*")) == []


def test_topics_and_messages_are_answered_without_a_server(vizpub: Call) -> None:
    run = ("--format", "csv")
    assert vizpub("topic", "monday", "--at", "1", *run).stdout.startswith("topic,subscribers,")
    assert vizpub("topic", "monday", "news", *run).stdout.startswith("src,dst,layers,topics\n")
    spread = vizpub("message", "monday", "m0", *run)
    assert spread.stdout.startswith("hop,time_us,from,to,first,subscribed\n"), spread.stderr
    other = vizpub("topic", "tuesday", "news")
    assert (other.exit_code, unknown("run", "tuesday") in other.stderr) == (2, True)


def test_times_in_a_message_tree_are_ms_since_its_publication(vizpub: Call) -> None:
    exported = [
        csv.DictReader(io.StringIO(vizpub("export", "csv", "monday", table).stdout))
        for table in ("publications", "receptions")
    ]
    published, received = map(list, exported)
    (at,) = (int(row["time_us"]) for row in published if row["name"] == "m0")
    delays = [
        (int(row["time_us"]) - at) / 1000
        for row in received
        if row["message"] == "0" and row["first"] == "true"
    ]
    _, _, *tree = vizpub("message", "monday", "m0").stdout.splitlines()
    found = [row.split()[-3] for row in tree]
    assert sorted(float(delay) for delay in found if delay != "-") == sorted(delays)
    assert delays


def test_log_of_a_run_is_shown_to_people_and_as_it_is(vizpub: Call, workspace: Path) -> None:
    journal = Journal(workspace / "runs/monday")
    with journal.stage("names", lambda: {"peers": 1200, "topics": 3}):
        pass
    events = data(vizpub("runs", "log", "monday", "--format", "json"))
    lines = (workspace / "runs/monday" / LOG_FILE).read_text().splitlines()
    assert events == [json.loads(line) for line in lines]
    assert events[-1]["rows"] == {"peers": 1200, "topics": 3}
    shown = vizpub("runs", "log", "monday").stdout
    assert "peers 1,200, topics 3" in shown
    assert events[0]["at"][:19].replace("T", " ") in shown
    assert events[0]["at"] not in shown
    first = vizpub("runs", "log", "monday", "--limit", "1", "--format", "csv").stdout
    assert [line.split(",")[1] for line in first.splitlines()] == ["event", "stage begun"]


def test_run_is_removed_only_after_confirmation(vizpub: Call, workspace: Path) -> None:
    (workspace / "runs/monday/large").write_bytes(bytes(7_000_000))
    asked = vizpub("runs", "remove", "monday")  # nobody answers the question
    assert asked.exit_code == 2
    first, question = asked.stderr.splitlines()[:2]
    assert re.fullmatch(
        rf"run 'monday': {workspace}/runs/monday, 7(.\d+)? MB; no copy in Neo4j", first
    )
    assert question.startswith("Remove run 'monday'")
    other = vizpub("runs", "remove", "nosuch")
    assert "Remove" not in other.stderr
    assert unknown("run", "nosuch") in other.stderr
    assert (workspace / "runs" / "monday").exists()
    (workspace / "browser" / "monday").mkdir(parents=True)  # the guide of Neo4j Browser
    assert vizpub("runs", "remove", "monday", "--yes").exit_code == 0
    assert not list(workspace.glob("*/monday"))


def test_tables_command_explains_tables_and_columns(vizpub: Call) -> None:
    assert {"links", "metrics/overlay"} <= {
        row["table"] for row in data(vizpub("runs", "tables", "--format", "json"))
    }
    columns = data(vizpub("runs", "tables", "metrics/overlay", "--format", "json"))
    diameter = next(row for row in columns if row["column"] == "diameter")
    assert (diameter["unit"], diameter["graph"]) == ("hops", "directed")
    assert diameter["if degenerate"] == "null where m = 0"
    for column in (diameter, next(row for row in columns if row["column"] == "interval")):
        place = Path(__file__).parents[3] / column["computed in"]
        assert column["column"] in place.read_text("utf-8")
    every = data(vizpub("runs", "tables", "--columns", "--format", "json"))
    assert len(every) > 150
    assert {row["table"] for row in every} > {"peers", "metrics/messages"}


def test_csv_export_writes_a_file_for_each_known_table(vizpub: Call, tmp_path: Path) -> None:
    assert vizpub("export", "csv", "monday", "-o", str(tmp_path / "out")).exit_code == 0
    with (tmp_path / "out" / "links.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 5
    assert (tmp_path / "out" / "metrics-peers.csv").exists()
    assert not (tmp_path / "out" / "traffic.csv").exists()  # unknown, not empty


def test_csv_export_goes_to_stdout_file_or_folder(vizpub: Call, tmp_path: Path) -> None:
    links = vizpub("export", "csv", "monday", "links").stdout
    assert links.splitlines()[:2] == [
        "src,dst,layer,topic,valid_from,valid_to",
        f"0,1,mesh,0,0,{2**63 - 1}",
    ]
    assert vizpub("export", "csv", "monday", "traffic").stdout.startswith("peer,interval")
    vizpub("export", "csv", "monday", "links", "-o", str(tmp_path / "x.csv"))
    assert (tmp_path / "x.csv").read_text("utf-8") == links
    vizpub("export", "csv", "monday", "links", "-o", str(tmp_path / "folder"))
    assert (tmp_path / "folder" / "links.csv").read_text("utf-8") == links


@pytest.mark.parametrize(
    "words",
    [
        "links diameter",
        "subscribers --topic news",
        "degree --peer dave",
        "degree --kind ccdf --from 1",
        "hit_ratio hops_mean --kind ecdf",
        "--kind coverage",
        "m1 --kind coverage",
        "degree --peer dave --peer alice",
        "degree --kind ccdf --at 0,3",
        "degree --kind density --peer bob --peer alice",
        "subscribers --kind density",
        "hit_ratio --kind ccdf --at 0",
        "m0 --kind tree --hops 1",
        "m1 --kind tree --layout layers",
        "--kind overlay --topic news --at 1",
        "--kind overlay --layers mesh --layout ring --at 1",
        "gauges/hops gauges/hops/per/lookups",
        "gauges/hops --peer alice --peer bob",
        "gauges/hops --kind ecdf --from 0 --to 1",
        "delay_us --kind ecdf --topic news",
        "delay_us hop --kind ccdf --peer bob --peer carol",
    ],
)
def test_plot_writes_the_figure_and_its_numbers_as_csv(
    vizpub: Call, tmp_path: Path, words: str
) -> None:
    file = tmp_path / "figure.svg"
    result = vizpub("plot", "monday", *words.split(), "-o", str(file))
    assert result.exit_code == 0, result.stderr
    assert file.read_text("utf-8").startswith("<?xml")
    with file.with_suffix(".csv").open(newline="") as numbers:
        assert list(csv.DictReader(numbers))


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("delay_us", "run.delays()"),
        ("delay_us_p95", "metrics/messages"),
        ("degree", "metrics/peers"),
        ("network_size --kind ecdf", "metrics/overlay"),
    ],
)
def test_metric_in_a_figure_that_cannot_show_it_names_its_table_and_kind(
    vizpub: Call, tmp_path: Path, words: str, place: str
) -> None:
    result = vizpub("plot", "monday", *words.split(), "-o", str(tmp_path / "f.svg"))
    assert result.exit_code == 2
    kind = "a series" if place == "metrics/overlay" else "--kind ecdf"
    assert re.search(rf"{re.escape(place)}.*\(plot: {kind}", result.stderr.replace("\n ", ""))


def test_metric_that_is_unknown_everywhere_is_named_beside_its_figure(
    vizpub: Call, tmp_path: Path
) -> None:
    words = ["diameter", "average_path_length", "-o", str(tmp_path / "f.svg")]
    result = vizpub("plot", "monday", *words)
    assert result.exit_code == 0
    assert "average_path_length" in result.stderr
    assert "diameter" not in result.stderr  # in the last interval only


def test_gauges_are_plotted_as_they_are_compared(vizpub: Call, tmp_path: Path) -> None:
    """The mean and the quotient of totals over peers; without a report unknown."""
    words = ["gauges/hops", "gauges/hops/per/lookups", "-o", str(tmp_path / "g.png")]
    assert vizpub("plot", "monday", *words).exit_code == 0
    with (tmp_path / "g.csv").open(newline="") as rows:
        assert [tuple(row.values()) for row in csv.DictReader(rows)] == [
            ("0", "6.0", "6.0"), ("1", "", ""), ("2", "1.0", ""), ("3", "", ""),
        ]  # fmt: skip
    wrong = vizpub("plot", "monday", "gauges/hops/per/hobs", "-o", str(tmp_path / "w.png"))
    assert (wrong.exit_code, unknown("gauge", "hobs", "hops") in wrong.stderr) == (2, True)
    mixed = vizpub("plot", "monday", "diameter", "gauges/hops", "-o", str(tmp_path / "m.png"))
    assert mixed.exit_code == 2
    tells(mixed.stderr, "gauges/hops", "gauge")


def test_layers_of_a_figure_without_links_are_refused(vizpub: Call, tmp_path: Path) -> None:
    words = ["m0", "--kind", "tree", "--layers", "mesh", "-o", str(tmp_path / "x.png")]
    result = vizpub("plot", "monday", *words)
    assert result.exit_code == 2
    tells(result.stderr, "--layers", "tree")
    assert not (tmp_path / "x.png").exists()


def test_tree_plot_numbers_are_its_copies_and_missed_peers(vizpub: Call, tmp_path: Path) -> None:
    def numbers(message: str) -> list[tuple[str, str, str]]:
        words = ["plot", "monday", message, "--kind", "tree", "-o", str(tmp_path / "t.png")]
        assert vizpub(*words).exit_code == 0
        with (tmp_path / "t.csv").open(newline="") as rows:
            return [
                (row["hop"], row["previous_hop_name"], row["peer_name"])
                for row in csv.DictReader(rows)
            ]

    assert numbers("m0") == [
        ("1", "alice", "bob"), ("1", "alice", "dave"), ("2", "dave", "carol"),
        ("3", "carol", "bob"),
    ]  # fmt: skip
    assert numbers("m1") == [("", "", "bob"), ("", "", "carol")]


def test_absent_neo4j_can_be_asked_stopped_and_removed(vizpub: Call) -> None:
    (status,) = data(vizpub("neo4j", "status", "--format", "json"))
    assert status["state"] == "absent"
    assert vizpub("neo4j", "stop").exit_code == 0
    assert vizpub("neo4j", "remove", "--yes").exit_code == 0


@pytest.mark.parametrize("words", ["neo4j status", "neo4j stop", "neo4j remove --yes"])
def test_neo4j_command_names_the_local_server_despite_neo4j_uri(
    vizpub: Call, workspace: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "NEO4J_URI" not in vizpub(*words.split()).stderr
    monkeypatch.setenv("NEO4J_URI", "bolt://elsewhere")
    told = vizpub(*words.split()).stderr.splitlines()[0]
    tells(told, "NEO4J_URI", "bolt://elsewhere", workspace)


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from vizpub.cli.main import app; app(prog_name='vizpub')", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


READING = (
    *("runs list", "runs show monday", "metrics monday topics --topic news", "runs tables"),
    *("metrics monday messages --format json", "query", "neo4j status"),
    *("export csv monday -o {}", "--help", "doctor"),
)


def test_reading_commands_import_no_heavy_package(workspace: Path, tmp_path: Path) -> None:
    where = ["--workspace", str(workspace)]
    commands = [[*where, *words.format(tmp_path / "out").split()] for words in READING]
    plot = [*where, "plot", "monday", "links", "-o", str(tmp_path / "x.png")]
    *told, of_plot = codes_and_imports([*commands, plot], {})
    assert dict(zip(READING, told, strict=True)) == dict.fromkeys(READING, (0, []))
    assert of_plot == (0, ["matplotlib"]), "and no Spark"


def test_output_without_a_terminal_has_no_colour(workspace: Path) -> None:
    result = python("--workspace", str(workspace), "metrics", "monday", FORCE_COLOR="")
    assert "\x1b" not in result.stdout + result.stderr


def test_characters_outside_the_output_encoding_are_escaped(workspace: Path) -> None:
    words = ["--workspace", str(workspace), "metrics", "monday", "topics", "--format", "csv"]
    result = python(*words, "--columns", "subscribers", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    result = python(
        "--workspace", str(workspace), "runs", "tables", "links", PYTHONIOENCODING="ascii"
    )
    assert "\\u2500" in result.stdout


def test_version_option_prints_the_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("vizpub ")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    logger = logging.getLogger("vizpub.ingest")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before


def noted(settings: Settings, capsys: pytest.CaptureFixture[str]) -> list[str]:
    _show_log(settings)
    log = logging.getLogger("vizpub.ingest.somewhere")
    log.warning("it is not used: %s", "it is ending\x1b[2J")
    log.info("it would not be used")
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_warning_is_shown_once_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert noted(Settings(), capsys) == ["it is not used: it is ending\\x1b[2J"]


def test_debug_option_shows_info_messages_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert noted(Settings(debug=True), capsys)[1:] == ["it would not be used"]


def test_quiet_option_shows_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert noted(Settings(quiet=True), capsys) == []
