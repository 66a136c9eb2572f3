-- The hit ratios, hops and duplicates of messages by their interval of publication, in each topic and
-- over all topics.
--
-- Ratios leave out messages that a peer refused; where refusals are unknown, none is known to be.
-- For a whole run, `not_refused` in questions/snapshots.py is the same rule. The mean is summed in
-- ascending order, so that it does not depend on the order of the rows; hops are summed as the whole
-- numbers that they are. The measures of a whole run in questions/sums/totals.py are the same, but
-- for the share of relays: there it is that of the messages of which it is known.
--
-- by message: publications, metrics/messages
-- makes: hits
WITH published AS (
    SELECT interval, topic, coalesce(rejections, 0) = 0 AS counted, eligible, delivered,
        delivered_in_interval, metrics.messages.hit_ratio AS share, hops_mean AS hop, hops_known,
        hops_max, duplicates, receptions, relay_receptions
    FROM publications JOIN metrics.messages USING (message)
    WHERE interval BETWEEN getvariable('first') AND getvariable('last')
)
SELECT
    interval, topic, grouping(topic) = 1 AS _over_topics,
    count(*) AS publications,
    nullif(sum(eligible) FILTER (counted), 0) AS _counted_eligible,
    sum(delivered) FILTER (counted) / _counted_eligible AS hit_ratio,
    sum(share ORDER BY share) FILTER (counted) / count(share) FILTER (counted) AS hit_ratio_mean,
    count(*) FILTER (NOT counted) AS rejected_publications,
    sum(round(hop * hops_known)::BIGINT) / nullif(sum(hops_known), 0) AS hops_mean,
    max(hops_max) AS hops_max,
    sum(duplicates) FILTER (counted AND delivered IS NOT NULL)
        / nullif(sum(delivered) FILTER (counted AND duplicates IS NOT NULL), 0)
        AS duplicates_per_delivery,
    CASE WHEN count(relay_receptions) = count(*)
        THEN sum(relay_receptions) / nullif(sum(receptions), 0) END AS relay_share,
    sum(delivered_in_interval) FILTER (counted) / _counted_eligible AS hit_ratio_in_interval
FROM published
GROUP BY GROUPING SETS ((interval, topic), (interval))
