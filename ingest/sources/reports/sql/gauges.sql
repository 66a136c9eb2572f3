-- Numbers of the system's own.
--
-- whole: reports
-- makes: gauges
SELECT peer, interval, number.key AS gauge, number.value
FROM (SELECT peer, interval, unnest(map_entries(gauges)) AS number FROM reports WHERE is_new)
WHERE number.value IS NOT NULL
