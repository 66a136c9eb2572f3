-- Control messages by kind, of the interval alone.
--
-- whole: kinds
-- makes: control
SELECT
    peer, interval, kind, topic,
    COLUMNS('^(messages|ids|bytes)_') - CASE
        WHEN getvariable('totals')
        THEN before(last_value(COLUMNS('^(messages|ids|bytes)_') IGNORE NULLS) OVER earlier, COLUMNS('^(messages|ids|bytes)_'))
        ELSE 0
    END
FROM kinds
WINDOW earlier AS (PARTITION BY peer, kind, topic ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
QUALIFY is_new
