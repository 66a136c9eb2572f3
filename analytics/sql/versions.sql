-- Periods of presence, links and subscriptions, as the intervals [start, stop) in which they are sampled.
--
-- Those that touch the intervals of the task, or the one before them, which own metrics see. A period
-- holds in an interval if its last tick is in [valid_from, valid_to).
--
-- whole: presence, links, subscriptions
-- makes: versions
WITH periods AS (
    SELECT 0 AS kind, peer AS a, peer AS b, valid_from, valid_to FROM presence
    UNION ALL BY NAME
    SELECT 1 AS kind, src AS a, dst AS b, layer, topic, valid_from, valid_to FROM links
    WHERE getvariable('layers') IS NULL OR list_contains(getvariable('layers'), layer)
    UNION ALL BY NAME
    SELECT 2 AS kind, peer AS a, topic AS b, valid_from, valid_to FROM subscriptions
), sampled AS (
    SELECT
        *,
        greatest(valid_from // getvariable('ticks'), getvariable('first') - 1)::INTEGER AS start,
        least(valid_to // getvariable('ticks'), getvariable('last') + 1)::INTEGER AS stop
    FROM periods
)
SELECT kind, a, b, layer, topic, start, stop FROM sampled WHERE start < stop
