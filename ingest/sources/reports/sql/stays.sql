-- How a report goes on from the one before of its peer.
--
--   due            the interval after the one before; 0 = it is the first
--   bridges        the peer had not left, and so few reports are missing that it stayed
--   joined         it stayed, and does not leave: lists that are not reported hold
--   stay           the row with which the stay began
--   knows_topics   the peer has reported topics in this stay; knew_topics: up to the report before
--
-- Windows without an order take the rows as they are stored, which is in order of `row`, and sort nothing.
--
-- whole: reports
-- makes: stays
WITH scalars AS (
    SELECT
        row, peer, interval, is_new, peer IS DISTINCT FROM lag(peer) OVER () AS is_first,
        coalesce("left", false) AS has_left, received IS NULL AS lacks_receptions,
        neighbors IS NOT NULL AND NOT has_left AS has_neighbors,
        topics IS NOT NULL AND NOT has_left AS has_topics,
        roles IS NOT NULL AND NOT has_left AS has_roles
    FROM reports
),
after AS (
    SELECT
        *, CASE WHEN is_first THEN 0 ELSE lag(interval) OVER () + 1 END AS due,
        NOT is_first AND NOT lag(has_left) OVER () AND interval - due <= getvariable('gap_tolerance') AS bridges,
        bridges AND NOT has_left AS joined
    FROM scalars
),
numbered AS (
    -- The first report of a peer begins a stay.
    SELECT
        *, max(CASE WHEN NOT joined THEN row END) OVER (ROWS UNBOUNDED PRECEDING) AS stay,
        max(CASE WHEN has_topics THEN row END) OVER (ROWS UNBOUNDED PRECEDING) AS topics_at
    FROM after
),
knowing AS (
    SELECT * EXCLUDE topics_at, coalesce(topics_at >= stay, false) AS knows_topics FROM numbered
)
SELECT * EXCLUDE is_first, NOT is_first AND lag(knows_topics) OVER () AS knew_topics FROM knowing ORDER BY row
