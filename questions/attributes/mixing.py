"""Mixing: which groups of peers link to which, at the end of each interval, in each layer.

A group is the value of an attribute. Expected links are those of a graph at random in which every
group has as many links out and in as observed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vizpub.questions.attributes.groups import (
    VALUED,
    check_attribute,
    end_of_interval,
    holds_at,
    sampled_by,
)
from vizpub.questions.names import NamedRun, Where, window_of
from vizpub.questions.sql import OF_LAYERS, read_answer

MIXING = ("mixing", "assortativity")
"""The names of the two tables, for commands."""
ASSORTATIVITY_COLUMNS = (
    *("links", "known_links", "within_share", "within_expected"),
    *("assortativity", "numeric_assortativity"),
)
"""The numbers of the second table."""
_CHANCES = """
WITH {valued}, edges AS (
    SELECT DISTINCT layer, src, dst, {sampled} FROM stored."links" WHERE src <> dst AND {of_layers}
), ends AS (
    SELECT interval, layer, s.value AS "group", d.value AS to_group,
        s.number AS src_number, d.number AS dst_number
    FROM edges
        LEFT JOIN valued s ON s.peer = src AND {holds_src}
        LEFT JOIN valued d ON d.peer = dst AND {holds_dst}
), cells AS (
    SELECT interval, layer, "group", to_group, count(*) AS links,
        "group" IS NOT NULL AND to_group IS NOT NULL AS is_known
    FROM ends GROUP BY ALL
), chances AS (
    SELECT *,
        sum(links) OVER (PARTITION BY interval, layer, is_known) AS all_links,
        sum(links) OVER (PARTITION BY interval, layer, is_known, "group") AS links_out,
        sum(links) OVER (PARTITION BY interval, layer, is_known, to_group) AS links_in
    FROM cells
)"""
_MIXING = """
SELECT interval, layer, "group", to_group, links,
    links / sum(links) OVER (PARTITION BY interval, layer, "group") AS share,
    CASE WHEN is_known THEN links_out * links_in / all_links END::DOUBLE AS expected_links
FROM chances ORDER BY interval, layer, "group" NULLS LAST, to_group NULLS LAST
"""
_ASSORTATIVITY = """
, shares_out AS (
    SELECT DISTINCT interval, layer, "group" AS of_group, links_out / all_links AS share_out
    FROM chances WHERE is_known
), shares_in AS (
    SELECT DISTINCT interval, layer, to_group AS of_group, links_in / all_links AS share_in
    FROM chances WHERE is_known
), by_chance AS (
    SELECT interval, layer,
        sum(share_out * share_in ORDER BY share_out * share_in) AS within_expected
    FROM shares_out JOIN shares_in USING (interval, layer, of_group) GROUP BY ALL
), counted AS (
    SELECT interval, layer, count(*) AS links,
        count(*) FILTER ("group" IS NOT NULL AND to_group IS NOT NULL) AS known_links,
        count(*) FILTER ("group" = to_group) / nullif(known_links, 0) AS within_share,
        corr(src_number, dst_number ORDER BY src_number, dst_number) AS numeric_assortativity
    FROM ends GROUP BY ALL
)
SELECT interval, layer, links, known_links, within_share,
    CASE WHEN known_links > 0 THEN coalesce(within_expected, 0) END AS within_expected,
    (within_share - coalesce(within_expected, 0)) / nullif(1 - coalesce(within_expected, 0), 0)
        AS assortativity,
    CASE WHEN isfinite(numeric_assortativity) THEN numeric_assortativity END
        AS numeric_assortativity
FROM counted LEFT JOIN by_chance USING (interval, layer) ORDER BY interval, layer
"""


def mixing(run: NamedRun, key: str, where: Where, layers: Sequence[str] | None = None) -> pa.Table:
    """interval, layer, group, to_group, links, share, expected_links: the links from one group to
    another, their share of those of `group`, and how many chance gives (null for unknown groups).

    Raises: UnknownName, UseError for a run without attributes, presence or links.
    """
    return _answer(run, _CHANCES + _MIXING, key, where, layers)


def assortativity(
    run: NamedRun, key: str, where: Where, layers: Sequence[str] | None = None
) -> pa.Table:
    """interval, layer, links, known_links, within_share, within_expected, assortativity,
    numeric_assortativity: over links between peers whose values are known (Newman 2003).

    A coefficient is null where all peers of these links have one value. Raises: as `mixing`.
    """
    return _answer(run, _CHANCES + _ASSORTATIVITY, key, where, layers)


def _answer(
    run: NamedRun, question: str, key: str, where: Where, layers: Sequence[str] | None
) -> pa.Table:
    check_attribute(run, key)
    run.facts.check_known("presence", "links")
    at_end = end_of_interval(run)
    statement = question.format(
        valued=VALUED.format(attributes='stored."attributes"'),
        sampled=sampled_by(run),
        of_layers=OF_LAYERS,
        holds_src=holds_at(at_end, "s"),
        holds_dst=holds_at(at_end, "d"),
    )
    counted = run.counted_layers(layers)
    return read_answer(run.stored, statement, key=key, layers=counted, **window_of(run, where))
