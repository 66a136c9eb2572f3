-- Roles of peers, joined to earlier periods that go on, while the peer is present.
--
-- whole: observed/roles, before/roles, mine, peers, topics, stays
-- makes: roles
WITH periods AS (
    SELECT {'peer': p.peer, 'role': o.role, 'topic': t.topic} AS key, valid_from, valid_to
    FROM observed.roles o
    JOIN peers p ON p.name = o.peer
    LEFT JOIN topics t ON t.name = o.topic
    WHERE valid_to >= getvariable('unsettled')
    UNION ALL
    SELECT {'peer': peer, 'role': role, 'topic': topic}, valid_from, least(valid_to, getvariable('end_before'))
    FROM before.roles
    WHERE peer IN (FROM mine)
)
SELECT
    key.peer, key.role, key.topic,
    greatest(m.valid_from, s.valid_from) AS valid_from, least(m.valid_to, s.valid_to) AS valid_to
FROM maximal('periods') m
JOIN stays s ON s.peer = key.peer AND s.valid_from < m.valid_to AND m.valid_from < s.valid_to
