-- The stays of peers. A report that the peer left shows that it was there before.
--
-- whole: stays
-- makes: presence
SELECT
    peer, interval AS valid_from,
    coalesce(lead(CASE WHEN bridges THEN interval ELSE due END) OVER (PARTITION BY peer ORDER BY row), last + 1) AS valid_to
FROM (SELECT *, max(interval) OVER (PARTITION BY peer) AS last FROM stays)
WHERE NOT joined
QUALIFY NOT has_left
