"""Bytes of the copies of messages that arrived, beside those that the receivers needed."""

from __future__ import annotations

import pyarrow as pa

from vizpub.model.run import DUPLICATES
from vizpub.questions.attributes.groups import VALUED, holds_at, key_and_column
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import read_answer, rows_of

# Sums leave out messages of unknown size; those of unknown senders are unknown.
_STATEMENT = """
WITH {valued}, chosen AS (
    SELECT message, topic, interval, publisher, tick, bytes::HUGEINT AS size
    FROM stored."publications"
    WHERE interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
        AND ($peer IS NULL OR publisher = $peer)
), copies AS (
    SELECT message, previous_hop, first, NOT first AS again FROM stored."receptions"
    UNION ALL SELECT message, previous_hop, false, false FROM {rejections}
), counted AS (
    SELECT message, count(*) AS copies, count(*) FILTER (first) AS receivers,
        count(*) FILTER (again) AS duplicates,
        CASE WHEN count(previous_hop = publisher) = count(*) THEN
            count(*) FILTER (previous_hop = publisher)
        END AS published
    FROM copies JOIN chosen USING (message) GROUP BY ALL
)
SELECT {column} count(*) AS messages, count(size) AS sized_messages,
    TRY_CAST(sum(size * coalesce(copies, 0)) AS BIGINT) AS bytes_received,
    TRY_CAST(sum(size * coalesce(receivers, 0)) AS BIGINT) AS bytes_needed,
    TRY_CAST(sum(size * coalesce(duplicates, 0)) AS BIGINT) AS bytes_of_duplicates,
    CASE WHEN {is_known} THEN
        TRY_CAST(sum(size * coalesce(published, 0)) AS BIGINT)
    END AS bytes_of_publishers,
    bytes_received - bytes_of_publishers AS bytes_of_relays,
    bytes_received / nullif(bytes_needed, 0) AS amplification
FROM chosen c LEFT JOIN counted USING (message)
    LEFT JOIN valued v ON v.peer = c.publisher AND {holds}
GROUP BY ALL ORDER BY ALL NULLS LAST
"""
_IS_KNOWN = "count(*) FILTER (copies > 0 AND published IS NULL AND size IS NOT NULL) = 0"
SIZE_AT_MOST = (
    "TRY_CAST(CASE WHEN size > 1 THEN 2 ** ceil(log2(size)) ELSE size END AS BIGINT) "
    "AS size_at_most,"
)
_COLUMNS: dict[str | None, str] = {
    None: "",
    **{name: f"c.{name}," for name in ("message", "topic", "interval")},
    "size": SIZE_AT_MOST,
}


def sum_bytes(run: NamedRun, by: str | None, where: Where) -> pa.Table:
    """messages, sized_messages, and of those of known size: bytes_received, the bytes of all copies
    that arrived; bytes_needed, those of first receptions; bytes_of_duplicates;
    bytes_of_publishers and bytes_of_relays, those of copies from the publisher and from others,
    null where senders are unknown; amplification, bytes_received / bytes_needed.

    `by` 'message', 'topic', 'interval' or 'size' (`size_at_most`: in doublings), there is a row for
    each; by an attribute of peers, for each `group` of publishers.

    Raises: UnknownName, UseError for a run without duplicates, or without attributes.
    """
    run.facts.check_known("receptions", DUPLICATES)
    key, column = key_and_column(run, by, _COLUMNS)
    statement = _STATEMENT.format(
        valued=VALUED.format(attributes=rows_of(run.stored, "attributes")),
        rejections=rows_of(run.stored, "rejections"),
        column=column,
        is_known=_IS_KNOWN,
        holds=holds_at("c.tick"),
    )
    return run.with_names(read_answer(run.stored, statement, key=key, **values_of(run, where)))
