-- What is said of messages: by each who reports a publication, by all arrivals together, and of their sizes.
--
-- whole: observed/publications, observed/receptions, observed/rejections, observed/sizes, staged/messages
-- makes: staged/claims
WITH heard AS (
    SELECT message, topic, publisher, interval, tick, NULL AS bytes FROM observed.receptions
    UNION ALL
    SELECT message, topic, NULL, interval, tick, NULL FROM observed.rejections
    UNION ALL
    SELECT message, NULL, NULL, interval, tick, bytes FROM observed.sizes
), claims AS (
    SELECT message, true AS is_report, topic, publisher, interval, tick, time_us, bytes
    FROM observed.publications
    WHERE interval >= getvariable('boundary')
    UNION ALL
    SELECT message, false, max(topic), max(publisher), min(interval), min(tick), NULL, max(bytes)
    FROM heard
    WHERE interval >= getvariable('boundary')
    GROUP BY message
)
SELECT m.message, c.* EXCLUDE (message)
FROM claims c JOIN staged.messages m ON m.name = c.message
