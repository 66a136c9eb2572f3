"""Duplicates: how many peers get some of a message, and how soon after the first copy."""

from __future__ import annotations

import pyarrow as pa

from vizpub.model.run import DUPLICATES
from vizpub.model.tables import COPY_FLAGS
from vizpub.questions.arrivals.amplification import SIZE_AT_MOST
from vizpub.questions.attributes.groups import VALUED, holds_at, key_and_column
from vizpub.questions.deliveries import COUNTED_BY
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import read_answer, rows_of

# A row of `received` is a peer with a first reception of a message; so the publisher has none.
_STATEMENT = """
WITH {valued}, received AS (
    SELECT message, r.peer, topic, p.interval, p.tick, p.bytes AS size,
        count(*) FILTER (NOT first) AS duplicates,
        CASE WHEN count(*) = count(r.time_us) THEN
            min(r.time_us) FILTER (NOT first)::HUGEINT - min(r.time_us) FILTER (first)
        END::DOUBLE AS first_duplicate_us,
        {marked}
    FROM stored."receptions" r JOIN stored."publications" p USING (message)
    WHERE p.interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
        AND ($peer IS NULL OR r.peer = $peer)
    GROUP BY ALL HAVING bool_or(first)
)
SELECT {column} count(*) AS first_receptions,
    count(*) FILTER (duplicates > 0) AS with_duplicates,
    coalesce(sum(duplicates), 0)::BIGINT AS duplicates,
    {sums},
    {quantiles}, max(first_duplicate_us) AS first_duplicate_us_max
FROM received r LEFT JOIN valued v ON v.peer = r.peer AND {holds}
GROUP BY ALL ORDER BY ALL NULLS LAST
"""
_QUANTILES = ", ".join(
    f"quantile_cont(first_duplicate_us, {n / 100}) AS first_duplicate_us_p{n}" for n in (50, 95)
)

_MARKS = tuple(flag.name for flag in COPY_FLAGS)
# Unknown of one copy is unknown of all.
_MARKED = ", ".join(
    f"CASE WHEN bool_and({mark} IS NOT NULL OR first) THEN count(*) FILTER (NOT first AND {mark}) "
    f"END AS {mark}"
    for mark in _MARKS
)
_SUMS = ", ".join(
    f"CASE WHEN count({mark}) = count(*) THEN coalesce(sum({mark}), 0)::BIGINT "
    f"END AS duplicates_{mark}"
    for mark in _MARKS
)


def count_duplicates(run: NamedRun, by: str | None, where: Where) -> pa.Table:
    """first_receptions, with_duplicates, duplicates, duplicates_after_idontwant,
    duplicates_before_idontwant, duplicates_by_iwant, first_duplicate_us_p50, …_p95, …_max: over all
    first receptions of the messages that were published in the window, how many of these peers got
    duplicates, how many these were, how many of them came after the peer's own IDONTWANT, before
    it, and because of its IWANT (null where the source does not name the messages of these), and
    the time from the first reception to the first duplicate in µs. It is null where no times are
    known; negative if the duplicate came while the peer still validated the first copy.

    `by` 'message', 'peer', 'topic', 'interval' (of publication) or 'size' (`size_at_most`: in
    doublings, null where it is unknown), there is a row for each; by an attribute of peers, for
    each `group` of receivers.

    Raises: UnknownName, UseError for a run without duplicates, or without attributes.
    """
    run.facts.check_known("receptions", DUPLICATES)
    columns: dict[str | None, str] = {
        None: "",
        **{name: f"r.{name}," for name in COUNTED_BY},
        "size": SIZE_AT_MOST,
    }
    key, column = key_and_column(run, by, columns)
    statement = _STATEMENT.format(
        valued=VALUED.format(attributes=rows_of(run.stored, "attributes")),
        column=column,
        quantiles=_QUANTILES,
        marked=_MARKED,
        sums=_SUMS,
        holds=holds_at("r.tick"),
    )
    return run.with_names(read_answer(run.stored, statement, key=key, **values_of(run, where)))
