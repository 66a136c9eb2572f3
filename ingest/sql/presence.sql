-- The presence of peers, joined to earlier periods that go on.
--
-- whole: observed/presence, before/presence, peers
-- makes: presence
WITH periods AS (
    SELECT {'peer': p.peer} AS key, valid_from, valid_to
    FROM observed.presence o JOIN peers p ON p.name = o.peer
    WHERE valid_to >= getvariable('unsettled')
    UNION ALL
    SELECT {'peer': peer}, valid_from, least(valid_to, getvariable('end_before')) FROM before.presence
)
SELECT key.peer, valid_from, valid_to FROM maximal('periods')
