-- Links, joined to earlier periods that go on.
--
-- whole: observed/links, before/links, mine, peers, topics
-- makes: joined_links
WITH periods AS (
    SELECT
        {'src': s.peer, 'dst': d.peer, 'layer': o.layer, 'topic': t.topic} AS key,
        valid_from, valid_to
    FROM observed.links o
    JOIN peers s ON s.name = o.src
    JOIN peers d ON d.name = o.dst
    LEFT JOIN topics t ON t.name = o.topic
    WHERE o.src <> o.dst AND valid_to >= getvariable('unsettled')
    UNION ALL
    SELECT
        {'src': src, 'dst': dst, 'layer': layer, 'topic': topic},
        valid_from, least(valid_to, getvariable('end_before'))
    FROM before.links
    WHERE src IN (FROM mine)
)
FROM maximal('periods')
