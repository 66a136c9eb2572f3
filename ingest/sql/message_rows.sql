-- The rows of vizpub.analytics.messages.message_fold, by message: what concerns all messages comes first.
--
-- by message: publications, staged/arrivals, rejections
-- whole: subscriptions, staged/unreported
-- makes: message_rows
WITH several AS (
    SELECT 0 AS kind, peer, topic AS other, valid_from AS tick, valid_to AS time FROM subscriptions
    UNION ALL BY NAME
    SELECT 1 AS kind, peer, interval FROM staged.unreported WHERE receptions
    UNION ALL BY NAME
    SELECT
        2 AS kind, message, publisher AS peer, topic AS other, interval, tick, time_us AS time,
        publication_known AS told
    FROM publications
    UNION ALL BY NAME
    SELECT
        3 AS kind, message, peer, previous_hop AS other, interval, tick, time_us AS time, arrival,
        first AS told, hop, subscribed, after_idontwant, before_idontwant, by_iwant
    FROM staged.arrivals
    UNION ALL BY NAME
    SELECT 4 AS kind, message FROM rejections
)
SELECT
    message::BIGINT AS message, kind::TINYINT AS kind, peer::INTEGER AS peer, other::INTEGER AS other,
    interval::INTEGER AS interval, tick::BIGINT AS tick, time::BIGINT AS time,
    arrival::BIGINT AS arrival, told::BOOLEAN AS told, hop::INTEGER AS hop,
    subscribed::BOOLEAN AS subscribed,
    after_idontwant::BOOLEAN AS after_idontwant,
    before_idontwant::BOOLEAN AS before_idontwant, by_iwant::BOOLEAN AS by_iwant
FROM several
ORDER BY message NULLS FIRST
