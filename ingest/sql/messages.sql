-- Messages with their indices, by time of publication.
--
-- Messages that the run has already keep their indices; only those from the boundary on are needed.
--
-- whole: observed/names, before/publications
-- makes: staged/messages
WITH fresh AS (
    SELECT name, min(tick) AS tick
    FROM observed.names
    WHERE kind = 'message' AND known("table") AND name NOT IN (SELECT name FROM before.publications)
    GROUP BY name
)
SELECT message, name FROM before.publications
UNION ALL
SELECT getvariable('messages_before') + row_number() OVER (ORDER BY tick, name) - 1, name FROM fresh
