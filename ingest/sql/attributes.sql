-- Attributes of peers. A value holds until the next one of its key begins, or to the end that it has.
--
-- What a side file says of a peer's key replaces what the source says of it.
--
-- whole: observed/attributes, side/attributes, before/attributes, peers
-- makes: attributes
WITH of_source AS (
    SELECT p.peer, o.key, o.value, o.valid_from, open_end() AS valid_to
    FROM observed.attributes o JOIN peers p ON p.name = o.peer
    UNION ALL
    SELECT peer, key, value, valid_from, valid_to FROM before.attributes
), of_files AS (
    SELECT p.peer, s.* EXCLUDE (peer) FROM side.attributes s JOIN peers p ON p.name = s.peer
), stated AS (
    FROM of_source ANTI JOIN of_files USING (peer, key)
    UNION ALL BY NAME
    FROM of_files
), at_once AS (
    FROM stated
    QUALIFY row_number() OVER (PARTITION BY peer, key, valid_from ORDER BY value DESC NULLS LAST) = 1
), values AS (
    SELECT
        peer, key, value, valid_from,
        least(valid_to, coalesce(lead(valid_from) OVER in_time, open_end()), getvariable('close_at')) AS valid_to
    FROM at_once
    WINDOW in_time AS (PARTITION BY peer, key ORDER BY valid_from)
), stretches AS (
    SELECT *, count_if(begins) OVER (PARTITION BY peer, key ORDER BY valid_from) AS stretch
    FROM (
        SELECT
            *,
            coalesce(
                value <> lag(value) OVER in_time OR valid_from > lag(valid_to) OVER in_time, true
            ) AS begins
        FROM values
        WHERE value IS NOT NULL AND valid_from < valid_to
        WINDOW in_time AS (PARTITION BY peer, key ORDER BY valid_from)
    )
)
SELECT
    peer, key, value, finite_number(value) AS number,
    min(valid_from) AS valid_from, max(valid_to) AS valid_to
FROM stretches
GROUP BY peer, key, value, stretch
