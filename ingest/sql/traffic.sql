-- Traffic, of intervals that the run does not have yet.
--
-- whole: observed/traffic, peers
-- makes: traffic
SELECT p.peer, o.* EXCLUDE (peer)
FROM observed.traffic o JOIN peers p ON p.name = o.peer
WHERE interval > getvariable('last_before')
