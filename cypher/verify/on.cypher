// How many messages of known topics a run has, and the checksum of their integers.
//
// $run run – the run
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (m:Message)-[r:ON]->(t:Topic)
WHERE m.key STARTS WITH $run + '/'
WITH [m.id, t.id] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
