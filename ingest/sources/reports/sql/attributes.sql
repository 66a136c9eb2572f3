-- Attributes of peers, where a report first has a value, or another one than before.
--
-- whole: reports
-- makes: attributes
WITH entries AS (
    SELECT row, peer, interval, unnest(attributes, max_depth := 2) FROM reports WHERE is_new
)
SELECT peer, key, max(value) AS value, interval AS valid_from
FROM entries
GROUP BY row, peer, interval, key
QUALIFY max(value) IS DISTINCT FROM lag(max(value)) OVER (PARTITION BY peer, key ORDER BY row)
