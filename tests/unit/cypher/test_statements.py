"""Each header says what its statement takes and gives."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from vizpub import cypher
from vizpub.model.run import CAPABILITIES, DUPLICATES

FOLDERS = ("schema", "load", "queries", "browser", "read", "verify", "remove")
TYPES = {
    *("run", "tick", "levels", "layers", "kinds", "peer", "topic", "message"),
    *("duration", "ranges"),
    *("count", "int", "string", "list<string>", "list<int>", "list<map>", "list<list>", "map"),
}
ASKED = [(folder, name) for folder in ("queries", "browser") for name in cypher.names(folder)]
EVERY = [(folder, name) for folder in FOLDERS for name in cypher.names(folder)]


def body(statement: cypher.Statement) -> str:
    return "\n".join(line for line in statement.text.splitlines() if not line.startswith("//"))


@pytest.mark.parametrize(("folder", "name"), EVERY)
def test_header_matches_the_parameters_and_columns_of_the_statement(folder: str, name: str) -> None:
    statement = cypher.statement(folder, name)
    assert statement.purpose.endswith(".")
    assert set(re.findall(r"\$(\w+)", body(statement))) <= {p.name for p in statement.parameters}
    used = set(re.findall(r"\$(\w+)", body(statement))) | {p.at for p in statement.parameters}
    if "ranges" in used:  # which a mode's times become
        used |= {"at", "from", "to"}
    assert {p.name for p in statement.parameters} <= used
    assert {p.type for p in statement.parameters if not p.words} <= TYPES
    header = [line for line in statement.text.splitlines() if line.startswith("//")]
    told = [line for line in header if line.startswith(("// $", "// ->"))]
    assert len(told) == len(statement.parameters) + len(statement.columns)


@pytest.mark.parametrize(("folder", "name"), EVERY)
def test_statement_file_holds_one_statement_in_short_lines(folder: str, name: str) -> None:
    text = cypher.statement(folder, name).text
    assert ";" not in re.sub(r"//.*", "", text)
    assert text.endswith("\n")
    assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.parametrize(("folder", "name"), [e for e in EVERY if e[0] in ("queries", "read")])
def test_columns_are_returned_in_the_order_of_the_header(folder: str, name: str) -> None:
    statement = cypher.statement(folder, name)
    returned = body(statement).rpartition("RETURN ")[2].split("ORDER BY")[0].split("LIMIT")[0]
    level, items = 0, [""]
    for character in returned:
        level += (character in "([{") - (character in ")]}")
        items.append("") if character == "," and level == 0 else None
        items[-1] += "" if character == "," and level == 0 else character
    names = [item.split(" AS ")[-1].removeprefix("DISTINCT").strip() for item in items]
    assert names == [c.name for c in statement.columns]


@pytest.mark.parametrize("name", cypher.names("queries"))
def test_query_of_messages_says_which(name: str) -> None:
    """`runs` is about no run, and has its figures from the Run nodes."""
    statement = cypher.statement("queries", name)
    reads = re.search(r":(HOP|Message|PUBLISHED|MISSED|ARRIVED)", body(statement))
    assert (statement.messages is not None) == bool(reads)
    assert {statement.messages} <= {None, "", *(p.name for p in statement.parameters)}
    for parameter in statement.parameters:
        assert parameter.type != "message" or parameter.name == statement.messages


@pytest.mark.parametrize(("folder", "name"), ASKED)
def test_query_of_links_takes_optional_layers(folder: str, name: str) -> None:
    statement = cypher.statement(folder, name)
    layers = [p for p in statement.parameters if p.type == "layers"]
    assert len(layers) == (":LINK" in body(statement))
    assert all(p.optional for p in layers)


@pytest.mark.parametrize("name", sorted({*cypher.names("queries")} - {"peer-history", "runs"}))
def test_query_needs_exactly_the_tables_that_it_reads(name: str) -> None:
    """What is known of a peer, and validity periods of any kind, need nothing."""
    statement = cypher.statement("queries", name)
    if any(p.type == "kinds" for p in statement.parameters):
        assert statement.needs == ()
        return
    asks_for_a_present_peer = any(p.type == "peer" and p.at for p in statement.parameters)
    reads = {
        "presence": ":PRESENT" in body(statement) or asks_for_a_present_peer,
        "subscriptions": ":SUBSCRIBES" in body(statement)
        or "subscribed = false" in body(statement),
        "links": ":LINK" in body(statement),
        "receptions": ":HOP" in body(statement),
        "missed": ":MISSED" in body(statement),
    }
    tables = tuple(name for name in statement.needs if name not in CAPABILITIES)
    assert tables == tuple(table for table, read in reads.items() if read)


def test_query_with_duplicates_asks_whether_they_are_known() -> None:
    """Where first arrivals alone are told, what counts others would say 0."""
    counting = {"duplicates", "receptions", "copies", "sent"}
    for name in {*cypher.names("queries")} - {"runs"}:
        query = cypher.statement("queries", name)
        if counting & {column.name for column in query.columns}:
            asks = f"'{DUPLICATES}' IN r.known" in query.text
            assert (DUPLICATES in query.needs) != asks, name


def test_parameter_time_is_another_tick_of_the_query() -> None:
    for name in cypher.names("queries"):
        parameters = cypher.statement("queries", name).parameters
        ticks = {p.name for p in parameters if p.type == "tick"}
        assert {p.at for p in parameters if p.at} <= ticks | {"mode"}
        assert all(p.at for p in parameters if p.type == "levels")
        assert all(p.at != p.name for p in parameters)


def test_partitions_refer_to_ticks_and_messages_of_the_query() -> None:
    for name in cypher.names("queries"):
        query = cypher.statement("queries", name)
        points = {p.name for p in query.parameters if p.type in ("tick", "message")}
        assert {*chain.from_iterable(query.times)} <= points
        assert bool(query.times) == ("// partition" in query.text)


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("neighbours", (("at", "at"),)),
        ("subscription-churn", (("before", "before"), ("after", "after"))),
        ("temporal-reachability", (("from", "to"),)),
        ("hubs", ()),
    ],
)
def test_partitions_of_a_header_are_read_as_stretches(
    name: str, times: tuple[tuple[str, str], ...]
) -> None:
    assert cypher.statement("queries", name).times == times


def test_header_of_hubs_is_parsed() -> None:
    hubs = cypher.statement("queries", "hubs")
    assert hubs.purpose == "The peers with the most neighbours at a time."
    assert hubs.parameters[1] == cypher.Parameter("at", "tick", "the time", unit="ticks")
    assert hubs.parameters[2].at == "at"
    k = cypher.Parameter(
        "k", "count", "maximum number, at least 1", unit="peers", optional=True, default="10"
    )
    assert hubs.parameters[3] == k
    assert hubs.columns[0] == cypher.AnswerColumn("peer", "the peer")


def test_unknown_statement_is_a_key_error_with_its_path() -> None:
    with pytest.raises(KeyError, match="queries/nothing"):
        cypher.statement("queries", "nothing")
