"""Metrics by group: peers with the same value of an attribute, at the time of what is counted.

A peer without the attribute belongs to the group null: unknown. Counts are added, numbers of single
peers averaged, and ratios are those of the sums. A peer counts for the value that it has at an
interval's end or, for messages, at the publication.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.clock import OPEN
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.metrics import COUNTS
from vizpub.model.run import AUDIENCE, DUPLICATES
from vizpub.questions.names import NamedRun, Where, part_of, window_of
from vizpub.questions.snapshots import alive
from vizpub.questions.sql import read_answer, rows_of

ADD_ATTRIBUTES = (
    "it has no attributes of peers: ingest its files with --attributes peers.csv and --replace"
)
BY_GROUP = ("peers", "topics", "messages")
"""Tables of metrics that can be by group."""
OF_ONE_PEER = frozenset(
    {"present", "component", "strong_component", "betweenness_error", "mean_distance_error"}
)
"""Columns of metrics/peers that say nothing about several peers together."""

VALUED = """valued AS (
    SELECT peer, value, number, valid_from, valid_to FROM {attributes} WHERE key = $key
)"""
"""The periods of the values of an attribute; none where $key is null."""
GROUP = 'v.value AS "group",'
"""The column of rows that periods `v` of VALUED are joined to."""
_PEERS = """
WITH {valued}
SELECT interval, v.value AS "group", count(*) FILTER (coalesce(present, true)) AS peers{columns}
FROM rows LEFT JOIN valued v ON v.peer = rows.peer AND {holds}
GROUP BY ALL ORDER BY interval, "group" NULLS LAST
"""
_CHOSEN = """
WITH {valued}, chosen AS (
    SELECT *, coalesce(rejections, 0) = 0 AS counted
    FROM {publications} JOIN {messages} USING (message)
    WHERE interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
        AND ($peer IS NULL OR publisher = $peer)
), arrivals AS (
    SELECT c.message, c.counted, c.publisher, c.tick, r.peer, r.first, r.eligible, r.subscribed,
        r.hop, r.delay_us
    FROM {receptions} r JOIN chosen c USING (message)
)"""
_HITS = """
    sum(delivered) FILTER (counted) / nullif(sum(eligible) FILTER (counted), 0) AS hit_ratio,
    avg(hit_ratio ORDER BY hit_ratio) FILTER (counted) AS hit_ratio_mean"""
_COPIES = """
    sum(duplicates) FILTER (counted AND delivered IS NOT NULL)
        / nullif(sum(delivered) FILTER (counted AND duplicates IS NOT NULL), 0)
        AS duplicates_per_delivery,
    CASE WHEN count(relay_receptions) = count(*)
        THEN sum(relay_receptions) / nullif(sum(receptions), 0) END AS relay_share"""
_HOPS = """
    sum(round(hops_mean * hops_known)::BIGINT) / nullif(sum(hops_known), 0) AS hops_mean,
    max(hops_max) AS hops_max"""
"""Of messages, as analytics/sql/hits.sql has them."""
DELAYS = """
    avg(delay_us ORDER BY delay_us) FILTER (first) AS delay_us_mean,
    quantile_cont(delay_us::DOUBLE, 0.5) FILTER (first) AS delay_us_p50,
    quantile_cont(delay_us::DOUBLE, 0.95) FILTER (first) AS delay_us_p95,
    quantile_cont(delay_us::DOUBLE, 0.99) FILTER (first) AS delay_us_p99,
    max(delay_us::DOUBLE) FILTER (first) AS delay_us_max"""
"""The delays of arrivals, as vizpub.analytics.messages.message_measures has them."""
_SPREAD = f"""
    avg(hop) FILTER (first) AS hops_mean, max(hop) FILTER (first) AS hops_max,{DELAYS}"""
_SUMS = {
    **dict.fromkeys(("eligible", "delivered"), "counted"),
    **dict.fromkeys(("receptions", "first_receptions", "duplicates", "relay_receptions"), "true"),
}
"""The columns of groups of messages that add up messages, and which of them."""
_BY_PUBLISHER = """
, sums AS (
    SELECT v.value AS "group", count(*) AS messages, {sums}, {hits},
        sum(receptions) / nullif(sum(first_receptions), 0) - 1 AS redundancy, {copies}
    FROM chosen LEFT JOIN valued v ON v.peer = publisher AND {holds} GROUP BY ALL
), spread AS (
    SELECT v.value AS "group", {spread}
    FROM arrivals LEFT JOIN valued v ON v.peer = publisher AND {holds} GROUP BY ALL
)
SELECT s.*, spread.* EXCLUDE ("group")
FROM sums s LEFT JOIN spread ON spread."group" IS NOT DISTINCT FROM s."group"
ORDER BY s."group" NULLS LAST
"""
_BY_RECEIVER = """
, received AS (
    SELECT *, false AS lost FROM arrivals
    UNION ALL BY NAME
    SELECT c.message, c.counted, c.tick, m.peer, true AS eligible, false AS first, true AS lost
    FROM {missed} m JOIN chosen c USING (message)
), counts AS (
    SELECT v.value AS "group",
        count(*) FILTER (counted AND eligible AND (lost OR first)) AS eligible,
        count(*) FILTER (counted AND eligible AND first) AS delivered,
        count(*) FILTER (counted AND eligible IS NOT NULL AND NOT lost AND NOT first)
            AS _counted_duplicates,
        count(*) FILTER (NOT lost) AS receptions,
        count(*) FILTER (first) AS first_receptions,
        count(*) FILTER (NOT subscribed) AS relay_receptions,
        count(*) FILTER (NOT lost AND subscribed IS NULL) AS _unclear,
        {spread}
    FROM received LEFT JOIN valued v ON v.peer = received.peer AND {holds} GROUP BY ALL
)
SELECT "group",
    CASE WHEN $audience AND all_known THEN eligible END AS eligible,
    CASE WHEN $audience AND all_known THEN delivered END AS delivered,
    CASE WHEN $audience THEN delivered / nullif(eligible, 0) END AS hit_ratio,
    CASE WHEN $all_listed THEN receptions END AS receptions, first_receptions,
    CASE WHEN $all_listed THEN receptions - first_receptions END AS duplicates,
    CASE WHEN $all_listed AND _unclear = 0 THEN relay_receptions END AS relay_receptions,
    CASE WHEN $all_listed THEN receptions / nullif(first_receptions, 0) - 1 END AS redundancy,
    CASE WHEN $all_listed AND $audience THEN _counted_duplicates / nullif(delivered, 0) END
        AS duplicates_per_delivery,
    CASE WHEN $all_listed AND _unclear = 0 THEN relay_receptions / nullif(receptions, 0) END
        AS relay_share,
    COLUMNS('^(hops|delay)')
