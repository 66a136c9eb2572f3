"""Control messages by kind, added up over peers and topics."""

from __future__ import annotations

import pyarrow as pa

from vizpub.model.errors import UseError
from vizpub.questions.attributes.groups import VALUED, check_attribute, end_of_interval, holds_at
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import read_answer, rows_of

NAME_ONE = "name one of those that it has (--topic)"
# Of a kind without a row, peers had none where their kinds add up to all of their control messages.
_STATEMENT = """
WITH {valued}, mine AS (
    SELECT c.*, v.value AS "group"
    FROM stored."control" c LEFT JOIN valued v ON v.peer = c.peer AND {holds}
    WHERE interval BETWEEN $first AND $last AND ($peer IS NULL OR c.peer = $peer)
), counted AS (
    SELECT interval, "group", kind, TRY_CAST(sum(COLUMNS('^(messages|ids|bytes)_')) AS BIGINT)
    FROM mine WHERE $topic IS NULL OR topic = $topic GROUP BY ALL
), kinds AS (
    SELECT kind,
        CASE WHEN count(coalesce(ids_sent, ids_received)) > 0 THEN 0 END AS no_ids,
        CASE WHEN count(coalesce(bytes_sent, bytes_received)) > 0 THEN 0 END AS no_bytes
    FROM counted GROUP BY kind
), told AS (
    SELECT interval, "group", sum(messages_sent) AS sent, sum(messages_received) AS received,
        count(*) - count(messages_dropped) AS drops_untold
    FROM mine GROUP BY ALL
), added AS (
    SELECT interval, v.value AS "group", sum(control_messages_sent) AS sent,
        sum(control_messages_received) AS received, sum(dropped) AS dropped
    FROM {traffic} t LEFT JOIN valued v ON v.peer = t.peer AND {holds}
    WHERE interval BETWEEN $first AND $last AND ($peer IS NULL OR t.peer = $peer)
    GROUP BY ALL
), without AS (
    SELECT a.interval, a."group", kind,
        CASE WHEN a.sent = coalesce(t.sent, 0) THEN 0 END AS messages_sent,
        CASE WHEN a.received = coalesce(t.received, 0) THEN 0 END AS messages_received,
        -- RPCs are dropped, not entries, so these do not add up: kinds that are all told are all.
        CASE WHEN a.dropped = 0 OR (
            a.dropped IS NOT NULL AND coalesce(drops_untold, 0) = 0
            AND messages_sent = 0 AND messages_received = 0
        ) THEN 0 END AS messages_dropped,
        messages_sent + no_ids AS ids_sent, messages_received + no_ids AS ids_received,
        messages_dropped + no_ids AS ids_dropped,
        messages_sent + no_bytes AS bytes_sent, messages_received + no_bytes AS bytes_received,
        messages_dropped + no_bytes AS bytes_dropped
    FROM added a CROSS JOIN kinds LEFT JOIN told t
        ON t.interval = a.interval AND t."group" IS NOT DISTINCT FROM a."group"
    WHERE NOT EXISTS (
        FROM counted c WHERE (c.interval, c.kind) = (a.interval, kinds.kind)
            AND c."group" IS NOT DISTINCT FROM a."group"
    )
)
FROM counted UNION ALL BY NAME FROM without
WHERE coalesce(messages_sent, messages_received, messages_dropped) IS NOT NULL
ORDER BY interval, "group" NULLS LAST, kind
"""


def control_by_kind(run: NamedRun, where: Where, by: str | None = None) -> pa.Table:
    """interval, kind, and messages, ids and bytes that peers sent, received and dropped; null where
    no peer counts them. With `by`, apart for each `group` of peers with the same value of that
    attribute.

    Raises: UnknownName, UseError for a run without control by kind, or without attributes, and for
    all topics of a run that has a sample of them.
    """
    run.facts.check_known("control")
    if run.facts.is_sample and where.topic is None:
        raise UseError(f"run '{run.facts.name}' has a sample of topics: {NAME_ONE}")
    if by is not None:
        check_attribute(run, by)
    statement = _STATEMENT.format(
        valued=VALUED.format(attributes=rows_of(run.stored, "attributes")),
        traffic=rows_of(run.stored, "traffic"),
        holds=holds_at(end_of_interval(run)),
    )
    rows = read_answer(run.stored, statement, key=by, **values_of(run, where))
    return rows.drop_columns(["group"]) if by is None else rows
