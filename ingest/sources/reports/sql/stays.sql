-- How a report goes on from the one before of its peer.
--
--   due            the interval after the one before; 0 = it is the first
--   bridges        the peer had not left, and so few reports are missing that it stayed
--   joined         it stayed, and does not leave: lists that are not reported hold
--   stay           the row with which the stay began
--   knows_topics   the peer has reported topics in this stay; knew_topics: up to the report before
--
-- whole: reports
-- makes: stays
WITH scalars AS (
    SELECT
        row, peer, interval, is_new, coalesce("left", false) AS has_left, received IS NULL AS lacks_receptions,
        neighbors IS NOT NULL AND NOT has_left AS has_neighbors,
        topics IS NOT NULL AND NOT has_left AS has_topics,
        roles IS NOT NULL AND NOT has_left AS has_roles
    FROM reports
),
after AS (
    SELECT
        *, coalesce(lag(interval) OVER of_peer, -1) + 1 AS due,
        NOT lag(has_left, 1, true) OVER of_peer AND interval - due <= getvariable('gap_tolerance') AS bridges,
        bridges AND NOT has_left AS joined
    FROM scalars
    WINDOW of_peer AS (PARTITION BY peer ORDER BY row)
),
numbered AS (
    -- The first report of a peer begins a stay.
    SELECT *, max(CASE WHEN NOT joined THEN row END) OVER (ORDER BY row) AS stay FROM after
),
knowing AS (
    SELECT *, bool_or(has_topics) OVER (PARTITION BY stay ORDER BY row) AS knows_topics FROM numbered
)
SELECT *, lag(knows_topics, 1, false) OVER (PARTITION BY peer ORDER BY row) AS knew_topics FROM knowing ORDER BY row
