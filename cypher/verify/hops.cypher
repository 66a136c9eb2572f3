// How many receptions of known previous hop a run has, and the checksum of their integers.
//
// $run run – the run
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (a)-[r:HOP]->(b)
WHERE r.run = $run AND r.msg >= 0
WITH [a.id, b.id, r.msg, r.n, r.time_us,
      CASE r.first WHEN true THEN 1 ELSE 0 END,
      CASE r.interested WHEN true THEN 1 WHEN false THEN 0 END] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
