// How many copies of subscriptions a run has, and the checksum of their integers.
//
// $run run – the run
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (t:Topic)<-[r]-(p:Peer)
WHERE t.key STARTS WITH $run + '/' AND type(r) STARTS WITH 'SUBSCRIBES_E'
WITH [toInteger(substring(type(r), 12)), p.id, t.id, r.vf, r.vt, r.lv] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
