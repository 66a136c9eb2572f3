// How many messages of known publishers a run has, and checksums of what they say.
//
// $run run – the run
//
// -> rows: how many there are, of those that name what they are between
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (a:Peer)-[r:PUBLISHED]->(b:Message)
USING INDEX a:Peer(key)
WHERE a.key STARTS WITH $run + '/'
WITH a, b, properties(r) AS p
WHERE p.run = $run AND b.run = $run
WITH size(keys(p)) AS keys,
     [a.id, b.id] AS integers
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
