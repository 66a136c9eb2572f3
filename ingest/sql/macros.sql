-- What several texts use. `open_end` stands for an end that is open (vizpub.model.clock).

CREATE MACRO open_end() AS 9223372036854775807;

-- A name as a number; null if it is none.
CREATE MACRO number(name) AS
    CASE WHEN NOT contains(name, '_') THEN try_cast(name AS DECIMAL(38, 0)) END;

-- A text as a number; null if it is none, or not finite.
CREATE MACRO finite_number(text) AS
    CASE WHEN regexp_full_match(text, '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?')
        AND isfinite(try_cast(text AS DOUBLE)) THEN try_cast(text AS DOUBLE) END;

-- Periods that end with the last interval become open.
CREATE MACRO open_at_end(valid_to) AS
    CASE WHEN valid_to = getvariable('end') THEN open_end() ELSE valid_to END;

-- Periods (key, valid_from, valid_to) that overlap or touch → maximal, disjoint ones; if the source marks
-- its end, open ones end there.
CREATE MACRO maximal(periods) AS TABLE
SELECT key, valid_from, least(valid_to, getvariable('close_at')) AS valid_to
FROM query_table(periods)
WHERE getvariable('are_maximal')
UNION ALL
SELECT
    key, valid_from,
    -- The greatest end before the next start is the end of this period.
    least(coalesce(lead(reached) OVER in_time, furthest), getvariable('close_at'))
FROM (
    SELECT
        *,
        max(valid_to) OVER (
            PARTITION BY key ORDER BY valid_from, valid_to
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached,
        max(valid_to) OVER (PARTITION BY key) AS furthest
    FROM query_table(periods)
    WHERE NOT getvariable('are_maximal')
)
WHERE reached IS NULL OR valid_from > reached
WINDOW in_time AS (PARTITION BY key ORDER BY valid_from);
