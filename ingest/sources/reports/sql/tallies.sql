-- Counts of new reports, by the optional fields that they have (facts.Tally.shapes).
--
-- whole: reports, measured
-- makes: tallies
SELECT
    bit_of(neighbors IS NOT NULL, 0)
    + bit_of(topics IS NOT NULL, 1)
    + bit_of(roles IS NOT NULL, 2)
    + bit_of(sent IS NOT NULL, 3)
    + bit_of(received IS NOT NULL, 4)
    + bit_of(coalesce(control_messages_sent, control_messages_received) IS NOT NULL, 5)
    + bit_of(coalesce(control_bytes_sent, control_bytes_received) IS NOT NULL, 6)
    + bit_of(coalesce(publication_messages_sent, publication_messages_received) IS NOT NULL, 7)
    + bit_of(coalesce(publication_bytes_sent, publication_bytes_received) IS NOT NULL, 8)
    + bit_of(m.duplicates IS NOT NULL, 9)
    + bit_of(coalesce(m.rpcs_sent, m.rpcs_received) IS NOT NULL, 10)
    + bit_of(coalesce("left", false), 11) AS shape,
    count(*) AS reports,
    min(m.interval) AS first,
    max(m.interval) AS last,
    count(*) FILTER (cardinality(gauges) > 0) AS with_gauges,
    count(*) FILTER (attributes <> []) AS with_attributes,
    count(*) FILTER (control_kinds IS NOT NULL) AS with_control_kinds,
    count(*) FILTER (differs) AS differing,
    count(*) FILTER (unlisted IS NOT NULL AND NOT differs) AS repeating
FROM measured m
JOIN reports USING (row)
GROUP BY shape