FROM counts, (SELECT count(eligible) = count(*) AS all_known FROM chosen WHERE counted)
ORDER BY "group" NULLS LAST
"""
_TOPICS = """
WITH {valued}, members AS (
    SELECT interval, topic, v.value AS "group", count(*) AS subscribers
    FROM (SELECT topic, peer, {sampled} FROM {subscriptions}) s
        LEFT JOIN valued v ON v.peer = s.peer AND {holds}
    GROUP BY ALL
), published AS (
    SELECT interval, topic, v.value AS "group", count(*) AS publications, {hits}, {hops}, {copies}
    FROM (
        SELECT *, coalesce(rejections, 0) = 0 AS counted
        FROM {publications} JOIN {messages} USING (message)
    ) LEFT JOIN valued v ON v.peer = publisher AND {holds_then}
    WHERE interval BETWEEN $first AND $last GROUP BY ALL
), arrived AS (
    SELECT r.interval, topic, v.value AS "group", count(*) FILTER (NOT first) AS repeated
    FROM {receptions} r JOIN (SELECT message, topic FROM {publications}) USING (message)
        LEFT JOIN valued v ON v.peer = r.peer AND {holds_there}
    WHERE r.interval BETWEEN $first AND $last GROUP BY ALL
), keys AS (
    SELECT interval, topic, "group" FROM members
    UNION SELECT interval, topic, "group" FROM published
    UNION SELECT interval, topic, "group" FROM arrived
)
SELECT k.topic, k.interval, k."group",
    CASE WHEN $has_members THEN coalesce(subscribers, $none) END AS subscribers,
    CASE WHEN $has_messages THEN coalesce(publications, 0) END AS publications,
    hit_ratio, hit_ratio_mean, hops_mean, hops_max, duplicates_per_delivery, relay_share,
    CASE WHEN $all_listed AND NOT coalesce(partly_listed, false)
        THEN coalesce(repeated, 0) END AS duplicates
FROM keys k
    LEFT JOIN (SELECT interval, topic, duplicates IS NULL AS partly_listed FROM {topics}) t
        ON (k.interval, k.topic) = (t.interval, t.topic)
    LEFT JOIN members m ON {same_m}
    LEFT JOIN published p ON {same_p}
    LEFT JOIN arrived a ON {same_a}
