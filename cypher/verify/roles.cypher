// How many roles of peers a run has, and checksums of what they say.
//
// $run run – the run
// $roles map – a number for each role
//
// -> rows: how many there are, of those that name what they are between
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (a:Peer)-[r:HAS_ROLE]->(b:Topic|Run)
USING INDEX a:Peer(key)
WHERE a.key STARTS WITH $run + '/'
WITH a, b, properties(r) AS p
WHERE p.run = $run AND coalesce(b.run, b.key) = $run
WITH size(keys(p)) AS keys,
     [a.id, CASE WHEN b:Topic THEN b.id ELSE -1 END, p.valid_from, p.valid_to,
      coalesce($roles[p.role], -1)] AS integers
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
