"""Tasks of four users, done with the commands of README and --help: a protocol researcher, an
operator, a data engineer and a student with the papers.

Each task has a bound on its commands. What they print fits 80 columns and has the fact, which is
computed from the run's files by DuckDB.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.ingested import ROOT, workspace_of
from tests.support.newcomers import COLUMNS, Newcomer, called
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

LONGEST = 40
Fact = Callable[[str], tuple[Any, ...]]
User = Callable[[int], Newcomer]


@pytest.fixture
def user(gossipsub: StoredRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> User:
    """A user of the run of `vizpub demo`, who needs at most so many commands."""
    monkeypatch.setenv("VIZPUB_WORKSPACE", str(workspace_of(gossipsub)))
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.chdir(tmp_path)
    return lambda commands: Newcomer(called, commands, LONGEST)


@pytest.fixture
def fact(gossipsub: StoredRun) -> Fact:
    """The one row of a query on the run's files: its tables are `{links}`, `{metrics/peers}`, …"""

    def ask(query: str) -> tuple[Any, ...]:
        files = re.sub(r"\{([a-z/_]+)\}", rf"'{gossipsub.directory}/\1/*.parquet'", query)
        with duckdb.connect() as database:
            (row,) = database.sql(files).fetchall()
        return tuple(row)

    return ask


def row_of(printed: str, first: str) -> list[str]:
    """The words of the row that begins with `first`."""
    (row,) = [line.split() for line in printed.splitlines() if line.startswith(first)]
    return row


class TestResearcher:
    def test_largest_overlay_is_the_first_row(self, user: User, fact: Fact) -> None:
        printed = user(1).types(
            "metrics gossipsub --sort -links,interval --limit 1 --columns links,diameter"
        )
        rows = "FROM {metrics/overlay} SELECT interval, links, diameter"
        largest = fact(f"{rows} ORDER BY links DESC, interval LIMIT 1")
        assert tuple(map(int, printed.splitlines()[2].split())) == largest

    def test_hit_ratio_of_a_run_is_that_of_the_comparison(self, user: User, fact: Fact) -> None:
        printed = user(1).types("compare gossipsub --metrics hit_ratio")
        (ratio,) = fact(
            "FROM {metrics/messages} SELECT sum(delivered) / sum(eligible) WHERE rejections = 0"
        )
        assert float(row_of(printed, "hit_ratio")[1]) == pytest.approx(ratio, abs=5e-4)

    def test_delays_of_a_topic_become_a_figure_with_its_numbers(
        self, user: User, fact: Fact
    ) -> None:
        printed = user(1).types("plot gossipsub delay_us --kind ecdf --topic alerts -o cdf.pdf")
        assert "cdf.pdf" in printed
        assert Path("cdf.pdf").read_bytes().startswith(b"%PDF")
        with Path("cdf.csv").open() as file:
            delays = sorted(int(row["delay_us"]) for row in csv.DictReader(file))
        assert (len(delays), sum(delays)) == fact(
            "FROM {receptions} r JOIN {publications} p USING (message)"
            " JOIN {topics} t USING (topic)"
            " SELECT count(*), sum(r.time_us - p.time_us) WHERE first AND eligible"
            " AND t.name = 'alerts'"
        )


