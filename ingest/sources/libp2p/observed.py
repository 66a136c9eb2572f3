"""Folded tables of a trace → observed tables."""

from __future__ import annotations

from vizpub.analytics.steps import Step
from vizpub.ingest.sources.base import ObservedTables, RunDescription, SourceOptions
from vizpub.ingest.sources.folded import NAMES_OF_REPORTERS
from vizpub.ingest.sources.libp2p.facts import TraceTally
from vizpub.ingest.sources.libp2p.fold import COUNTED
from vizpub.ingest.sources.libp2p.presence import find_stays
from vizpub.model.clock import Clock

_STAYS = Step(
    "stays",
    "",
    "observed/stays",
    whole=("whole/peers",),
    function=lambda peers, _: find_stays(peers),
)
_NAMED = """
    UNION ALL
    -- A peer that does not report is present while a present reporter holds a stream to it.
    SELECT n.peer, greatest(n.valid_from, s.valid_from), least(n.valid_to, s.valid_to)
    FROM folded.named n
    JOIN observed.stays s
        ON s.peer = n.src AND s.valid_from < n.valid_to AND n.valid_from < s.valid_to
    WHERE n.peer NOT IN (SELECT peer FROM observed.stays)
"""


def observe_trace(run: RunDescription, options: SourceOptions) -> ObservedTables:
    """Return the observed tables of a trace; see Libp2p.observe."""
    links, names = "FROM folded.links", "FROM folded.names"
    presence = "SELECT peer, valid_from, valid_to FROM observed.stays"
    if options.reporters_only:
        links += " WHERE dst IN (SELECT peer FROM whole.peers)"
        names = NAMES_OF_REPORTERS.format(reporter="peer")
    elif TraceTally.of(run.totals).named:
        presence += _NAMED
    return ObservedTables(
        peers="SELECT peer AS name FROM whole.peers",
        names=names,
        presence=presence,
        links=links,
        subscriptions="FROM folded.subscriptions",
        traffic=_traffic_text(run.clock),
        publications="FROM folded.publications",
        receptions="FROM folded.receptions",
        rejections="FROM folded.rejections",
        functions=(_STAYS,),
    )


def _traffic_text(clock: Clock) -> str:
    """Return the SQL text of traffic: by peer and interval, RPCs and the entries and messages in
    them.

    A trace is complete, so a present peer without events has no traffic: 0. `dropped`
    counts DROP_RPC events, which are not sent. Bytes are in no trace: unknown.
    """
    length = clock.ticks_per_interval
    nothing = ", ".join(f"0 AS {name}" for name in COUNTED)
    return f"""
        SELECT peer, unnest(range(valid_from, valid_to))::INTEGER AS interval, {", ".join(COUNTED)}
        FROM (
            FROM folded.traffic
            UNION ALL BY NAME
            SELECT
                peer, last // {length} + 1 AS valid_from,
                least((valid_to - 1) // {length}, {clock.last}) + 1 AS valid_to,
                {nothing}
            FROM observed.stays
            WHERE peer IN (SELECT peer FROM folded.peers)
        )
    """
