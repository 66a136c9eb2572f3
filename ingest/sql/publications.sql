-- A row per message that was published, received or refused: what its first report says, else its arrivals.
--
-- by message: staged/claims, staged/messages
-- whole: peers, topics
-- makes: publications
WITH reported AS (
    FROM staged.claims
    WHERE is_report
    QUALIFY row_number() OVER (
        PARTITION BY message
        ORDER BY tick, time_us NULLS LAST, publisher NULLS FIRST, topic NULLS FIRST, bytes NULLS LAST
    ) = 1
), heard AS (
    SELECT
        message, max(topic) AS topic, max(publisher) AS publisher,
        min(interval) AS interval, min(tick) AS tick,
        max(bytes) AS bytes
    FROM staged.claims
    WHERE NOT is_report
    GROUP BY message
), said AS (
    SELECT
        message, r.time_us, coalesce(r.bytes, h.bytes) AS bytes, coalesce(r.is_report, false) AS publication_known,
        coalesce(r.topic, h.topic) AS topic,
        coalesce(r.publisher, h.publisher) AS publisher,
        coalesce(r.interval, h.interval) AS interval,
        coalesce(r.tick, h.tick) AS tick
    FROM reported r FULL JOIN heard h USING (message)
)
SELECT s.* EXCLUDE (topic, publisher), m.name, t.topic, p.peer AS publisher
FROM said s
JOIN staged.messages m USING (message)
LEFT JOIN topics t ON t.name = s.topic
LEFT JOIN peers p ON p.name = s.publisher
