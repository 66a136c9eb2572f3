-- What a later report of a peer goes on from, as a record of the contract: its lists as last reported in this stay,
-- and its counters as last reported, if they are totals.
--
-- whole: reports, stays, counters, kinds
-- makes: records
WITH last_stays AS (
    SELECT peer, max(stay) AS stay, max(row) AS last_row FROM stays GROUP BY peer
),
latest AS (
    SELECT
        peer, max(interval) AS interval, bool_or(has_left) FILTER (row = last_row) AS has_left,
        max(row) FILTER (has_neighbors) AS neighbors_at,
        max(row) FILTER (has_topics) AS topics_at,
        max(row) FILTER (has_roles) AS roles_at
    FROM stays
    JOIN last_stays USING (peer, stay)
    GROUP BY peer
),
lists AS (
    SELECT row, neighbors, topics, roles
    FROM reports
    WHERE row IN (SELECT unnest([neighbors_at, topics_at, roles_at]) FROM latest)
),
counted AS (
    SELECT peer, arg_max(COLUMNS(* EXCLUDE (row, peer, interval, is_new)), row)
    FROM counters
    WHERE getvariable('totals')
    GROUP BY peer
),
counted_kinds AS (
    SELECT
        peer,
        list({
            'kind': kind, 'topic': topic,
            'messages_sent': messages_sent, 'messages_received': messages_received, 'messages_dropped': messages_dropped,
            'ids_sent': ids_sent, 'ids_received': ids_received, 'ids_dropped': ids_dropped,
            'bytes_sent': bytes_sent, 'bytes_received': bytes_received, 'bytes_dropped': bytes_dropped
        } ORDER BY kind, topic NULLS FIRST) AS control_kinds
    FROM (
        SELECT peer, kind, topic, arg_max(COLUMNS('^(messages|ids|bytes)_'), row)
        FROM kinds
        WHERE getvariable('totals')
        GROUP BY peer, kind, topic
    )
    GROUP BY peer
)
SELECT
    l.peer, l.interval,
    encode(to_json({
        'format': 'vizpub.report/1',
        'peer': l.peer,
        'interval': l.interval,
        'neighbors': n.neighbors,
        'topics': t.topics,
        'roles': o.roles,
        'control': {
            'sent': {'messages': control_messages_sent, 'bytes': control_bytes_sent},
            'received': {'messages': control_messages_received, 'bytes': control_bytes_received}
        },
        'control_kinds': k.control_kinds,
        'publication': {
            'sent': {'messages': publication_messages_sent, 'bytes': publication_bytes_sent},
            'received': {'messages': publication_messages_received, 'bytes': publication_bytes_received}
        },
        'duplicates': c.duplicates,
        'rpcs_sent': c.rpcs_sent,
        'rpcs_received': c.rpcs_received,
        'left': has_left
    })) AS record
FROM latest l
LEFT JOIN counted c USING (peer)
LEFT JOIN counted_kinds k USING (peer)
LEFT JOIN lists n ON n.row = neighbors_at
LEFT JOIN lists t ON t.row = topics_at
LEFT JOIN lists o ON o.row = roles_at
