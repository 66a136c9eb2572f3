-- Arrivals that a peer refused.
--
-- whole: observed/rejections, staged/messages, peers
-- makes: rejections
SELECT m.message, p.peer, h.peer AS previous_hop, o.* EXCLUDE (message, peer, previous_hop)
FROM observed.rejections o
JOIN staged.messages m ON m.name = o.message
JOIN peers p ON p.name = o.peer
LEFT JOIN peers h ON h.name = o.previous_hop
WHERE interval >= getvariable('boundary')
