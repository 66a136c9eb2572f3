"""Folded tables of reports → observed tables."""

from __future__ import annotations

from dataclasses import replace

from vizpub.ingest.sources.base import Description, Observed, SourceOptions
from vizpub.ingest.sources.folded import NAMES_OF_REPORTERS, NO_REJECTIONS
from vizpub.ingest.sources.reports.facts import COUNTED, Tally, partly_listed
from vizpub.model.run import DUPLICATES

ARRIVALS, REPEATED = "arrivals", "repeated arrivals"
"""What a list may lack that is counted (measured.sql)."""


def observe(run: Description, options: SourceOptions) -> Observed:
    """See Reports.observe."""
    unknown = set(run.unknown)
    arrivals = {"sent", "received"} - unknown
    observed = Observed(
        peers="SELECT name FROM whole.peers",
        presence=_periods("presence"),
        links=None if "neighbors" in unknown else _periods("links"),
        subscriptions=None if "topics" in unknown else _periods("subscriptions"),
        roles=None if "roles" in unknown else _periods("roles"),
        traffic="FROM folded.traffic" if COUNTED.keys() - unknown else None,
        gauges="FROM folded.gauges" if Tally.of(run.totals).gauges else None,
        publications="FROM folded.publications" if arrivals else None,
        receptions="FROM folded.receptions" if "received" in arrivals else None,
        rejections=NO_REJECTIONS if arrivals else None,
        unreported=_unreported(run, options),
    )
    if options.reporters_only and observed.links:
        to_reporters = " WHERE dst IN (SELECT name FROM whole.peers)"
        names = NAMES_OF_REPORTERS.format(reporter="name")
        return replace(observed, links=observed.links + to_reporters, names=names)
    return observed


def _periods(table: str) -> str:
    return f"SELECT * REPLACE (open_at_end(valid_to) AS valid_to) FROM folded.{table}"


def _unreported(run: Description, options: SourceOptions) -> str | None:
    """peer, interval, receptions, subscriptions: true where a report lacks what others have.

    A bridged missing report lacks receptions, and what the report before it lacks. A list that
    lacks arrivals counts as left out.
    Null where all reports have the same fields, and lists are complete.
    """
    fields = {"receptions": "received", "subscriptions": "topics"}
    reported = {what: field for what, field in fields.items() if field not in run.unknown}
    counted = Tally.of(run.totals)
    partly = partly_listed(counted, options.only, run.unknown)
    complete = not partly and not any(counted.lacking(field) for field in reported.values())
    if complete and not (reported and options.gap_tolerance):
        return None
    lacking = [ARRIVALS] if DUPLICATES in run.unknown else [ARRIVALS, REPEATED]
    as_receptions = f"list_contains({lacking}, what)" if partly else "false"
    return f"""
        SELECT
            peer, interval,
            bool_or(what = 'receptions') AS receptions,
            bool_or(what = 'subscriptions') AS subscriptions
        FROM (
            SELECT
                peer, CASE WHEN {as_receptions} THEN 'receptions' ELSE what END AS what,
                unnest(range(valid_from, valid_to))::INTEGER AS interval
            FROM folded.unreported
        )
        WHERE list_contains({[*reported]}, what)
        GROUP BY peer, interval
    """
