"""Tables of text that fit a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from vizpub.cli.commands.everyday.overlay import Reception, tree_rows
from vizpub.cli.terminal.layout import Grid, shorten, wrap_prose
from vizpub.cli.terminal.streams import message, terminal_width

PEERS = [f"12D3KooW{i:044}" for i in range(5)]
cells = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=80))


def lines(grid: Grid) -> list[str]:
    return list(grid.lines())


def test_grid_aligns_text_left_and_numbers_right() -> None:
    grid = Grid.of(("peer", "degree"), [("a", 5), ("bcdef", 12), ("c", None)])
    assert lines(grid) == [
        "peer   degree",
        "─────  ──────",
        "a           5",
        "bcdef      12",
        "c           -",
    ]


def test_wide_characters_take_two_cells() -> None:
    grid = Grid.of(("topic", "n"), [("日本", 1), ("news", 2)])
    assert {cell_len(line) for line in lines(grid)} == {8}


def test_shortened_ids_with_a_common_prefix_stay_distinct() -> None:
    grid = Grid.of(("src", "dst", "hops"), [(p, q, 1) for p in PEERS for q in PEERS])
    fitted = grid.fit(60)
    assert fitted.width <= 60
    assert len(fitted.header) == 3
    assert len(set(fitted.rows)) == 25
    assert lines(grid.fit(None))[2].split()[0] == PEERS[0]


def test_columns_without_room_are_dropped_from_the_right() -> None:
    columns = tuple(f"column_{i}" for i in range(9))
    fitted = Grid.of(columns, [range(9)]).fit(40)
    assert fitted.header == columns[: len(fitted.header)]
    assert 1 < len(fitted.header) < 9
    assert fitted.width <= 40


def test_names_take_the_place_of_their_numbers_where_room_is_short() -> None:
    header = ("interval", "peer", "peer_name", "peer", "degree", "nick_name")
    grid = Grid.of(header, [(1, 7, "alice", 8, 3, "al")])
    assert grid.fit(None).header == header
    assert grid.fit(grid.width).header == header
    fitted = grid.fit(grid.width - 1)
    assert fitted.header == ("interval", "peer", "degree", "nick_name")
    assert fitted.rows == (("1", "alice", "3", "al"),)
    assert fitted.hidden == ()
    assert grid.fit(24).hidden == ("nick_name",)


def test_columns_that_may_leave_go_before_those_at_the_right() -> None:
    columns = tuple(f"column_{i}" for i in range(9))
    fitted = Grid.of(columns, [range(9)]).fit(40, ("column_1", "column_0", "nosuch"))
    assert fitted.header == tuple(f"column_{i}" for i in (2, 3, 4, 5))
    assert fitted.hidden == tuple(f"column_{i}" for i in (0, 1, 6, 7, 8))


def test_prose_is_wrapped_and_ids_are_shortened_before_names_for_typing() -> None:
    prose = "the peers that are present at the time and subscribe to the topic, or not; " * 2
    grid = Grid.of(("query", "peer", "meaning"), [("dissemination-tree", PEERS[0], prose.strip())])
    fitted = grid.fit(80)
    assert fitted.rows[0][0] == "dissemination-tree"
    assert fitted.rows[0][1] != PEERS[0]
    assert fitted.rows[0][2].replace("\n", " ") == prose.strip()
    assert all(cell_len(line) <= 80 for line in lines(fitted))


@given(st.text("ab \u65e5", max_size=300), st.integers(3, 40))
def test_wrapped_text_keeps_its_words_in_lines_of_the_width(text: str, width: int) -> None:
    found = wrap_prose(text, width)
    assert all(cell_len(line) <= width for line in found.split("\n"))
    if all(cell_len(word) <= width for word in text.split()) and "…" not in found:
        assert found.split() == text.split()


def test_long_message_is_broken_between_words_at_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/a/path/that/is/longer/than/a/line/of/the/terminal"
    text = f"cannot read {path} because it is not there"
    message(text)
    assert capsys.readouterr().err == f"{text}\n"
    monkeypatch.setenv("COLUMNS", "30")
    message(text)
    assert capsys.readouterr().err.split("\n") == [
        "cannot read", f"  {path}", "  because it is not there", ""
    ]  # fmt: skip


def test_single_column_stays_at_any_width() -> None:
    assert Grid.of(("a_rather_long_name",), [(123,)]).fit(5).header != ()


@given(st.lists(st.tuples(cells, cells, cells), max_size=6), st.integers(1, 200))
def test_fitted_grid_is_no_wider_than_the_width(
    values: list[tuple[object, ...]], width: int
) -> None:
    fitted = Grid.of(("a", "b", "c"), values).fit(width)
    shown = lines(fitted)
    assert len(shown) == sum(max(c.count("\n") + 1 for c in row) for row in fitted.rows) + 2
    if len(fitted.header) > 1:
        assert max(map(cell_len, shown)) <= width


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me"])), st.integers(3, 40))
def test_shortened_text_fits_the_width_and_marks_the_cut(text: str, width: int) -> None:
    short = shorten(text, width)
    assert cell_len(short) <= width
    if cell_len(text) <= width:
        assert short == text
    else:
        head, _, tail = short.partition("…")
        assert head
        assert tail
        # Half of a wide character is a space.
        assert text.startswith(head.rstrip())
        assert text.endswith(tail.lstrip())


def test_fitted_tree_keeps_its_branches_and_shortens_the_names() -> None:
    receptions = [Reception(i + 1, 10, PEERS[i], PEERS[i + 1], True, True) for i in range(4)]
    grid = Grid.of(("peer", "hop", "time", "duplicates", "subscribed"), list(tree_rows(receptions)))
    fitted = grid.fit(60)
    assert fitted.width <= 60
    for depth, (cell, *_) in enumerate(fitted.rows):
        branch = "   " * (depth - 1) + "└─ " if depth else ""
        assert cell.startswith(f"{branch}12D3…")
        assert cell.endswith(PEERS[depth][-8:])


def test_branch_too_deep_for_the_width_is_shortened() -> None:
    assert cell_len(shorten("   " * 30 + "└─ " + PEERS[0], 20)) == 20


def test_grid_without_rows_or_columns_is_drawn() -> None:
    assert lines(Grid.of((), [])) == []
    assert lines(Grid.of(("a",), [])) == ["a", "─"]


def test_terminal_width_comes_from_columns_or_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width(io.StringIO()) == 123
    monkeypatch.setenv("COLUMNS", "many")
    assert terminal_width(io.StringIO()) is None
    monkeypatch.delenv("COLUMNS")
    assert terminal_width(io.StringIO()) is None
