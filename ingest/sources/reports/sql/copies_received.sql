-- What reports list as received, a row for each arrival, in the order of the report.
--
-- whole: reports
-- makes: copies_received
SELECT row, peer, interval, generate_subscripts(received, 1) - 1 AS arrival, unnest(received, max_depth := 2)
FROM reports
WHERE is_new
