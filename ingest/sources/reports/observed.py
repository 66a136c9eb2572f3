"""Folded tables of reports → observed tables."""

from __future__ import annotations

from dataclasses import replace

from vizpub.ingest.sources.base import ObservedTables, RunDescription, SourceOptions
from vizpub.ingest.sources.folded import NAMES_OF_REPORTERS, NO_REJECTIONS
from vizpub.ingest.sources.reports.facts import COUNTED, ReportTally, count_partly_listed
from vizpub.model.run import DUPLICATES

ARRIVALS, REPEATED = "arrivals", "repeated arrivals"
"""Kinds of events that are counted, but that a list may lack (measured.sql)."""


def observe_reports(run: RunDescription, options: SourceOptions) -> ObservedTables:
    """Return the observed tables of reports; see Reports.observe."""
    unknown = set(run.unknown)
    arrivals = {"sent", "received"} - unknown
    observed = ObservedTables(
        peers="SELECT name FROM whole.peers",
        presence=_periods_text("presence"),
        links=None if "neighbors" in unknown else _periods_text("links"),
        subscriptions=None if "topics" in unknown else _periods_text("subscriptions"),
        roles=None if "roles" in unknown else _periods_text("roles"),
        traffic="FROM folded.traffic" if COUNTED.keys() - unknown else None,
        gauges="FROM folded.gauges" if ReportTally.of(run.totals).gauges else None,
        publications="FROM folded.publications" if arrivals else None,
        receptions="FROM folded.receptions" if "received" in arrivals else None,
        rejections=NO_REJECTIONS if arrivals else None,
        unreported=_unreported_text(run, options),
    )
    if options.reporters_only and observed.links:
        to_reporters = " WHERE dst IN (SELECT name FROM whole.peers)"
        names = NAMES_OF_REPORTERS.format(reporter="name")
        return replace(observed, links=observed.links + to_reporters, names=names)
    return observed


def _periods_text(table: str) -> str:
    return f"SELECT * REPLACE (open_at_end(valid_to) AS valid_to) FROM folded.{table}"


def _unreported_text(run: RunDescription, options: SourceOptions) -> str | None:
    """Return the SQL text of unreported: true for the fields that a report lacks and others have.

    A bridged missing report lacks receptions, and what the report before it lacks. A list that
    lacks arrivals counts as left out.
    Return null if all reports have the same fields, and lists are complete.
    """
    fields = {"receptions": "received", "subscriptions": "topics"}
    reported = {column: field for column, field in fields.items() if field not in run.unknown}
    counted = ReportTally.of(run.totals)
    partly = count_partly_listed(counted, options.only, run.unknown)
    complete = not partly and not any(counted.count_without(field) for field in reported.values())
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
