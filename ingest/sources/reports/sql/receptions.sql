-- All arrivals of messages.
--
-- whole: copies_received
-- makes: receptions
SELECT
    message, topic, publisher, peer, "from" AS previous_hop, time_us, interval, interval AS tick, arrival,
    NULL AS first, hops AS hop, subscribed
FROM copies_received
