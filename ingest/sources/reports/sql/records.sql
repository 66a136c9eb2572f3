-- What a later report of a peer goes on from, as a record of the contract: its lists as last reported in this stay,
-- and its counters as last reported, if they are totals.
--
-- whole: reports, stays, counters
-- makes: records
WITH latest AS (
    SELECT
        peer, max(interval) AS interval, any_value(has_left) FILTER (row = last_row) AS has_left,
        max(row) FILTER (has_neighbors) AS neighbors_at,
        max(row) FILTER (has_topics) AS topics_at,
        max(row) FILTER (has_roles) AS roles_at
    FROM (SELECT *, max(row) OVER of_peer AS last_row, max(stay) OVER of_peer AS last_stay FROM stays
        WINDOW of_peer AS (PARTITION BY peer))
    WHERE stay = last_stay
    GROUP BY peer
),
counted AS (
    SELECT peer, arg_max(COLUMNS(* EXCLUDE (row, peer, interval, is_new)), row) FILTER (getvariable('totals'))
    FROM counters
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
JOIN counted c USING (peer)
LEFT JOIN reports n ON n.row = neighbors_at
LEFT JOIN reports t ON t.row = topics_at
LEFT JOIN reports o ON o.row = roles_at
