-- The metrics of peers that are present at an interval's end, or have events in it.
--
-- What only the peer can report is null where it does not, and 0 where it reports none. Its own count
-- of duplicates goes before ours. Of a sample of messages and topics, counts over them are unknown.
--
-- by interval: structure, traffic, receptions, unreported
-- whole: peers
-- makes: metrics/peers
WITH arrivals AS (
    SELECT interval, peer, count(*) AS _arrivals, count(*) FILTER (NOT first) AS _repeated
    FROM receptions GROUP BY interval, peer
), graph AS (
    SELECT
        interval, peer, subscriptions, true AS present,
        CASE WHEN known('links')
            THEN COLUMNS(* EXCLUDE (interval, peer, subscriptions, topics, overlay)) END AS '\0'
    FROM structure
), silent AS (
    SELECT interval, peer, subscriptions AS _no_subscriptions, receptions AS _no_receptions
    FROM unreported
), seen AS (
    SELECT
        *,
        is_reporter AND known('subscriptions') AND NOT known('sample') AND _no_subscriptions IS NOT TRUE
            AS _tells_subscriptions,
        is_reporter AND known('receptions') AND NOT known('sample') AND _no_receptions IS NOT TRUE
            AS _tells_receptions,
        CASE WHEN _tells_receptions THEN coalesce(_arrivals, 0) END AS _received
    FROM traffic
    FULL JOIN arrivals USING (interval, peer)
    FULL JOIN graph USING (interval, peer)
    JOIN peers USING (peer)
    LEFT JOIN silent USING (interval, peer)
)
SELECT
    * EXCLUDE (present, subscriptions, duplicates),
    CASE WHEN known('presence') THEN present IS NOT NULL END AS present,
    CASE WHEN _tells_subscriptions THEN coalesce(subscriptions, 0) END AS subscriptions,
    -- Where only first arrivals are listed, duplicates are counted at most.
    CASE WHEN known('duplicates') THEN _received
        ELSE try_cast(_received::HUGEINT + duplicates AS BIGINT) END AS receptions,
    CASE WHEN known('duplicates') AND _tells_receptions
        THEN coalesce(duplicates, _repeated, 0) ELSE duplicates END AS duplicates
FROM seen
