-- What counters that are totals grew by in an interval.
--
-- whole: counters
-- makes: counted
SELECT
    row, peer, interval, is_new,
    COLUMNS(* EXCLUDE (row, peer, interval, is_new)) - before(
        last_value(COLUMNS(* EXCLUDE (row, peer, interval, is_new)) IGNORE NULLS) OVER earlier,
        COLUMNS(* EXCLUDE (row, peer, interval, is_new))
    )
FROM counters
WINDOW earlier AS (PARTITION BY peer ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
