// How many copies of links a run has, and the checksum of their integers.
//
// $run run – the run
// $layers map – a number for each layer
//
// -> rows: how many there are
// -> checksum: as graphstore.verify.checksum_of computes it
MATCH (a:Peer)-[r]->(b:Peer)
WHERE a.key STARTS WITH $run + '/' AND type(r) STARTS WITH 'LINK_E'
WITH [toInteger(substring(type(r), 6)), a.id, b.id, r.topic, r.vf, r.vt, r.lv,
      $layers[r.layer]] AS integers
WITH reduce(h = 1, x IN integers | (h * h + coalesce(x, -1) % 2147483647) % 2147483647) AS h
RETURN count(*) AS rows, sum(h) AS checksum
