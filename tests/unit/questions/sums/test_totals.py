"""Figures pooled over the messages of a run, against the run made by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tests.support.rewriting import rewrite
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import coverage
from vizpub.questions.sums.totals import Pooled, pool_messages, reporter_count
from vizpub.runstore.store import open_run


def test_pooled_figures_equal_those_counted_by_hand(workspace: Path) -> None:
    """Of two messages to two subscribers the first reached both, the second nobody."""
    assert pool_messages(open_run(workspace, "monday")) == Pooled(
        messages=2,
        unreported=0,
        refused=0,
        eligible=4,
        delivered=2,
        hit_ratio=0.5,
        hit_ratio_mean=0.5,
        late=None,
        hops={1: 2, 2: 1},
    )


def test_message_with_unknown_refusals_counts(workspace: Path) -> None:
    measured = open_run(workspace, "monday").read("metrics/messages")
    place = measured.column_names.index("rejections")
    for values, refused in ((None, None), 0), ((1, None), 1):
        column = pa.array(values, measured.schema.field(place).type)
        told = measured.set_column(place, measured.schema.field(place), column)
        rewrite(workspace, "monday", "metrics/messages", told)
        run = open_run(workspace, "monday")
        found = pool_messages(run)
        assert found
        assert (found.refused, found.messages) == (refused, 2)
        messages = set(coverage(NamedRun(run))["message_name"].to_pylist())
        assert messages == ({"m1"} if refused else {"m0", "m1"})


def test_pooled_figures_are_none_without_message_metrics(workspace: Path) -> None:
    assert pool_messages(open_run(workspace, "half", complete=False)) is None


def test_reporting_peers_exclude_those_that_only_others_name(workspace: Path) -> None:
    assert reporter_count(open_run(workspace, "monday")) == 3
