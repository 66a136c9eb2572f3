// How many roles of peers a run has, and the checksum of their integers.
//
// $run run – the run
// $roles map – a number for each role
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (p:Peer)-[r:PLAYS]->(of:Topic|Run)
WHERE p.key STARTS WITH $run + '/'
WITH [p.id, CASE WHEN of:Topic THEN of.id END, r.vf, r.vt, $roles[r.role]] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
