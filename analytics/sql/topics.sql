-- The metrics of topics that have subscribers at an interval's end, or events in it.
--
-- by interval: structure, hits, receptions
-- by message: publications
-- makes: metrics/topics
WITH graph AS (
    SELECT
        interval, topic, subscribers,
        CASE WHEN known('links')
            THEN COLUMNS(* EXCLUDE (interval, topic, subscribers)) END AS '\0'
    FROM (SELECT unnest(topics, max_depth := 2) FROM structure WHERE known('subscriptions'))
), of_topics AS (
    FROM hits WHERE NOT over_topics
), arrivals AS (
    SELECT
        receptions.interval, topic,
        count(*) FILTER (NOT first) AS repeated,
        count(*) FILTER (NOT subscribed) AS relayed,
        count(*) FILTER (subscribed IS NULL) AS unclear
    FROM receptions JOIN publications USING (message)
    GROUP BY receptions.interval, topic
), seen AS (
    FROM graph
    FULL JOIN of_topics USING (interval, topic)
    FULL JOIN arrivals USING (interval, topic)
    WHERE topic IS NOT NULL
)
SELECT
    * REPLACE (
        CASE WHEN known('presence') AND known('subscriptions')
            THEN coalesce(subscribers, 0) END AS subscribers,
        CASE WHEN known('presence') AND known('subscriptions') AND known('links')
            THEN coalesce(topic_links, 0) END AS topic_links,
        CASE WHEN known('presence') AND known('subscriptions') AND known('links')
            THEN coalesce(components, 0) END AS components,
        CASE WHEN known('publications') THEN coalesce(publications, 0) END AS publications
    ),
    CASE WHEN known('receptions') AND known('duplicates') THEN coalesce(repeated, 0) END AS duplicates,
    CASE WHEN known('receptions') AND known('duplicates') AND coalesce(unclear, 0) = 0
        THEN coalesce(relayed, CASE WHEN known('subscriptions') THEN 0 END) END AS relay_receptions
FROM seen
