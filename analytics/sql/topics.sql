-- The metrics of topics that have subscribers at an interval's end, or events in it.
--
-- Sums of arrivals are null where a reporter's are unknown: they may have been of any topic. In a
-- sample of messages and topics, counts of messages are unknown, and a topic without a row may have any.
--
-- by interval: structure, hits, receptions, unreported
-- by message: publications
-- makes: metrics/topics
WITH graph AS (
    SELECT
        interval, topic, subscribers,
        CASE WHEN known('links')
            THEN COLUMNS(* EXCLUDE (interval, topic, subscribers)) END AS '\0'
    FROM (SELECT unnest(topics, max_depth := 2) FROM structure WHERE known('subscriptions'))
), of_topics AS (
    FROM hits WHERE NOT _over_topics
), arrivals AS (
    SELECT
        receptions.interval, topic,
        count(*) FILTER (NOT first) AS _repeated,
        count(*) FILTER (NOT subscribed) AS _relayed,
        count(*) FILTER (subscribed IS NULL) AS _unclear
    FROM receptions JOIN publications USING (message)
    GROUP BY receptions.interval, topic
), partly AS (
    SELECT DISTINCT interval, true AS _partly_listed FROM unreported WHERE receptions
), seen AS (
    SELECT *, known('receptions') AND known('duplicates') AND NOT known('sample')
        AND _partly_listed IS NULL AS _all_listed,
        CASE WHEN NOT known('sample') THEN 0 END AS _none
    FROM graph
    FULL JOIN of_topics USING (interval, topic)
    FULL JOIN arrivals USING (interval, topic)
    LEFT JOIN partly USING (interval)
    WHERE topic IS NOT NULL
)
SELECT
    * REPLACE (
        CASE WHEN known('presence') AND known('subscriptions')
            THEN coalesce(subscribers, _none) END AS subscribers,
        CASE WHEN known('presence') AND known('subscriptions') AND known('links')
            THEN coalesce(topic_links, _none) END AS topic_links,
        CASE WHEN known('presence') AND known('subscriptions') AND known('links')
            THEN coalesce(components, _none) END AS components,
        CASE WHEN known('publications') AND NOT known('sample') THEN coalesce(publications, 0) END
            AS publications,
        CASE WHEN known('rejections') THEN rejected_publications END AS rejected_publications
    ),
    CASE WHEN _all_listed THEN coalesce(_repeated, 0) END AS duplicates,
    CASE WHEN _all_listed AND coalesce(_unclear, 0) = 0
        THEN coalesce(_relayed, CASE WHEN known('subscriptions') THEN 0 END) END AS relay_receptions
FROM seen
