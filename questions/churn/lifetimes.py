"""How long links, stays of peers and subscriptions last.

A period that goes on at the end of the run, or of the window, is open: all that is known is that
it lasts longer. Survival, and what follows from it, takes open periods into account (Kaplan and
Meier, Journal of the American Statistical Association 53 (1958) 457-481).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vizpub.questions.churn.keys import OF_PART, Key, links_of
from vizpub.questions.names import NamedRun, Where
from vizpub.questions.sql import OF_LAYERS, read_answer, rows_of

PERIODS = ("links", "presence", "subscriptions")
"""The tables of periods that have lengths; only the first where layers are chosen."""
_SURVIVAL = """
WITH {valued}, periods AS (
    SELECT 'links' AS of, layer, topic, src AS peer, valid_from, valid_to FROM {links}
    WHERE src <> dst AND {of_layers}
    UNION ALL BY NAME
    SELECT 'presence' AS of, peer, valid_from, valid_to FROM {presence} WHERE $all
    UNION ALL BY NAME
    SELECT 'subscriptions' AS of, topic, peer, valid_from, valid_to FROM {subscriptions} WHERE $all
), made AS (
    SELECT * FROM periods WHERE valid_from >= $begin AND valid_from < $end AND {of_part}
), lengths AS (
    SELECT of, layer{column}, least(valid_to, $end) - valid_from AS ticks,
        count(*) FILTER (valid_to < $end) AS ended, count(*) FILTER (valid_to >= $end) AS open
    FROM {made} GROUP BY ALL
), exposed AS (
    SELECT *, (sum(ended + open) OVER (PARTITION BY of, layer{column} ORDER BY ticks DESC))::BIGINT
        AS at_risk
    FROM lengths
), survivors AS (
    SELECT *, product(1 - ended / at_risk) OVER (PARTITION BY of, layer{column} ORDER BY ticks)
        AS survival
    FROM exposed
)"""
_ROUNDING = 1e-9
"""By which a product of many shares may exceed what it is."""
_SUMMARY = f"""
SELECT of, layer{{column}}, sum(ended + open)::BIGINT AS periods, sum(ended)::BIGINT AS ended,
    sum(open)::BIGINT AS open,
    min(ticks) FILTER (survival <= 0.5 + {_ROUNDING}) / $ticks AS median,
    min(ticks) FILTER (survival <= 0.05 + {_ROUNDING}) / $ticks AS p95,
    max(ticks) / $ticks AS longest
FROM survivors GROUP BY ALL ORDER BY ALL
"""
# Of many lengths some hundred rows: one for each half per cent, and for each quarter of a doubling.
_CURVE = """
, placed AS (
    SELECT *, count(*) OVER (PARTITION BY of, layer{column}) > 400 AS are_many FROM survivors
), steps AS (
    SELECT of, layer{column}, max(ticks) / $ticks AS length, max(at_risk) AS at_risk,
        sum(ended)::BIGINT AS ended, sum(open)::BIGINT AS open, min(survival) AS survival
    FROM placed
    GROUP BY of, layer{column}, CASE WHEN are_many THEN ceil(survival * 200) ELSE ticks END,
        CASE WHEN are_many THEN ceil(log2(ticks / $ticks) * 4) END
)
SELECT of, layer{column},
    coalesce(lag(length) OVER (PARTITION BY of, layer{column} ORDER BY length), 0) AS longer_than,
    length, at_risk, ended, open, survival
FROM steps ORDER BY ALL
"""


def lifetimes(
    run: NamedRun, by: str | None, where: Where, layers: Sequence[str] | None = None
) -> pa.Table:
    """of, layer, topic or group, periods, ended, open, median, p95, longest: of the links, stays
    and subscriptions that began in the window, up to its end. Lengths are in intervals.

    The median and p95 are those of survival: null where too few periods are seen to end.

    Raises: UnknownName, UseError for a run without presence or links, or without attributes.
    """
    return _answer(run, _SUMMARY, by, where, layers)


def survival(
    run: NamedRun, by: str | None, where: Where, layers: Sequence[str] | None = None
) -> pa.Table:
    """of, layer, topic or group, longer_than, length, at_risk, ended, open, survival: the share of
    periods that last longer than a length, and the periods with lengths between those of two rows.

    Raises: as `lifetimes`.
    """
    return _answer(run, _CURVE, by, where, layers)


def _answer(
    run: NamedRun, question: str, by: str | None, where: Where, layers: Sequence[str] | None
) -> pa.Table:
    run.facts.check_known("presence", "links")
    key, ticks = Key.of(run, by), run.clock.ticks_per_interval
    statement = (_SURVIVAL + question).format(
        valued=key.valued,
        column=key.column,
        made=key.add_to("made", "made.valid_from"),
        of_layers=OF_LAYERS,
        of_part=OF_PART,
        **{name: rows_of(run.stored, name) for name in PERIODS},
    )
    last = run.clock.last if where.last is None else min(where.last, run.clock.last)
    values = {
        "ticks": ticks,
        "begin": 0 if where.first is None else where.first * ticks,
        "end": (last + 1) * ticks,
        "all": layers is None,
    }
    rows = read_answer(
        run.stored, statement, key=key.name, **values, **links_of(run, where, layers)
    )
    return run.with_names(rows)
