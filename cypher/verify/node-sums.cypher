// The number of nodes of a run that have some of these properties, and checksums of the values.
//
// Peer stands for the label of the nodes; intervals have their number in `i`, all others in `id`.
//
// $run run – the run
// $names list<string> – the properties
//
// -> rows: how many there are
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (n:Peer)
USING INDEX n:Peer(key)
WHERE n.key STARTS WITH $run + '/'
WITH coalesce(n.id, n.i) AS id, properties(n) AS p
WHERE p.run = $run AND id IS :: INTEGER NOT NULL AND p.key = $run + '/' + toString(id)
WITH id, [name IN $names | CASE
  WHEN p[name] IS NULL THEN [-1, -1]
  WHEN p[name] IS :: INTEGER THEN [p[name], 0]
  WHEN p[name] IS :: BOOLEAN THEN [CASE WHEN p[name] THEN 1 ELSE 0 END, 1]
  WHEN p[name] IS :: STRING THEN [size(p[name]), 2]
  WHEN p[name] IS :: FLOAT THEN CASE
    WHEN abs(p[name]) < 4398046511104.0 THEN [toInteger(p[name] * 1048576.0),
      3 + toInteger((p[name] * 1048576.0 - toInteger(p[name] * 1048576.0)) * 1099511627776.0)]
    ELSE [0, -3] END
  ELSE [0, -4] END] AS pairs
WITH size([x IN pairs WHERE x <> [-1, -1]]) AS keys,
     [id] + [x IN range(0, 2 * size(pairs) - 1) | pairs[x / 2][x % 2]] AS integers
WHERE keys > 0
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
