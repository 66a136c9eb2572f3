"""Deliveries of messages with their delays; how long a message took until so many of the eligible
peers had it; and what was missed: by whom, and why.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import AUDIENCE, PUBLICATION_TIMES, TIMES
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import OF_LAYERS, read_answer, rows_of

PUBLICATION_UNKNOWN = "the publication was not reported"

NOBODY = "no peer received it"

# What `reasons` has: a row for each peer and message that it missed. Neighbours are those at the
# publication, in either direction; those with the message published or received it at any time.
_REASONS = """
WITH lost AS (SELECT message, peer FROM stored."missed" WHERE {of}),
     about AS (SELECT message, topic, interval, publisher, tick FROM stored."publications"
               WHERE {of}),
     arrived AS (SELECT message, peer, tick, first FROM stored."receptions"
                 WHERE {of} AND message IN (SELECT message FROM lost)),
     ends AS (SELECT message, max(tick) AS last, bool_or(first) AS reached FROM arrived
              GROUP BY ALL),
     had AS (SELECT message, peer FROM arrived UNION SELECT message, publisher FROM about),
     refused AS (SELECT message, peer, string_agg(DISTINCT why, ', ' ORDER BY why) AS refusal
                 FROM (SELECT message, peer, coalesce(reason, 'no reason given') AS why
                       FROM {rejections} WHERE {of})
                 GROUP BY ALL),
     periods AS (SELECT src, dst, valid_from, valid_to FROM {links} WHERE {of_layers}),
     directed AS (SELECT src AS peer, dst AS other, valid_from, valid_to FROM periods
                  UNION ALL SELECT dst, src, valid_from, valid_to FROM periods),
     near AS (SELECT DISTINCT message, peer, other
              FROM lost JOIN about USING (message) JOIN directed USING (peer)
              WHERE valid_from <= tick AND valid_to > tick),
     linked AS (SELECT near.message, near.peer, count(*) AS neighbours, count(had.peer) AS held
                FROM near LEFT JOIN had ON had.message = near.message AND had.peer = near.other
                GROUP BY ALL),
     gone AS (SELECT DISTINCT message, peer, true AS has_left
              FROM lost JOIN about USING (message) JOIN ends USING (message)
                   JOIN {presence} presence USING (peer)
              WHERE valid_from <= tick AND valid_to > tick AND valid_to <= last),
     counted AS (SELECT message, peer, refusal, has_left, coalesce(reached, false) AS reached,
                        coalesce(neighbours, {alone}) AS neighbours, coalesce(held, {alone}) AS held
                 FROM lost LEFT JOIN linked USING (message, peer)
                      LEFT JOIN refused USING (message, peer) LEFT JOIN gone USING (message, peer)
                      LEFT JOIN ends USING (message)),
     reasons AS (SELECT message, peer, neighbours, held AS neighbours_with_it,
                        CASE WHEN refusal IS NOT NULL THEN 'refused it: ' || refusal
                             WHEN NOT reached THEN '{nobody}'
                             WHEN has_left THEN 'left while it spread'
                             WHEN neighbours = 0 THEN 'no neighbours'
                             WHEN held = 0 THEN 'no neighbour had it'
                             WHEN held > 0 THEN 'neighbours had it, none delivered it' END AS why
                 FROM counted)
"""
_PEERS = """
SELECT message, name AS peer, neighbours, neighbours_with_it, why
FROM reasons JOIN stored."peers" peers USING (peer) ORDER BY message, peers.peer
"""
_COUNTS = """
, outcomes AS (SELECT message, peer, why, true AS is_lost FROM reasons
               UNION ALL SELECT message, peer, NULL, false FROM stored."receptions"
               WHERE first AND eligible),
  counts AS (SELECT {keys} why, is_lost, count(*) AS missed,
                    count(DISTINCT message) FILTER (is_lost) AS messages,
                    count(DISTINCT peer) FILTER (is_lost) AS peers
             FROM outcomes JOIN about USING (message) GROUP BY ALL),
  shares AS (SELECT *, missed / sum(missed) OVER ({partition}) AS share FROM counts
             QUALIFY is_lost)
SELECT {names} why, missed, messages, peers, share FROM shares
ORDER BY {order} missed DESC, why
"""
_DELAYS = """
SELECT message, message_name, about.interval, about.topic, topics.name AS topic_name,
       peer, peer_name, hop, delay_us
