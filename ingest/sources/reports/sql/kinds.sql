-- Control messages by kind, as reported; entries of the same kind and topic add up, to null if one is unknown.
--
-- whole: reports
-- makes: kinds
SELECT
    row, peer, interval, is_new, kind, topic,
    CASE
        WHEN count(COLUMNS('^(messages|ids|bytes)_')) = count(*)
        THEN try_cast(sum(COLUMNS('^(messages|ids|bytes)_')) AS BIGINT)
    END
FROM (SELECT row, peer, interval, is_new, unnest(control_kinds, max_depth := 2) FROM reports)
GROUP BY row, peer, interval, is_new, kind, topic
