-- The metrics of the overlay: a row for every interval.
--
-- Means are over the peers present at the interval's end, where presence is known. Sums are over all
-- peers, and null beyond 64 bits. Sums of arrivals are null where a reporter's are unknown.
--
-- by interval: structure, hits, metrics/peers, unreported
-- whole: dangling_links
-- makes: metrics/overlay
WITH intervals AS (
    SELECT unnest(range(getvariable('first'), getvariable('last') + 1))::INTEGER AS interval
), traffic AS (
    SELECT
        interval,
        avg(control_messages_sent) FILTER (_here) AS control_messages_sent_mean,
        avg(control_messages_received) FILTER (_here) AS control_messages_received_mean,
        -- Sums of whole numbers are exact in any order; sums of kilobytes would not be.
        avg(control_bytes_sent) FILTER (_here) / 1000 AS control_kilobytes_sent_mean,
        avg(control_bytes_received) FILTER (_here) / 1000 AS control_kilobytes_received_mean,
        CASE WHEN count(present) > 0 THEN count(*) FILTER (present AND _unreported) END
            AS unknown_reports,
        try_cast(sum(receptions) AS BIGINT) AS receptions, count(receptions) AS _with_receptions,
        try_cast(sum(duplicates) AS BIGINT) AS duplicates, count(duplicates) AS _with_duplicates,
        count(*) FILTER (_open AND receptions IS NULL) AS _open_receptions,
        count(*) FILTER (_open AND duplicates IS NULL) AS _open_duplicates
    FROM (
        SELECT
            *,
            coalesce(present, true) AS _here,
            coalesce(
                control_messages_sent, control_messages_received,
                control_bytes_sent, control_bytes_received,
                publication_messages_sent, publication_messages_received,
                publication_bytes_sent, publication_bytes_received
            ) IS NULL AS _unreported
        FROM metrics.peers
        LEFT JOIN (SELECT interval, peer, receptions AS _open FROM unreported) USING (interval, peer)
    )
    GROUP BY interval
), graph AS (
    SELECT
        interval, network_size,
        CASE WHEN known('links') THEN COLUMNS(* EXCLUDE (interval, network_size)) END AS '\0'
    FROM (SELECT unnest(overlay, max_depth := 2) FROM structure)
), dangling AS (
    SELECT interval, count(*) AS dangling_links
    FROM (
        SELECT DISTINCT src, dst, unnest(range(
            greatest(valid_from // getvariable('ticks'), getvariable('first')),
            least(valid_to // getvariable('ticks'), getvariable('last') + 1)
        ))::INTEGER AS interval
        FROM dangling_links
        WHERE getvariable('layers') IS NULL OR list_contains(getvariable('layers'), layer)
    )
    GROUP BY interval
), of_interval AS (
    FROM hits WHERE _over_topics
), seen AS (
    FROM intervals
    LEFT JOIN traffic USING (interval)
    LEFT JOIN graph USING (interval)
    LEFT JOIN dangling USING (interval)
    LEFT JOIN (SELECT * EXCLUDE (topic, _over_topics) FROM of_interval) USING (interval)
)
SELECT
    * REPLACE (
        CASE WHEN known('presence') THEN coalesce(network_size, 0) END AS network_size,
        CASE WHEN known('presence') THEN coalesce(unknown_reports, 0) ELSE unknown_reports END
            AS unknown_reports,
        CASE WHEN known('presence') AND known('links') THEN coalesce(links, 0) END AS links,
        CASE WHEN known('presence') AND known('links') THEN coalesce(weak_components, 0) END
            AS weak_components,
        CASE WHEN known('presence') AND known('links') THEN coalesce(strong_components, 0) END
            AS strong_components,
        CASE WHEN known('dangling_links') THEN coalesce(dangling_links, 0) END AS dangling_links,
        CASE WHEN known('publications') AND NOT known('sample') THEN coalesce(publications, 0) END
            AS publications,
        CASE WHEN known('publications') AND known('rejections')
            THEN coalesce(rejected_publications, 0) END AS rejected_publications,
        -- Beyond 64 bits, and where no peer knows it although receptions are known, they differ.
        CASE WHEN _open_receptions > 0 THEN NULL WHEN _with_receptions > 0 THEN receptions
            WHEN known('receptions') AND NOT known('sample') THEN 0 END
            AS receptions,
        CASE WHEN _open_duplicates > 0 THEN NULL WHEN _with_duplicates > 0 THEN duplicates
            WHEN known('receptions') AND NOT known('sample') THEN 0 END
            AS duplicates
    )
FROM seen
