// How many values of attributes a run has, and checksums of what they say.
//
// $run run – the run
// $attributes map – a number for each attribute
// $letters map – a number for each letter of their values
//
// -> rows: how many there are, of those that name what they are between
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (a:Peer)-[r:HAS_ATTRIBUTE]->(b:Run)
USING INDEX a:Peer(key)
WHERE a.key STARTS WITH $run + '/'
WITH a, b, properties(r) AS p
WHERE p.run = $run AND b.key = $run
WITH a, p, CASE WHEN p.value IS :: STRING NOT NULL THEN p.value ELSE '' END AS value
WITH size(keys(p)) AS keys,
     [a.id, p.valid_from, p.valid_to, p.length_class, coalesce($attributes[p.key], -1),
      reduce(h = size(value), i IN range(0, size(value) - 1) |
        (h * 31 + coalesce($letters[substring(value, i, 1)], -1)) % 2147483647)] + CASE
        WHEN p.number IS NULL THEN [-1, -1]
        WHEN NOT p.number IS :: FLOAT THEN [0, -4]
        WHEN abs(p.number) < 4398046511104.0 THEN [toInteger(p.number * 1048576.0),
          3 + toInteger((p.number * 1048576.0 - toInteger(p.number * 1048576.0)) * 1099511627776.0)]
        ELSE [0, -3] END AS integers
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
