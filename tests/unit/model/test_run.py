"""What may name a run."""

from __future__ import annotations

import pytest

from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.model.run import NO_DATA, NO_NAME_OF_A_RUN, RunFacts, check_run_name


@pytest.mark.parametrize("name", ["a", "7", "poldercast-1", "A.b_c-d", "x" * 100])
def test_valid_run_name_is_accepted(name: str) -> None:
    assert check_run_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "-v", "_a", "a/b", "../a", "a b", "a\n", "ä", "x" * 101, "a\x00"],
)
def test_unsafe_run_name_is_refused(name: str) -> None:
    with pytest.raises(UseError, match=NO_NAME_OF_A_RUN):
        check_run_name(name)


def test_tables_unknown_to_the_run_are_refused_by_name() -> None:
    RunFacts("r", "edges", Clock()).check_known("links")
    facts = RunFacts("r", "edges", Clock(), known=("links",))
    facts.check_known("links")
    with pytest.raises(UseError, match=f"'r' {NO_DATA} presence and topics"):
        facts.check_known("presence", "links", "topics")
    with pytest.raises(UseError, match=f"{NO_DATA} presence, roles and topics: .* them"):
        facts.check_known("presence", "roles", "topics")
    with pytest.raises(UseError, match=f"{NO_DATA} roles: .* this"):
        facts.check_known("roles")


def test_table_that_is_made_afterwards_is_refused_with_the_command_that_makes_it() -> None:
    facts = RunFacts("r", "edges", Clock(), known=("links",))
    with pytest.raises(UseError) as caught:
        facts.check_known("metrics/percolation")
    told = "run 'r' has no metrics/percolation yet; make it with: vizpub metrics r percolation"
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("settled", "interval", "said"),
    [
        (None, None, ""),
        (6, 6, ""),
        (6, 7, "messages published after interval 6 are provisional"),
        (6, None, "messages published after interval 6 are provisional"),
        (6, 99, "messages published after interval 6 are provisional"),
        (9, 99, ""),
        (2, 3, "all messages are provisional"),
    ],
)
def test_answer_about_messages_that_appends_change_is_provisional(
    settled: int | None, interval: int | None, said: str
) -> None:
    facts = RunFacts("r", "reports", Clock(1, None, 3, 9), settled=settled)
    found = facts.provisional(interval)
    assert found.startswith(said)
    assert bool(found) == bool(said)
