-- What reports leave out, from the boundary on.
--
-- whole: observed/unreported, peers
-- makes: staged/unreported
SELECT p.peer, o.* EXCLUDE (peer)
FROM observed.unreported o JOIN peers p ON p.name = o.peer
WHERE interval >= getvariable('boundary')
