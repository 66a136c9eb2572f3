-- Topics with their indices, in the order of peers.
--
-- whole: observed/names, before/topics
-- makes: topics
WITH fresh AS (
    SELECT name, min(coalesce(interval, valid_from // getvariable('ticks'))) AS since
    FROM observed.names
    WHERE kind = 'topic' AND known("table") AND name NOT IN (SELECT name FROM before.topics)
    GROUP BY name
)
SELECT topic, name FROM before.topics
UNION ALL
SELECT
    (SELECT count(*) FROM before.topics)
    + row_number() OVER (ORDER BY since NULLS LAST, number(name) NULLS LAST, name) - 1,
    name
FROM fresh
