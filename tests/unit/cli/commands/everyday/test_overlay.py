"""The tree of a dissemination, against networkx; who missed a message, in a run known by heart."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from vizpub.cli.commands.everyday.overlay import Reception, tree_rows
from vizpub.cli.main import app
from vizpub.questions.deliveries import NOBODY


def first(to: str, source: str | None, hop: int | None = 1) -> Reception:
    return Reception(hop, 10, source, to, True, True)


def again(to: str, source: str) -> Reception:
    return Reception(2, 20, source, to, False, True)


def test_tree_is_drawn_from_the_publisher_down() -> None:
    rows = list(tree_rows([first("b", "a"), first("c", "a"), first("d", "b", 2), again("b", "c")]))
    assert rows == [
        ("a", 0, None, 0, None),
        ("├─ b", 1, 10, 1, True),
        ("│  └─ d", 2, 10, 0, True),
        ("└─ c", 1, 10, 0, True),
    ]


def test_tree_of_a_message_without_receptions_is_empty() -> None:
    assert list(tree_rows([])) == []


def test_peer_with_unknown_previous_hop_stands_at_the_left() -> None:
    assert [row[0] for row in tree_rows([first("b", None, None), first("c", "b")])] == ["b", "└─ c"]


def test_cycle_of_receptions_draws_each_peer_once() -> None:
    rows = [row[0] for row in tree_rows([first("a", "b"), first("b", "a"), first("c", "a")])]
    assert sorted(row.removeprefix("├─ ").removeprefix("└─ ") for row in rows) == ["a", "b", "c"]


def test_chain_of_3000_hops_is_drawn() -> None:
    chain = [first(str(i + 1), str(i), i + 1) for i in range(3000)]
    rows = list(tree_rows(chain))
    assert len(rows) == 3001
    assert rows[-1][0].endswith("└─ 3000")


@pytest.mark.parametrize("seed", range(20))
def test_parents_in_a_random_drawn_tree_equal_networkx(seed: int) -> None:
    print(f"seed {seed}")
    generator = random.Random(seed)
    tree = nx.random_labeled_rooted_tree(generator.randint(2, 60), seed=seed)
    parents = {child: parent for parent, child in nx.bfs_edges(tree, tree.graph["root"])}
    receptions = [first(f"p{child}", f"p{parent}") for child, parent in parents.items()]
    generator.shuffle(receptions)
    path: list[str] = []
    found = {}
    for branch, *_ in tree_rows(receptions):
        depth = (len(branch) - len(branch.lstrip("│├└─ "))) // 3
        path[depth:] = [branch.lstrip("│├└─ ")]
        found[path[-1]] = path[-2] if depth else None
    expected = {f"p{child}": f"p{parent}" for child, parent in parents.items()}
    assert found == {**expected, f"p{tree.graph['root']}": None}


def test_duplicates_are_null_where_first_arrivals_alone_are_told() -> None:
    rows = list(tree_rows([first("b", "a"), again("b", "c")], counts=False))
    assert {row[3] for row in rows} == {None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("m1",),
            [
                ("bob", "2", "1", NOBODY),
                ("carol", "1", "0", NOBODY),
            ],
        ),
        (
            ("#1", "--layers", "mesh"),
            [
                ("bob", "1", "1", NOBODY),
                ("carol", "0", "0", NOBODY),
            ],
        ),
        (("m0",), []),
        (("#1", "--limit", "1"), [("bob", "2", "1", NOBODY)]),
    ],
)
def test_missed_says_why_a_message_did_not_arrive(
    workspace: Path, words: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    call = ["--workspace", str(workspace), "message", "--missed", "monday", *words, "-f", "csv"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    head, *rows = csv.reader(done.stdout.splitlines())
    assert head == ["peer", "neighbours", "neighbours_with_it", "why"]
    assert list(map(tuple, rows)) == expected
