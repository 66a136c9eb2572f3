"""When copies come: how long a message took until so many of the eligible peers had it.

The quantiles of metrics/messages are those of the peers that received a message. Here, those that
never did count, too: a message that reached 80 % never reached 95 %, and its time is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from vizpub.model.run import AUDIENCE, PUBLICATION_TIMES, TIMES
from vizpub.questions.groups import window_of
from vizpub.questions.names import NamedRun
from vizpub.questions.sql import read_answer

if TYPE_CHECKING:
    from vizpub.questions.run import Where

PERCENTAGES = (50, 66, 90, 95, 99)
"""Percentages of the eligible peers, for which there is a column each."""
_ARRIVALS = """
WITH chosen AS (
    SELECT message, name AS message_name, interval, topic, m.eligible, m.delivered
    FROM stored."publications" JOIN stored."metrics/messages" m USING (message)
    WHERE interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
        AND ($peer IS NULL OR publisher = $peer)
), arrived AS (
    SELECT message, delay_us, row_number() OVER (PARTITION BY message ORDER BY delay_us) AS place
    FROM receptions r SEMI JOIN chosen USING (message) WHERE r.first AND r.eligible
), measured AS (
    SELECT c.*, count(*) FILTER (place > 0 AND delay_us IS NULL) = 0 AS all_known, {times},
        count(*) FILTER (delay_us <= $within) AS in_time
    FROM chosen c LEFT JOIN arrived USING (message) GROUP BY ALL
)
SELECT message, message_name, interval, topic, t.name AS topic_name, eligible, delivered,
    {columns}{within}
FROM measured LEFT JOIN stored."topics" t USING (topic) ORDER BY message
"""


def coverage_times(run: NamedRun, where: Where, within_us: int | None = None) -> pa.Table:
    """message, interval and topic of its publication, eligible, delivered, and `coverage_us_50` …
    `coverage_us_99`: the time from the publication until so many % of the eligible peers had it.

    A time is null where they never did, or an arrival has no time. With `within_us`, the column
    `within` is the share of the eligible peers that had it after this time.

    Raises: UnknownName, UseError where the run's source does not report times, or eligible peers
    are unknown.
    """
    run.facts.check_known("receptions", "metrics/messages", TIMES, PUBLICATION_TIMES, AUDIENCE)
    needed = ((n, f"(c.eligible * {n} + 99) // 100") for n in PERCENTAGES)
    times = (f"max(delay_us) FILTER (place = {place}) AS time_{n}" for n, place in needed)
    columns = (f"CASE WHEN all_known THEN time_{n} END AS coverage_us_{n}" for n in PERCENTAGES)
    share = ", CASE WHEN all_known THEN in_time / nullif(eligible, 0) END AS within"
    statement = _ARRIVALS.format(
        times=", ".join(times),
        columns=", ".join(columns),
        within="" if within_us is None else share,
    )
    return read_answer(
        run.stored,
        statement,
        within=within_us,
        topic=None if where.topic is None else run.topic_index(where.topic),
        peer=None if where.peer is None else run.peer_index(where.peer),
        **window_of(run, where),
    )
