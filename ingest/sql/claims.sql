-- What is said of messages: by each who reports a publication, and by all arrivals together.
--
-- whole: observed/publications, observed/receptions, observed/rejections, staged/messages
-- makes: staged/claims
WITH heard AS (
    SELECT message, topic, publisher, interval, tick FROM observed.receptions
    UNION ALL
    SELECT message, topic, NULL, interval, tick FROM observed.rejections
), claims AS (
    SELECT message, true AS is_report, topic, publisher, interval, tick, time_us, bytes
    FROM observed.publications
    WHERE interval >= getvariable('boundary')
    UNION ALL
    SELECT message, false, max(topic), max(publisher), min(interval), min(tick), NULL, NULL
    FROM heard
    WHERE interval >= getvariable('boundary')
    GROUP BY message
)
SELECT m.message, c.* EXCLUDE (message)
FROM claims c JOIN staged.messages m ON m.name = c.message