WHERE k.topic IS NOT NULL AND ($topic IS NULL OR k.topic = $topic)
ORDER BY k.interval, k.topic, k."group" NULLS LAST
"""


def attribute_keys(run: NamedRun) -> list[str]:
    """The names of the attributes that the run has, sorted."""
    batches = run.stored.scan("attributes", ["key"])
    return sorted({key for rows in batches for key in rows["key"].unique().to_pylist()})


def check_attribute(run: NamedRun, key: str) -> None:
    """Raises: UseError for a run without attributes, UnknownName."""
    if not run.stored.has("attributes"):
        raise UseError(f"run '{run.facts.name}' cannot be grouped by '{key}': {ADD_ATTRIBUTES}")
    if key not in (keys := attribute_keys(run)):
        raise UnknownName("attribute", key, keys)


def key_and_column(
    run: NamedRun, by: str | None, columns: Mapping[str | None, str], group: str = GROUP
) -> tuple[str | None, str]:
    """The value of $key in VALUED, and the column in SQL that distinguishes rows: one of `columns`,
    with no key, or `group` for the attribute `by`.

    Raises: UnknownName, UseError for a run without attributes.
    """
    if by is None or by in columns:
        return None, columns[by]
    check_attribute(run, by)
    return by, group


def holds_at(tick: str, periods: str = "v") -> str:
    """The condition in SQL for periods that hold at a tick."""
    return f"{periods}.valid_from <= {tick} AND {tick} < {periods}.valid_to"


def sampled_by(run: NamedRun) -> str:
    """The intervals from $first to $last at whose end a period holds, as rows in SQL
    (vizpub.model.clock.Clock.sampled).
    """
    ticks = run.clock.ticks_per_interval
    last = f"CASE WHEN valid_to = {OPEN} THEN $last ELSE valid_to // {ticks} - 1 END"
    begin, end = f"greatest(valid_from // {ticks}, $first)", f"least({last}, $last) + 1"
    return f"unnest(range({begin}, {end}))::INTEGER AS interval"


def end_of_interval(run: NamedRun) -> str:
    """The tick at which an interval's state is taken, in SQL."""
    return f"((interval + 1)::BIGINT * {run.clock.ticks_per_interval} - 1)"


def peers_by_group(run: NamedRun, key: str, rows: pa.Table) -> pa.Table:
    """interval, group, peers, and the columns of rows of metrics/peers: means over the peers
    present, and the sums of counts over all peers, which leave out unknown values.

    Raises: UnknownName, UseError for a run without attributes.
    """
    check_attribute(run, key)
    columns = []
    for field in rows.schema:
        name = field.name
        if name in OF_ONE_PEER or name in ("peer", "peer_name", "interval"):
            continue
        if name in COUNTS:
            columns.append(f'TRY_CAST(sum("{name}") AS BIGINT) AS "{name}"')
        order = f' ORDER BY "{name}"' if field.type == pa.float64() else ""  # else sums are exact
        columns.append(f'avg("{name}"{order}) FILTER (coalesce(present, true)) AS "{name}_mean"')
    statement = _PEERS.format(
        valued=VALUED.format(attributes="attributes"),
        columns="".join(f", {text}" for text in columns),
        holds=holds_at(end_of_interval(run)),
    )
    return _with_attributes(run, key, rows, statement)


def values_at(run: NamedRun, key: str, tick: int) -> dict[int, str]:
    """The value of an attribute at a tick, by peer; peers without one are left out.

    Raises: UnknownName, UseError for a run without attributes.
    """
    check_attribute(run, key)
    rows = run.stored.read("attributes", ["peer", "value"], alive(tick) & (pc.field("key") == key))
    return dict(zip(rows["peer"].to_pylist(), rows["value"].to_pylist(), strict=True))


def add_groups(run: NamedRun, key: str, rows: pa.Table) -> pa.Table:
    """Add the column `group` to rows of intervals: the value that the peer of the row, or the
    publisher of the message, has at the interval's end.

    Raises: UnknownName, UseError for a run without attributes.
    """
    check_attribute(run, key)
    peer = "peer" if "peer" in rows.column_names else "publisher"
    statement = (
        f"WITH {VALUED.format(attributes='attributes')} "
        f'SELECT rows.*, v.value AS "group" FROM rows LEFT JOIN valued v '
        f"ON v.peer = rows.{peer} AND {holds_at(end_of_interval(run))} ORDER BY place"
    )
    placed = rows.append_column("place", pa.array(range(rows.num_rows)))
    return _with_attributes(run, key, placed, statement).drop_columns(["place"])


