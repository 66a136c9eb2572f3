"""Who may only report cannot end the run for others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.collecting import Options, collector_in, serving
from vizpub.collector.closing import Closing, ClosingRules
from vizpub.collector.ending import Ending
from vizpub.collector.place import CollectionPlace

END = b'{"format": "vizpub.end/1", "last_interval": 0}'


def line(peer: str, interval: int) -> bytes:
    return json.dumps({"format": "vizpub.report/1", "peer": peer, "interval": interval}).encode()


def marked(*, may_end: bool) -> tuple[Ending, Closing]:
    """At second 1, in interval 0, which two peers have reported."""
    closing, ending = Closing(ClosingRules(lateness_s=5.0)), Ending()
    for peer in "ab":
        closing.note_report(peer, 0, 1.0)
    ending.mark(0, closing, (0, 0), may_end=may_end)
    return ending, closing


def test_mark_of_a_reporter_waits_until_all_have_left_or_are_silent() -> None:
    ending, closing = marked(may_end=False)
    closing.close(0)
    assert not ending.is_reached(closing, None, 7.0)
    assert ending.is_reached(closing, None, 7.1)  # an interval and the lateness behind the last
    for peer in "ab":
        closing.note_report(peer, 0, 3.0, leaves=True)
    assert ending.is_reached(closing, None, 3.0)


def test_mark_of_a_reporter_is_void_when_a_peer_goes_on() -> None:
    ending, closing = marked(may_end=False)
    ending.note_report(0)
    assert ending.last == 0
    ending.note_report(1)
    assert (ending.last, ending.is_reached(closing, 9, 1e9)) == (None, False)


def test_mark_by_who_may_end_counts_and_no_reporter_changes_it() -> None:
    ending, closing = marked(may_end=True)
    ending.mark(7, closing, (0, 0), may_end=False)
    ending.note_report(1)
    assert (ending.last, ending.by_all) == (0, False)
    assert ending.is_reached(closing, 0, ending.marked_at)
    assert Ending.from_json(ending.to_json()).last == 0


def test_listed_peers_that_never_came_have_not_agreed() -> None:
    closing = Closing(ClosingRules(lateness_s=5.0, peers=frozenset("ab")))
    assert not closing.is_silent(1e9)
    closing.note_report("a", 0, 0.0)
    assert not closing.is_silent(1e9)
    closing.note_report("b", 0, 0.0)
    assert closing.is_silent(1e9)


@pytest.mark.parametrize("kind", ["report", "admin"])
def test_run_is_ended_at_once_by_the_admin_token_only(tmp_path: Path, kind: str) -> None:
    with serving(
        collector_in(tmp_path, Options(tokens=True, rules=ClosingRules(lateness_s=0.0)))
    ) as one:
        tokens = {
            name: (CollectionPlace(tmp_path, "lab").tokens / name).read_text().strip()
            for name in ("report", "admin")
        }
        intake = one.web.intake
        told = {"authorization": f"Bearer {tokens['report']}"}
        assert one.post(line("a", 0) + b"\n" + line("b", 0), **told)[0] == 202
        one.run(intake.close_due())
        assert one.post(END, authorization=f"Bearer {tokens[kind]}")[0] == 202
        assert intake.ending.by_all == (kind == "report")
        if kind == "report":
            assert one.post(line("b", 1), **told)[0] == 202
        one.run(intake.close_due())
        assert intake.ended == (kind == "admin")
