// How many receptions of unknown previous hop a run has, and checksums of what they say.
//
// $run run – the run
//
// -> rows: how many there are, of those that name what they are between
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (a:Message)-[r:ARRIVED_FROM_UNKNOWN]->(b:Peer)
USING INDEX a:Message(key)
WHERE a.key STARTS WITH $run + '/'
WITH a, b, properties(r) AS p
WHERE p.run = $run AND b.run = $run
WITH size(keys(p)) AS keys,
     [a.id, b.id, p.message, coalesce(p.hops, -1), coalesce(p.time_us, -1),
      3 * CASE p.first WHEN true THEN 1 WHEN false THEN 0 ELSE -1 END
      + CASE p.subscribed WHEN true THEN 1 WHEN false THEN 0 ELSE -1 END] AS integers
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