def _with_attributes(run: NamedRun, key: str, rows: pa.Table, statement: str) -> pa.Table:
    """The answer to a question about `rows` and the run's `attributes`."""
    import duckdb

    with duckdb.connect() as database:
        database.register("rows", rows)
        database.register("attributes", run.stored.read("attributes"))
        return database.sql(statement, params={"key": key}).to_arrow_table()


def messages_by_group(run: NamedRun, key: str, where: Where, *, receivers: bool) -> pa.Table:
    """A row for each group of publishers, or of receivers: what their messages had together.

    eligible, delivered and hit ratios leave out messages that a peer refused; delays and hops are
    those of all first receptions. Sums are null where a message's number is unknown, and for a run
    that has a sample of the messages; ratios are those of the messages of which they are known.

    Raises: UnknownName, UseError for a run without attributes, or messages.
    """
    check_attribute(run, key)
    run.facts.check_known("metrics/messages", *(["receptions"] if receivers else []))
    values: dict[str, object] = dict(part_of(run, where))
    if receivers:
        values |= {
            "audience": run.stored.has("missed") and run.facts.knows(AUDIENCE),
            "all_listed": run.facts.knows(DUPLICATES),
        }
    question = _CHOSEN + (_BY_RECEIVER if receivers else _BY_PUBLISHER)
    rows = _answer(run, question, key, where, holds=holds_at("tick"), **values)
    for name in ("messages", *_SUMS) if run.facts.is_sample else ():
        if name in rows.column_names:
            unknown = pa.nulls(rows.num_rows, rows.schema.field(name).type)
            rows = rows.set_column(rows.column_names.index(name), name, unknown)
    return rows


def topics_by_group(run: NamedRun, key: str, where: Where) -> pa.Table:
    """topic, interval, group, subscribers; publications, hit_ratio, hit_ratio_mean, hops_mean,
    hops_max, duplicates_per_delivery and relay_share of what the group published; duplicates that
    it received.

    Raises: UnknownName, UseError for a run without attributes, or topics.
    """
    check_attribute(run, key)
    run.facts.check_known("topics")
    same = {
        f"same_{of}": f"(k.interval, k.topic) = ({of}.interval, {of}.topic) "
        f'AND k."group" IS NOT DISTINCT FROM {of}."group"'
        for of in "mpa"
    }
    return _answer(
        run,
        _TOPICS,
        key,
        where,
        sampled=sampled_by(run),
        holds=holds_at(end_of_interval(run)),
        holds_then=holds_at("tick"),
        holds_there=holds_at("r.tick"),
        **same,
        topic=part_of(run, where)["topic"],
        has_members=run.facts.knows("subscriptions") and run.facts.knows("presence"),
        none=None if run.facts.is_sample else 0,
        has_messages=run.stored.has("metrics/messages") and not run.facts.is_sample,
        all_listed=run.stored.has("receptions")
        and run.facts.knows(DUPLICATES)
        and not run.facts.is_sample,
    )


def _answer(run: NamedRun, question: str, key: str, where: Where, **parts: object) -> pa.Table:
    """The answer to a question whose text has places for some parts, and values for others."""
    tables = {
        name.rpartition("/")[2]: rows_of(run.stored, name)
        for name in (
            *("publications", "metrics/messages", "metrics/topics"),
            *("missed", "subscriptions"),
        )
    }
    arrivals = "receptions"
    if not run.stored.has("receptions"):
        arrivals = f"(SELECT *, NULL::BIGINT AS delay_us FROM {rows_of(run.stored, 'receptions')})"
    values = {name: value for name, value in parts.items() if f"${name}" in question}
    statement = question.format(
        valued=VALUED.format(attributes='stored."attributes"'),
        sums=", ".join(
            f"CASE WHEN bool_and({name} IS NOT NULL) FILTER ({which}) "
            f"THEN sum({name}) FILTER ({which})::BIGINT END AS {name}"
            for name, which in _SUMS.items()
        ),
        hits=_HITS,
        hops=_HOPS,
        copies=_COPIES,
        spread=_SPREAD,
        receptions=arrivals,
        **tables,
        **{name: text for name, text in parts.items() if name not in values},
    )
    return read_answer(run.stored, statement, key=key, **window_of(run, where), **values)
