-- Control messages by kind, of intervals that the run does not have yet.
--
-- whole: observed/control, peers, topics
-- makes: control
SELECT p.peer, o.interval, o.kind, t.topic, o.* EXCLUDE (peer, interval, kind, topic)
FROM observed.control o
JOIN peers p ON p.name = o.peer
LEFT JOIN topics t ON t.name = o.topic
WHERE interval > getvariable('last_before')
