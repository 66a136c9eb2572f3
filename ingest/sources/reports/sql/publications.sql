-- The messages that peers published themselves.
--
-- whole: copies_sent
-- makes: publications
SELECT message, topic, coalesce(publisher, peer) AS publisher, interval, time_us, interval AS tick,
    bytes
FROM copies_sent
WHERE hops = 0 OR (hops IS NULL AND publisher = peer)
