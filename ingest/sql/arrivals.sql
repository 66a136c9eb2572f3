-- Arrivals of messages, from the boundary on.
--
-- whole: observed/receptions, staged/messages, peers
-- makes: staged/arrivals
SELECT m.message, p.peer, h.peer AS previous_hop, o.* EXCLUDE (message, peer, previous_hop)
FROM observed.receptions o
JOIN staged.messages m ON m.name = o.message
JOIN peers p ON p.name = o.peer
LEFT JOIN peers h ON h.name = o.previous_hop
WHERE interval >= getvariable('boundary')