FROM receptions JOIN stored."publications" about USING (message)
     LEFT JOIN stored."topics" topics ON topics.topic = about.topic
WHERE first AND eligible AND {where} ORDER BY message, peer
"""
_NAMES = {
    key: f'(SELECT name FROM stored."{names}" named WHERE named.{key} = shares.{key}) AS {key}'
    for key, names in (("message", "publications"), ("topic", "topics"), ("peer", "peers"))
}
"""The name for each index."""
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
COUNTED_BY = (*_NAMES, "interval")
"""What the counts of `count_reasons` can be apart by."""


def reasons_of_message(
    run: NamedRun, message: str, layers: Sequence[str] | None = None
) -> pa.Table:
    """peer, neighbours, neighbours_with_it, why: the eligible peers that never received it.

    Neighbours are those of its publication, over links of these layers (null = of all), in either
    direction; those with it published or received it at any time. Unknown is null.

    Raises: UnknownName, AmbiguousName, UseError where eligible peers are unknown.
    """
    run.facts.check_known("missed")
    number = run.message_index(message)
    if not run.publication(number)["publication_known"]:
        raise UseError(f"{PUBLICATION_UNKNOWN} of '{message}': its eligible peers are unknown")
    reasons = _answer(run, _PEERS, layers, of="message = $message", message=number)
    return reasons.drop_columns(["message"])


def reasons_of_messages(run: NamedRun, messages: Sequence[int]) -> pa.Table:
    """message, and the columns of `reasons_of_message`: of messages by number, over all links.

    Raises: UseError where eligible peers are unknown.
    """
    run.facts.check_known("missed")
    of = "message IN (SELECT unnest($messages))"
    return _answer(run, _PEERS, None, of=of, messages=list(messages))


def count_reasons(
    run: NamedRun, by: Sequence[str] = (), layers: Sequence[str] | None = None
) -> pa.Table:
    """The columns of `by` (COUNTED_BY), why, missed, messages, peers, share: over all messages.

    `missed` counts pairs of a message and an eligible peer that never received it, of so many
    `messages` and `peers`; `share` is of all pairs with an eligible peer, or of those of the row's
    topic (peer, …). Intervals are in order, other rows by what was missed, most first. Messages
    whose publication was not reported are left out: their eligible peers are unknown.

    Raises: UnknownName, UseError where eligible peers are unknown.
    """
    run.facts.check_known("missed")
    for name in by:
        if name not in COUNTED_BY:
            raise UnknownName("column to count by", name, COUNTED_BY)
    keys = list(dict.fromkeys(by))
    partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
    totals = [] if keys[:1] == ["interval"] else [f"sum(missed) OVER ({partition}) DESC"]
    counts = _COUNTS.format(
        keys="".join(f"{key}, " for key in keys),
        partition=partition,
        names="".join(f"{_NAMES.get(key, key)}, " for key in keys),
        order="".join(f"{place}, " for place in [*totals, *(f"shares.{key}" for key in keys)]),
    )
    return _answer(run, counts, layers, of="true")


def _answer(
    run: NamedRun, question: str, layers: Sequence[str] | None, *, of: str, **values: object
) -> pa.Table:
    """The answer to a question about the reasons of some messages."""
    reasons = _REASONS.format(
        of=of,
        nobody=NOBODY,
        # Without links, nobody's neighbours are known.
        alone=0 if run.stored.has("links") else "NULL",
        of_layers=OF_LAYERS,
        **{name: rows_of(run.stored, name) for name in ("links", "presence", "rejections")},
    )
    chosen = run.checked_layers(layers)
    return read_answer(run.stored, reasons + question, layers=chosen, **values)


def delays(run: NamedRun, where: str = "true", **values: object) -> pa.Table:
    """message, interval and topic of its publication, peer, hop, delay_us: a row per delivery.

    `where` is a condition in SQL with `values`. `hop` and `delay_us`, since the publication, are
    null where unknown.

    Raises: UseError where the run's source reports no times, or eligible peers are unknown.
    """
    run.facts.check_known("receptions", TIMES, PUBLICATION_TIMES, AUDIENCE)
    return read_answer(run.stored, _DELAYS.format(where=where), **values)


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
    return read_answer(run.stored, statement, within=within_us, **values_of(run, where))