class TestOperator:
    def test_input_and_losses_of_a_run_are_in_its_facts(self, user: User, fact: Fact) -> None:
        printed = user(2).types("runs show gossipsub")
        (peers,) = fact("FROM {peers} SELECT count(*) WHERE is_reporter")
        assert f"{peers} of " in " ".join(row_of(printed, "peers that report"))
        delivered, eligible = fact(
            "FROM {metrics/messages} SELECT sum(delivered), sum(eligible) WHERE rejections = 0"
        )
        assert f"{delivered} of {eligible}" in " ".join(row_of(printed, "hit ratio"))

    def test_reasons_explain_every_miss(self, user: User, fact: Fact) -> None:
        printed = user(1).types("message gossipsub --missed")
        missed = re.findall(r"^\S.*?\s{2,}(\d+)  ", printed, re.MULTILINE)
        assert sum(map(int, missed)) == fact("FROM {missed} SELECT count(*)")[0]
        assert "no neighbours" in printed

    def test_busiest_peer_is_found_by_its_totals(self, user: User, fact: Fact) -> None:
        printed = user(1).types(
            "metrics gossipsub peers --totals --sort -publication_messages_sent --limit 1"
            " --columns publication_messages_sent"
        )
        name, sent = fact(
            "FROM {metrics/peers} JOIN {peers} USING (peer)"
            " SELECT name, sum(publication_messages_sent) AS sent"
            " GROUP BY ALL ORDER BY sent DESC LIMIT 1"
        )
        words = printed.splitlines()[2].split()
        assert int(words[-1].replace(",", "")) == sent
        assert any(name.endswith(word.rpartition("…")[2]) for word in words)

    def test_files_of_a_run_are_checked_by_one_command(self, user: User) -> None:
        assert "gossipsub" in user(1).types("runs check gossipsub")


class TestDataEngineer:
    def test_meaning_and_unit_of_a_column_are_explained(self, user: User) -> None:
        printed = user(1).types("runs tables metrics/messages")
        assert "µs" in row_of(printed, "delay_us_p95")

    def test_rows_are_read_where_the_path_leads(self, user: User, fact: Fact) -> None:
        newcomer = user(2)
        (folder,) = re.findall(r"^/.+$", "\n".join(paths(newcomer)), re.MULTILINE)
        assert fact(f"FROM '{folder}/*.parquet' SELECT count(*)") == fact(
            "FROM {links} SELECT count(*)"
        )

    def test_rows_of_a_query_are_json(self, user: User, fact: Fact) -> None:
        printed = user(1).types(
            "sql gossipsub 'SELECT count(*) AS n FROM links WHERE layer = $$mesh$$' --format json"
        )
        assert json.loads(printed) == [
            {"n": fact("FROM {links} SELECT count(*) WHERE layer = 'mesh'")[0]}
        ]

    def test_table_becomes_a_csv_file(self, user: User, fact: Fact) -> None:
        user(1).types("export csv gossipsub subscriptions -o subs.csv")
        with Path("subs.csv").open() as file:
            rows = sum(1 for _ in csv.DictReader(file))
        assert (rows,) == fact("FROM {subscriptions} SELECT count(*)")


def paths(newcomer: Newcomer) -> list[str]:
    """The lines that name a table's folder; a long path is no table, and is not cut."""
    done = called("runs", "path", "gossipsub", "links")
    newcomer.commands += 1
    assert done.returncode == 0
    return done.stdout.splitlines()


class TestStudent:
    def test_published_evaluations_are_listed_and_explained(self, user: User) -> None:
        newcomer = user(2)
        listed = newcomer.types("lab experiment list")
        shipped = {path.stem for path in (ROOT / "experiments").rglob("*.toml")}
        assert shipped
        assert shipped <= set(re.findall(r"^\S+", listed, re.MULTILINE))
        assert "published" in newcomer.types("lab experiment show dissemination")

    def test_spread_of_a_message_is_a_tree_of_its_hops(self, user: User, fact: Fact) -> None:
        newcomer = user(2)
        newest = newcomer.types(
            "metrics gossipsub messages --topic alerts --sort -hops_max --limit 1"
        ).splitlines()[2]
        short = newest.split()[0]
        tree = newcomer.types(f"message gossipsub {short}")
        hops = re.findall(r"^[│├└─ ]*12D3\S+ +(\d+) ", tree, re.MULTILINE)
        expected = fact(
            "FROM {receptions} JOIN {publications} USING (message)"
            f" SELECT count(*), max(hop) WHERE first AND name LIKE '%{short.rpartition('…')[2]}'"
        )
        assert (len(hops) - 1, max(map(int, hops))) == expected  # without the publisher

    def test_models_of_a_world_are_explained(self, user: User) -> None:
        assert "exponential:" in called("lab", "simulate", "models").stdout
        assert "--churn" in user(1).types("lab simulate poldercast --help")
