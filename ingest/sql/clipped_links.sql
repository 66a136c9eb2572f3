-- Links while both ends are present.
--
-- whole: joined_links, stays
-- makes: links
SELECT
    key.src, key.dst, key.layer, key.topic,
    greatest(l.valid_from, s.valid_from, d.valid_from) AS valid_from,
    least(l.valid_to, s.valid_to, d.valid_to) AS valid_to
FROM joined_links l
JOIN stays s ON s.peer = key.src AND s.valid_from < l.valid_to AND l.valid_from < s.valid_to
JOIN stays d ON d.peer = key.dst AND d.valid_from < l.valid_to AND l.valid_from < d.valid_to
WHERE greatest(s.valid_from, d.valid_from) < least(s.valid_to, d.valid_to)
