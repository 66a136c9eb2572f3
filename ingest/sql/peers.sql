-- Peers with their indices: by the interval that first has a name, then numbers by value, and other names by text.
--
-- Peers that the run has already keep their indices.
--
-- whole: observed/names, observed/peers, before/peers
-- makes: peers
WITH fresh AS (
    SELECT name, min(coalesce(interval, valid_from // getvariable('ticks'))) AS since
    FROM observed.names
    WHERE kind = 'peer' AND known("table") AND name NOT IN (SELECT name FROM before.peers)
    GROUP BY name
), reporting AS (
    SELECT name FROM observed.peers
    UNION
    SELECT name FROM before.peers WHERE is_reporter
), numbered AS (
    SELECT peer, name FROM before.peers
    UNION ALL
    SELECT
        (SELECT count(*) FROM before.peers)
        + row_number() OVER (ORDER BY since NULLS LAST, number(name) NULLS LAST, name) - 1,
        name
    FROM fresh
)
SELECT *, name IN (FROM reporting) AS is_reporter FROM numbered
