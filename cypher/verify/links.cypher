// How many links a run has, and the checksum of their integers.
//
// $run run – the run
// $layers map – a number for each layer
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (a)-[r:LINK]->(b)
WHERE r.run = $run AND r.vf >= 0
WITH [a.id, b.id, r.topic, r.vf, r.vt, r.lv, $layers[r.layer]] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
