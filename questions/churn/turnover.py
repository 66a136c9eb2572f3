"""How neighbourhoods change from the end of an interval to the next.

The neighbourhood of a peer in a layer are the peers to which it holds links; where links serve
topics, it has one for each topic that it subscribes to. Only what its peer reports is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vizpub.questions.attributes.groups import end_of_interval, sampled_by
from vizpub.questions.churn.keys import OF_PART, Key, links_of
from vizpub.questions.names import NamedRun, Where, window_of
from vizpub.questions.sql import OF_LAYERS, read_answer, rows_of

DEGREES = (4, 12)
"""D_low and D_high of the gossipsub specification: neighbours in the mesh of a topic."""
TURNOVER_COUNTS = ("made", "ended", "neighbourhoods", "below_d_low", "above_d_high", "compared")
"""The numbers of the table that intervals add up."""
TURNOVER_COLUMNS = (*TURNOVER_COUNTS, "neighbours_mean", "jaccard_mean")
"""The numbers of the table."""
# A neighbour for good is a row of `stays`: its periods may have gaps that no interval's end sees.
_TURNOVER = """
WITH {valued}, held AS (
    SELECT *, valid_from // $ticks AS first,
        CASE WHEN valid_to >= $end THEN $last_of_run ELSE valid_to // $ticks - 1 END AS last
    FROM (SELECT *, src AS peer FROM {links}) WHERE src <> dst AND {of_layers} AND {of_part}
), stays AS (
    SELECT *, coalesce(first > lag(last) OVER neighbour + 1, true) AS comes,
        coalesce(lead(first) OVER neighbour > last + 1, true) AS goes
    FROM held WHERE first <= last
    WINDOW neighbour AS (PARTITION BY layer, topic, peer, dst ORDER BY first)
), changes AS (
    SELECT layer, topic, peer, first AS interval, 1 AS came, 0 AS went FROM stays WHERE comes
    UNION ALL
    SELECT layer, topic, peer, last + 1, 0, 1 FROM stays WHERE goes
), kinds AS (
    SELECT DISTINCT layer, topic FROM {links} WHERE {of_layers}
), telling AS (
    SELECT peer FROM stored."peers" WHERE is_reporter UNION SELECT src FROM {links}
), places AS (
    SELECT layer, NULL::INTEGER AS topic, peer, interval
    FROM (SELECT peer, {sampled} FROM {presence}),
        (SELECT layer FROM kinds WHERE topic IS NULL)
    WHERE $topic IS NULL AND ($peer IS NULL OR peer = $peer)
    UNION ALL
    SELECT layer, topic, peer, interval
    FROM (SELECT peer, topic, {sampled} FROM {subscriptions})
        JOIN kinds USING (topic)
    WHERE {of_part}
), steps AS (
    SELECT layer, topic, peer, interval, coalesce(sum(came), 0) AS came,
        coalesce(sum(went), 0) AS went, coalesce(bool_or(is_there), false) AS is_there
    FROM (
        SELECT * FROM changes
        UNION ALL BY NAME
        SELECT *, true AS is_there FROM places SEMI JOIN telling USING (peer)
    )
    GROUP BY ALL
), sizes AS (
    SELECT *, sum(came - went) OVER steps AS neighbours,
        is_there AND coalesce(lag(is_there) OVER steps AND lag(interval) OVER steps = interval - 1,
            false) AS stayed
    FROM steps WINDOW steps AS (PARTITION BY layer, topic, peer ORDER BY interval)
), neighbourhoods AS (
    SELECT *, CASE WHEN stayed THEN (neighbours - came) / nullif(neighbours + went, 0) END
        AS jaccard
    FROM sizes WHERE is_there AND interval > $first
), counted AS (
    SELECT interval, layer{column}, count(*) AS neighbourhoods,
        avg(neighbours) AS neighbours_mean,
        count(*) FILTER (neighbours < $low) AS below_d_low,
        count(*) FILTER (neighbours > $high) AS above_d_high,
        count(jaccard) AS compared, avg(jaccard ORDER BY jaccard) AS jaccard_mean
    FROM {neighbourhoods} GROUP BY ALL
), moves AS (
    SELECT *, valid_from // $ticks AS interval, 1 AS made, 0 AS ended FROM {begun}
    UNION ALL BY NAME
    SELECT *, valid_to // $ticks AS interval, 0 AS made, 1 AS ended FROM {over}
    WHERE valid_to < $end
), moved AS (
    SELECT interval, layer{column}, sum(made) AS made, sum(ended) AS ended
    FROM moves WHERE interval > $first AND interval <= $last GROUP BY ALL
)
SELECT coalesce(c.interval, m.interval)::INTEGER AS interval, coalesce(c.layer, m.layer) AS layer
    {either}, coalesce(made, 0)::BIGINT AS made, coalesce(ended, 0)::BIGINT AS ended,
    coalesce(neighbourhoods, {none}) AS neighbourhoods, neighbours_mean,
    coalesce(below_d_low, {none}) AS below_d_low, coalesce(above_d_high, {none}) AS above_d_high,
    coalesce(compared, {none}) AS compared, jaccard_mean
FROM counted c FULL JOIN moved m ON c.interval = m.interval AND c.layer = m.layer {same}
ORDER BY ALL
"""


def turnover(
    run: NamedRun,
    by: str | None,
    where: Where,
    layers: Sequence[str] | None = None,
    degrees: tuple[int, int] = DEGREES,
) -> pa.Table:
    """interval, layer, topic or group, made, ended, neighbourhoods, neighbours_mean, below_d_low,
    above_d_high, compared, jaccard_mean.

    `made` and `ended` count links that begin and end in the interval; the other columns are of the
    neighbourhoods at its end: how many there are, their mean size, those with fewer or more
    neighbours than the `degrees`, and the mean Jaccard index with the interval before, of those
    `compared`: there at both ends, with a neighbour at one.

    Raises: UnknownName, UseError for a run without presence or links, or without attributes.
    """
    run.facts.check_known("presence", "links")
    key, ticks = Key.of(run, by), run.clock.ticks_per_interval
    column = key.column.removeprefix(", ")
    statement = _TURNOVER.format(
        valued=key.valued,
        column=key.column,
        either=f", coalesce(c.{column}, m.{column}) AS {column}" if column else "",
        same=f"AND c.{column} IS NOT DISTINCT FROM m.{column}" if column else "",
        neighbourhoods=key.add_to("neighbourhoods", end_of_interval(run)),
        begun=key.add_to("held", "held.valid_from"),
        over=key.add_to("held", "(held.valid_to - 1)"),
        none="0" if run.facts.knows("subscriptions") else "NULL",  # of topics they are unknown
        sampled=sampled_by(run),
        of_layers=OF_LAYERS,
        of_part=OF_PART,
        **{name: rows_of(run.stored, name) for name in ("links", "presence", "subscriptions")},
    )
    window = window_of(run, where)
    values = {
        "ticks": ticks,
        "first": window["first"] - 1,  # the interval to compare the first one with
        "last": window["last"],
        "last_of_run": run.clock.last,
        "end": (run.clock.last + 1) * ticks,
        "low": degrees[0],
        "high": degrees[1],
    }
    rows = read_answer(
        run.stored, statement, key=key.name, **values, **links_of(run, where, layers)
    )
    return run.with_names(rows)
