"""Counts of reports, from which it follows what of the input belongs to the run."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.support.words import tells
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.reports.facts import ReportTally
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.sources.times import BELONGS, BELONGS_NOT, MOST_INTERVALS
from vizpub.ingest.tasks.fold import RunCounts

FAR = MOST_INTERVALS * 9 // 10


def counted(file: str, times: Iterable[int], outlying: Iterable[int] = ()) -> RunCounts:
    tally = ReportTally()
    for line, time in enumerate(times, 1):
        tally.times.see(time, None, file, line)
    for line, time in enumerate(outlying, 100):
        tally.outlying.see(time, None, file, line)
    plain: RunCounts = json.loads(json.dumps(tally.plain))
    return plain


def judged_anew(before: RunCounts, now: RunCounts) -> str | None:
    both = Reports().combine_tallies([before, now])
    return Reports().find_reversal(both, before, SourceOptions())


def test_counts_survive_json() -> None:
    plain = counted("a", [1, 2, FAR], [3 * FAR])
    assert ReportTally.of(plain).plain == plain
    assert ReportTally.of({}).plain == ReportTally().plain


def test_input_that_fits_judges_nothing_anew() -> None:
    before = counted("a", [*range(50), FAR], [3 * FAR])
    assert judged_anew(before, counted("b", [*range(50), FAR])) is None
    assert judged_anew(before, counted("b", [4 * FAR])) is None  # an outlier of its own


def test_taken_report_that_most_input_is_far_from_is_judged_anew() -> None:
    """Between both, the run has too many intervals; before, it had not."""
    told = judged_anew(counted("a", [0, FAR, FAR]), counted("b", [2 * FAR] * 50))
    assert told
    tells(told, "a, line 1", BELONGS_NOT)


def test_refused_report_that_others_join_is_judged_anew() -> None:
    before = counted("a", range(50), [3 * FAR])
    told = judged_anew(before, counted("b", range(3 * FAR, 3 * FAR + 2000, 100)))
    assert told
    tells(told, "a, line 100", BELONGS)
