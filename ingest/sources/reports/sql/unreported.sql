-- Periods in which a peer does not report what others do: its `receptions` or `subscriptions`; or lists fewer
-- `arrivals` than it counts, or fewer `repeated arrivals` alone. A missing report that is bridged lacks all.
--
-- whole: stays, measured
-- makes: unreported
WITH lacks AS (
    SELECT peer, 'receptions' AS what, due AS first, interval AS after FROM stays WHERE bridges AND interval > due
    UNION ALL
    SELECT peer, 'subscriptions', due, interval FROM stays WHERE bridges AND interval > due AND NOT knew_topics
    UNION ALL
    SELECT peer, 'receptions', interval, interval + 1 FROM stays WHERE is_new AND lacks_receptions
    UNION ALL
    SELECT peer, 'subscriptions', interval, interval + 1 FROM stays WHERE is_new AND NOT knows_topics AND NOT has_left
    UNION ALL
    SELECT peer, unlisted, interval, interval + 1 FROM measured WHERE unlisted IS NOT NULL
)
SELECT peer, what, min(first) AS valid_from, max(after) AS valid_to
FROM (
    SELECT *, sum(begins::INTEGER) OVER (PARTITION BY peer, what ORDER BY first) AS period
    FROM (
        SELECT *, first IS DISTINCT FROM lag(after) OVER (PARTITION BY peer, what ORDER BY first) AS begins
        FROM lacks
    )
)
GROUP BY peer, what, period
