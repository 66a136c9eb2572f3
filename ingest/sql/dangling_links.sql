-- What was clipped off links: the parts in which an end was not present.
--
-- whole: joined_links, links, stays
-- makes: dangling_links
WITH kept AS (
    SELECT {'src': src, 'dst': dst, 'layer': layer, 'topic': topic} AS key, valid_from, valid_to
    FROM links
), torn AS (
    FROM joined_links l
    ANTI JOIN stays s ON s.peer = key.src AND s.valid_from <= l.valid_from AND l.valid_to <= s.valid_to
    UNION
    FROM joined_links l
    ANTI JOIN stays d ON d.peer = key.dst AND d.valid_from <= l.valid_from AND l.valid_to <= d.valid_to
), pieces AS (
    SELECT *, true AS is_whole FROM torn
    UNION ALL
    SELECT k.*, false
    FROM kept k
    JOIN torn t
        ON t.key IS NOT DISTINCT FROM k.key
        AND t.valid_from <= k.valid_from AND k.valid_to <= t.valid_to
), gaps AS (
    -- From the beginning of a whole period, and from the end of each piece of it, to what comes next.
    SELECT
        key,
        CASE WHEN is_whole THEN valid_from ELSE valid_to END AS valid_from,
        least(
            last_value(CASE WHEN is_whole THEN valid_to END IGNORE NULLS) OVER in_time,
            lead(valid_from) OVER in_time
        ) AS valid_to
    FROM pieces
    WINDOW in_time AS (PARTITION BY key ORDER BY valid_from, is_whole DESC)
)
SELECT key.src, key.dst, key.layer, key.topic, valid_from, valid_to
FROM gaps
WHERE valid_from < valid_to
