-- What counters that are totals grew by in an interval. One that dropped was restarted.
--
-- whole: counters
-- makes: counted
SELECT
    row, peer, interval, is_new,
    COLUMNS(* EXCLUDE (row, peer, interval, is_new)) - CASE
        WHEN last_value(COLUMNS(* EXCLUDE (row, peer, interval, is_new)) IGNORE NULLS) OVER earlier
            <= COLUMNS(* EXCLUDE (row, peer, interval, is_new))
        THEN last_value(COLUMNS(* EXCLUDE (row, peer, interval, is_new)) IGNORE NULLS) OVER earlier
        ELSE 0
    END
FROM counters
WINDOW earlier AS (PARTITION BY peer ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
