-- Reports as columns, in order: of a peer, by time. State lists stay JSON: as peers repeat them, each is decoded once.
--
-- whole: rows
-- makes: reports
SELECT
    row, peer, interval, is_new,
    unnest(json_transform(record, '{
        "left": "BOOLEAN",
        "neighbors": "JSON",
        "topics": "JSON",
        "roles": "JSON",
        "attributes": [{"key": "VARCHAR", "value": "VARCHAR"}],
        "control": {
            "sent": {"messages": "BIGINT", "bytes": "BIGINT"},
            "received": {"messages": "BIGINT", "bytes": "BIGINT"}
        },
        "control_kinds": [{
            "kind": "VARCHAR", "topic": "VARCHAR",
            "messages_sent": "BIGINT", "messages_received": "BIGINT", "messages_dropped": "BIGINT",
            "ids_sent": "BIGINT", "ids_received": "BIGINT", "ids_dropped": "BIGINT",
            "bytes_sent": "BIGINT", "bytes_received": "BIGINT", "bytes_dropped": "BIGINT"
        }],
        "publication": {
            "sent": {"messages": "BIGINT", "bytes": "BIGINT"},
            "received": {"messages": "BIGINT", "bytes": "BIGINT"}
        },
        "duplicates": "BIGINT",
        "rpcs_sent": "BIGINT",
        "rpcs_received": "BIGINT",
        "gauges": "MAP(VARCHAR, DOUBLE)",
        "sent": [{
            "message": "VARCHAR", "topic": "VARCHAR", "publisher": "VARCHAR", "to": ["VARCHAR"],
            "hops": "INTEGER", "time_us": "BIGINT", "bytes": "BIGINT"
        }],
        "received": [{
            "message": "VARCHAR", "topic": "VARCHAR", "publisher": "VARCHAR", "from": "VARCHAR",
            "hops": "INTEGER", "time_us": "BIGINT", "bytes": "BIGINT", "subscribed": "BOOLEAN"
        }]
    }'))
FROM rows
