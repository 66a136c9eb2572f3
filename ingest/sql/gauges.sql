-- Numbers of the systems' own, of intervals that the run does not have yet.
--
-- whole: observed/gauges, peers
-- makes: gauges
SELECT p.peer, o.* EXCLUDE (peer)
FROM observed.gauges o JOIN peers p ON p.name = o.peer
WHERE interval > getvariable('last_before')
