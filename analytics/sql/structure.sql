-- The overlay's structure in every interval: as measured now, or from the metrics of settled intervals.
--
-- A row per present peer and interval; the row of an interval's first peer also holds the rows of its
-- topics and of the interval as a whole, as lists of structs.
--
-- by interval: measured, settled_peers, settled_topics, settled_overlay
-- makes: structure
WITH here AS (
    SELECT * EXCLUDE (present) FROM settled_peers WHERE present
), firsts AS (
    SELECT interval, min(peer) AS peer FROM here GROUP BY interval
), of_topics AS (
    SELECT interval, list(settled_topics) AS topics
    FROM settled_topics WHERE subscribers > 0 GROUP BY interval
), of_overlay AS (
    SELECT interval, list(settled_overlay) AS overlay FROM settled_overlay GROUP BY interval
), beside AS (
    SELECT * FROM firsts LEFT JOIN of_topics USING (interval) LEFT JOIN of_overlay USING (interval)
)
SELECT * FROM measured
UNION ALL BY NAME
SELECT * FROM here LEFT JOIN beside USING (interval, peer)
